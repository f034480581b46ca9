//! Carries out on a store what `World::carry_out` does to the model, and reads back everything that the store holds.

use super::call::{Call, Data, Must, Share, Target, attributes, collection, key, object, omap};
use super::world::{Collection, Object, World};
use crate::common::{read_in, taken_in, written};
use std::sync::Arc;
use store::{Attributes, Condition, Result, Store, Transaction};

fn name((within, name): Target) -> (&'static str, Vec<u8>) {
    (collection(within), object(name))
}

/// Adds a call to the transaction; `world` is the model after the calls before it. The call's data is written at once.
pub fn add(store: &Store, tx: &mut Transaction, world: &World, call: &Call) -> Result<()> {
    let data = |data: &Data| written(store, &data.bytes());
    let size = |share: Share, target: Target| share.of(world.size(target)) as u64;
    match call {
        Call::CreateCollection(c, rows) => tx.create_collection(collection(*c), attributes(rows)),
        Call::CreateHashed(c, hashed) => {
            tx.create_hashed_collection(collection(*c), *hashed, Attributes::new())
        }
        Call::RemoveCollection(c) => tx.remove_collection(collection(*c)),
        Call::SetCollectionAttributes(c, rows) => {
            tx.set_collection_attributes(collection(*c), attributes(rows))
        }
        Call::Split(c, into) => {
            tx.split_collection(collection(*c), collection(*into), Attributes::new())
        }
        Call::Merge(c, into) => tx.merge_collection(collection(*c), collection(*into)),
        Call::Require(at, must) => {
            let value = |size: &u16| vec![*size as u8; usize::from(*size)];
            let condition = match must {
                Must::BeAbsent => Condition::Absent,
                Must::BePresent => Condition::Present,
                Must::HaveAttribute((name, size)) => {
                    Condition::AttributeIs(name.to_string(), value(size))
                }
                Must::NotHaveAttribute((name, size)) => {
                    Condition::AttributeIsNot(name.to_string(), value(size))
                }
            };
            let (c, o) = name(*at);
            tx.require(c, o, condition)
        }
        Call::Put((c, o), bytes, rows) => {
            let data = replacing(store, (*c, *o), *bytes)?;
            tx.put(collection(*c), object(*o), data, attributes(rows))
        }
        Call::Write((c, o), at, bytes) => {
            let offset = size(*at, (*c, *o));
            tx.write(collection(*c), object(*o), offset, data(bytes)?)
        }
        Call::Append((c, o), bytes) => tx.append(collection(*c), object(*o), data(bytes)?),
        Call::Truncate((c, o), to) => tx.truncate(collection(*c), object(*o), size(*to, (*c, *o))),
        Call::Punch((c, o), at, length) => {
            let offset = size(*at, (*c, *o));
            tx.punch(collection(*c), object(*o), offset, (*length).into())
        }
        Call::Remove((c, o)) => tx.remove(collection(*c), object(*o)),
        Call::RemoveIfPresent((c, o)) => tx.remove_if_present(collection(*c), object(*o)),
        Call::SetAttributes((c, o), rows) => {
            tx.set_attributes(collection(*c), object(*o), attributes(rows))
        }
        Call::UpdateAttributes((c, o), rows, gone) => {
            let gone = gone.to_string();
            tx.update_attributes(collection(*c), object(*o), attributes(rows), &[&gone])
        }
        Call::Touch((c, o)) => tx.touch(collection(*c), object(*o)),
        Call::OmapSet((c, o), rows) => tx.omap_set(collection(*c), object(*o), omap(rows)),
        Call::OmapRemove((c, o), keys) => {
            let keys: Vec<_> = keys.iter().map(|number| key(*number)).collect();
            let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
            tx.omap_remove(collection(*c), object(*o), &keys)
        }
        Call::OmapRemoveRange((c, o), from, to) => {
            let (from, to) = (key(*from), key(*to));
            tx.omap_remove_range(collection(*c), object(*o), &from[..]..&to[..])
        }
        Call::OmapClear((c, o)) => tx.omap_clear(collection(*c), object(*o)),
        Call::Assemble((c, o), parts) => {
            let parts: Vec<_> = parts.iter().map(|part| name(*part)).collect();
            tx.assemble(collection(*c), object(*o), &parts, Attributes::new())
        }
        Call::Rename(from, to) => tx.rename(name(*from), name(*to)),
        Call::Clone(from, to) => tx.clone_object(name(*from), name(*to)),
        Call::CloneRange(from, first, last, to, at) => {
            let range = size(*first, *from)..size(*last, *from);
            tx.clone_range(name(*from), range, name(*to), size(*at, *to))
        }
    };
    Ok(())
}

/// Writes data with a hint of the object that it will replace.
pub fn replacing(store: &Store, target: Target, data: Data) -> Result<store::Written> {
    let (within, object) = name(target);
    let writer = store.writer(Some(data.length.into()))?;
    let mut writer = writer.replacing(within, object);
    writer.write(&data.bytes())?;
    writer.finish()
}

/// The object as the store returns it, or `None` if it does not exist.
pub fn find(store: &Store, target: Target) -> Result<Option<Object>> {
    let (within, name) = name(target);
    let Some(info) = store.stat(within, &name)? else {
        return Ok(None);
    };
    read(store, within, &name, info.attributes).map(Some)
}

fn read(store: &Store, within: &str, name: &[u8], attributes: Attributes) -> Result<Object> {
    let rows = store.omap(within, name, &[], usize::MAX)?;
    let bytes = read_in(store, within, name)?;
    assert!(
        taken_in(store, within, name)? == bytes,
        "taken otherwise than read"
    );
    Ok(Object {
        bytes: Arc::new(bytes),
        attributes,
        omap: rows.into_iter().collect(),
    })
}

/// Everything that the store holds. Asserts that listings come in pages, in order.
pub fn everything(store: &Store) -> Result<World> {
    let mut world = World::default();
    for info in store.collections()? {
        let mut found = Collection {
            hashed: info.hashed,
            attributes: info.attributes,
            ..Collection::default()
        };
        let (mut from, mut last) = (Vec::new(), None);
        loop {
            let page = store.list(&info.name, "", &from, 5)?;
            for listed in page.iter().skip(usize::from(last.is_some())) {
                let name = listed.name.to_vec();
                let hash = found.hashed.map_or(0, |hashed| hashed.source.hash(&name));
                let object = read(store, &info.name, &name, listed.attributes.clone())?;
                assert_eq!(listed.size as usize, object.bytes.len());
                let key = Some((hash, name));
                assert!(last < key, "{}: {last:?} is in front of {key:?}", info.name);
                found.objects.extend(key.clone().map(|key| (key, object)));
                last = key;
            }
            match page.last() {
                Some(end) if page.len() == 5 => from = end.name.to_vec(),
                _ => break,
            }
        }
        world.0.insert(info.name, found);
    }
    Ok(world)
}
