//! A drive that is created and a model of the same name are one drive.

use device::profile;
use drive_model::AnyProfile;
use drive_model::profile::all_names;

#[test]
fn every_model_with_zones_has_the_shape_of_its_name() {
    for name in all_names() {
        let model = AnyProfile::named(name).unwrap();
        let shape = profile::by_name(name);
        let Some(geometry) = model.geometry() else {
            assert!(shape.is_err(), "{name} has no zones");
            continue;
        };
        let shape = shape.unwrap();
        let size = geometry.size_bytes();
        assert_eq!(shape.geometry(size, None).unwrap(), geometry, "{name}");
    }
}

/// Shapes for tests are of no drive that anybody makes.
#[test]
fn every_shape_has_a_model_of_its_name_but_those_for_tests() {
    for shape in profile::all() {
        let is_for_tests = shape.name.starts_with("test-");
        assert_eq!(AnyProfile::named(shape.name).is_err(), is_for_tests);
    }
}
