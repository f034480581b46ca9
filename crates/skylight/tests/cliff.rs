//! Figure 3.1 in models of full size: the cliff that every drive-managed drive comes to, and where
//! that leaves it beside a conventional one.
#![allow(clippy::unwrap_used)]

use skylight::cliff::{Cliff, random_writes};
use skylight::{Model, Random};

fn cliff(name: &str) -> Cliff {
    let mut model = Model::named(name, 1).unwrap();
    let cliff = random_writes(&mut model, &mut Random::new(1), 2_000.0, 20.0).unwrap();
    println!(
        "{name}: {:.1}, {:.1} a second",
        cliff.rate(0.0, 0.05),
        cliff.rate(0.5, 1.0)
    );
    cliff
}

#[test]
fn random_writes_fall_off_a_cliff_on_drive_managed_drives_alone() {
    let conventional = cliff("wd5000ys");
    let (first, last) = (conventional.rate(0.0, 0.05), conventional.rate(0.5, 1.0));
    assert!((last / first - 1.0).abs() < 0.05, "steady: {first}, {last}");
    assert!((50.0..400.0).contains(&last), "low: {last}");
    for name in ["st5000as0011", "st8000as0002", "st4000lm016"] {
        let drive = cliff(name);
        let (first, last) = (drive.rate(0.0, 0.05), drive.rate(0.5, 1.0));
        assert!(
            first > 2.0 * conventional.rate(0.0, 1.0),
            "{name} begins fast: {first}"
        );
        assert!(last < first / 100.0, "{name}: {first}, {last}");
        assert!(last < conventional.rate(0.0, 1.0) / 10.0, "{name}: {last}");
    }
    // Section 3.4.3: not as high at first, but no such drop, and a higher steady rate.
    let mixed = cliff("wd40nmzw");
    let seagate = cliff("st5000as0011");
    assert!(mixed.rate(0.0, 0.05) < seagate.rate(0.0, 0.05));
    assert!(mixed.rate(0.5, 1.0) > seagate.rate(0.5, 1.0));
}
