//! Describes the first difference between a store's contents and the model.

use super::world::{Object, World};
use crate::common::read_in;
use store::{Name, Store};

/// Describes the first difference between two models.
pub fn difference(found: &World, expected: &World) -> String {
    for (name, within) in &expected.0 {
        let Some(other) = found.0.get(name) else {
            return format!("no collection {name}");
        };
        if (other.hashed, &other.attributes) != (within.hashed, &within.attributes) {
            return format!(
                "collection {name}: {:?}, not {:?}",
                other.hashed, within.hashed
            );
        }
        for (key, object) in &within.objects {
            match other.objects.get(key) {
                Some(other) if other == object => {}
                Some(other) => return format!("{name}/{}: {}", hex(key), unlike(other, object)),
                None => return format!("{name}/{} is gone", hex(key)),
            }
        }
        if let Some(key) = other
            .objects
            .keys()
            .find(|key| !within.objects.contains_key(*key))
        {
            return format!("{name}/{} should not be", hex(key));
        }
    }
    let mut more = found
        .0
        .keys()
        .filter(|name| !expected.0.contains_key(*name));
    more.next().map_or_else(String::new, |name| {
        format!("collection {name} should not be")
    })
}

fn hex((hash, name): &(u32, Vec<u8>)) -> String {
    format!("{hash:08x} {}", Name::from(&name))
}

/// Describes how two contents of one object differ.
pub fn unlike(found: &Object, expected: &Object) -> String {
    let (a, b) = (&found.bytes, &expected.bytes);
    let at = a.iter().zip(b.iter()).position(|(a, b)| a != b);
    let same = |what: bool| if what { "the same" } else { "others" };
    format!(
        "{} of {} bytes, the first other one at {at:?}, attributes {}, omap {}",
        a.len(),
        b.len(),
        same(found.attributes == expected.attributes),
        same(found.omap == expected.omap)
    )
}

/// Checks that each object that can be read is as in one of the models.
pub fn check_parts(store: &Store, may: &[World]) -> Result<(), String> {
    let names = may
        .iter()
        .flat_map(|world| &world.0)
        .flat_map(|(within, collection)| {
            collection
                .objects
                .keys()
                .map(move |(hash, name)| (within, *hash, name))
        });
    for (within, hash, name) in names {
        let Ok(bytes) = read_in(store, within, name) else {
            continue;
        };
        let is = |world: &World| {
            let object = world
                .0
                .get(within)
                .and_then(|c| c.objects.get(&(hash, name.clone())));
            object.is_some_and(|object| *object.bytes == bytes)
        };
        if !may.iter().any(is) {
            return Err(format!("{within}/{name:?} reads as others' bytes"));
        }
    }
    Ok(())
}
