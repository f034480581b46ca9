//! Limits on the sizes of names, attributes and omap rows in a transaction.

use crate::step::OmapStep;
use crate::step::Step;
use crate::{Attributes, Error, Result, Transaction};
use xxhash_rust::xxh3::xxh3_128;

/// Longest object and collection names, in bytes.
const MAX_NAME: usize = 4096;
/// Bytes of a name that are left for a number behind it.
const FOR_NUMBER: usize = 16;
/// Most bytes of attributes (names and values) of one object.
const MAX_ATTRIBUTES: usize = 1 << 20;

pub(crate) fn check_sizes(transaction: &Transaction) -> Result<()> {
    for operation in &transaction.operations {
        for target in operation.targets() {
            limit(
                "the length of an object's name",
                target.object.len(),
                MAX_NAME,
            )?;
        }
        for name in operation.collections() {
            limit("the length of a collection's name", name.len(), MAX_NAME)?;
        }
        if let Some(attributes) = operation.attributes() {
            check_attributes(attributes)?;
        }
        if let Step::Omap {
            step: OmapStep::Set(rows),
            ..
        } = operation
        {
            for (key, value) in rows {
                limit("the length of a key of an omap", key.len(), MAX_NAME)?;
                limit(
                    "the size of a value of an omap",
                    value.len(),
                    MAX_ATTRIBUTES,
                )?;
            }
        }
    }
    Ok(())
}

/// The name under which a damaged object is kept: `collection/name`, shortened if it is too long.
pub(crate) fn damaged_name(collection: &str, name: &[u8]) -> Vec<u8> {
    let name = [collection.as_bytes(), b"/", name].concat();
    shortened(name, MAX_NAME - FOR_NUMBER)
}

/// A name that some record has, shortened if it is too long for an object.
pub(crate) fn possible_name(name: &[u8]) -> Vec<u8> {
    shortened(name.to_vec(), MAX_NAME)
}

/// Puts a hash of the whole name in place of what is behind `longest` bytes.
fn shortened(mut name: Vec<u8>, longest: usize) -> Vec<u8> {
    if name.len() > longest {
        let hash = format!("-{:032x}", xxh3_128(&name));
        name.truncate(longest - hash.len());
        name.extend_from_slice(hash.as_bytes());
    }
    name
}

pub(crate) fn check_attributes(attributes: &Attributes) -> Result<()> {
    let bytes = attributes.iter().map(|(k, v)| k.len() + v.len()).sum();
    limit("the size of the attributes", bytes, MAX_ATTRIBUTES)?;
    // Both are stored as 16 bits.
    let most = usize::from(u16::MAX);
    for name in attributes.keys() {
        limit("the length of an attribute's name", name.len(), most)?;
    }
    limit("the number of attributes", attributes.len(), most)
}

fn limit(what: &'static str, found: usize, allowed: usize) -> Result<()> {
    let (found, allowed) = (found as u64, allowed as u64);
    if found <= allowed {
        Ok(())
    } else {
        Err(Error::Invalid {
            what,
            found,
            allowed,
        })
    }
}
