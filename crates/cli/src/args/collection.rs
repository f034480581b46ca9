//! `zonestore store collection …`

use super::{OnDrive, named};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use store::{HashPrefix, HashSource};

#[derive(Subcommand, Debug)]
#[command(after_help = "\
Examples:
  zonestore store collection create d.zoned logs --hash xxh3
  zonestore store collection split d.zoned logs logs-1     logs keeps hashes 0*, logs-1 has 1*
  zonestore store collection merge d.zoned logs-1 logs
  zonestore store collection ls d.zoned

A collection by hash lists its objects in order of hashes. It is split and merged in a time that does not depend
on how many objects there are. An object's name says which collection of a family takes it. S3 sees only
collections by name.")]
pub enum CollectionCommand {
    /// Make an empty collection: a bucket, or one by hash
    Create(CollectionCreate),
    /// Make the upper half of a collection's hashes, and the objects that have them, a new collection
    Split(TwoCollections),
    /// Give all objects of a collection to the one with the other half of the hashes; the first is gone
    Merge(TwoCollections),
    /// List all collections, with what each is
    Ls(OnDrive),
    /// Remove an empty collection (`store rm -r` also removes what is in it)
    Rm {
        /// The drive
        drive: PathBuf,
        /// The collection
        collection: String,
    },
}

#[derive(Args, Debug)]
pub struct CollectionCreate {
    /// The drive
    pub drive: PathBuf,
    /// The collection
    pub collection: String,
    /// Make a collection by hash, and take the hash from here
    #[arg(long, value_name = "SOURCE", value_parser = named(HashSource::ALL))]
    pub hash: Option<HashSource>,
    /// Number of its family; no two collections of a family have a hash in common [default: a new family]
    #[arg(long, value_name = "N", requires = "hash")]
    pub family: Option<u32>,
    /// Only the hashes that begin with these bits
    #[arg(long, value_name = "BITS*", default_value = "*", requires = "hash")]
    pub prefix: HashPrefix,
}

#[derive(Args, Debug)]
pub struct TwoCollections {
    /// The drive
    pub drive: PathBuf,
    /// The collection
    pub collection: String,
    /// The other one
    pub into: String,
}
