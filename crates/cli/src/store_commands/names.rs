//! The names that collections of users have, beside those that the program keeps for itself.

use crate::errors::{CommandResult, fail};
use crate::output::Output;
use s3::plain;
use store::Store;

/// Refuses a collection that comes with a bucket: without it, S3 would not find the bucket any more.
pub fn check_alone(store: &Store, name: &str, out: &Output) -> CommandResult {
    match plain::comes_with_a_bucket(store, name)? {
        true => fail!(
            Refused, "{} belongs to a bucket, or is kept for buckets", out.name(name);
            "name the bucket: it is removed with that"
        ),
        false => Ok(()),
    }
}

/// Refuses a name that a user's collection neither has nor can get.
pub fn check_name(store: &Store, name: &str, out: &Output) -> CommandResult {
    check_alone(store, name, out)?;
    // A slash begins an object's name. An import removes its own collection at its end, with everything in it.
    let is_new = store.collection(name)?.is_none();
    if name == archive::OWN || is_new && (name.is_empty() || name.contains('/')) {
        return fail!(
            Usage, "{} cannot name a collection", out.name(name);
            "take a name without a slash, and not {}", archive::OWN
        );
    }
    Ok(())
}
