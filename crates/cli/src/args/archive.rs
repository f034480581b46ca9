//! `zonestore store export|import|backup|restore`

use super::bytes;
use clap::Args;
use clap::builder::TypedValueParser;
use std::path::PathBuf;
use store::ObjectPath;

/// Where an archive goes.
#[derive(Args, Debug)]
pub struct ArchiveTarget {
    /// Replace an archive of that name
    #[arg(long)]
    pub force: bool,
    /// Go on where an object, or rows of the database, cannot be read: what can be read of an object is in the archive,
    /// for other programs, and a restore leaves it out
    #[arg(long)]
    pub skip_damaged: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store export d.zoned --to all.tar
  zonestore store export d.zoned papers/2016/ --to - | tar tf -
  zonestore store export d.zoned papers --to - | ssh there zonestore store import e.zoned -

Objects are files COLLECTION/OBJECT; holes stay holes. What tar has no place for is in extended attributes: the exact
name, and attributes, S3's among them. Omaps and checksums are in files of a folder .zonestore. Bytes that a file name
cannot have become % and two digits. Of a bucket its unfinished uploads come along. A drive that is served has to be
stopped first, so the archive is what the store was at one time.
Exit code 0: all of it is in the archive; 6: something could not be read, and is named.")]
pub struct StoreExport {
    /// The drive
    pub drive: PathBuf,
    /// COLLECTION, or COLLECTION/PREFIX; everything, if that is left out
    #[arg(value_parser = bytes().try_map(|text| ObjectPath::prefix(&text)))]
    pub what: Option<ObjectPath>,
    /// The archive; - for standard output
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    #[command(flatten)]
    pub target: ArchiveTarget,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store import d.zoned all.tar
  zonestore store import d.zoned papers.tar --into old/papers-    names in the collection old begin with papers-
  xz -dc all.tar.xz | zonestore store import d.zoned - --overwrite

Collections that are not there are made as they were. An object is compared with its checksum before it appears, and it
appears whole. Where the archive is cut off or damaged, the command ends with an error; what it has stored up to there stays,
and can be imported again.

A bucket that keeps S3's versions loses none: with --overwrite an object becomes a new version, and without it a key that was
deleted since counts as there.")]
pub struct StoreImport {
    /// The drive
    pub drive: PathBuf,
    /// The archive, an export or a full backup; - for standard input
    #[arg(default_value = "-")]
    pub archive: PathBuf,
    /// Replace objects that are there; otherwise they stay as they are
    #[arg(long)]
    pub overwrite: bool,
    /// COLLECTION or COLLECTION/PREFIX that the objects of the archive's one collection go to
    #[arg(long, value_name = "COLLECTION/PREFIX", value_parser = bytes().try_map(|text| ObjectPath::prefix(&text)))]
    pub into: Option<ObjectPath>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store backup d.zoned --to sunday.tar
  zonestore store backup d.zoned --to monday.tar --since sunday.tar
  zonestore store backup d.zoned --to e.zoned             copy all of it to the empty store on another drive
  zonestore store restore sunday.tar monday.tar --to e.zoned

With --since, the archive has only the objects that have changed, and a list of all. A restore needs the archive of --since,
too. So name the last backup; the drive keeps nothing about backups.
A served drive stays served: its server makes the archive of the store as it is when the backup begins, and reads the
file of --since itself.
Exit code 0: all of it is in the archive; 6: something could not be read, and is named.")]
pub struct StoreBackup {
    /// The drive
    pub drive: PathBuf,
    /// The archive; - for standard output; or a drive with an empty store
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Only what has changed since this backup was made
    #[arg(long, value_name = "FILE")]
    pub since: Option<PathBuf>,
    #[command(flatten)]
    pub target: ArchiveTarget,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store restore sunday.tar monday.tar tuesday.tar --check      compare all checksums, store nothing
  zonestore store restore sunday.tar monday.tar tuesday.tar --to e.zoned

The store is what it was when the last archive was made: objects, attributes, omaps, holes, times, collections by hash,
S3's buckets and uploads. Objects that shared their bytes as clones have bytes of their own. A restore that was interrupted,
or that met a damaged archive, goes on where it was when it is run again with the same archives.
Exit code 0: all is restored; 6: an archive is damaged, or has objects that could not be read when it was made.")]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct StoreRestore {
    /// A full backup, and those that build on it, in order; - for standard input
    #[arg(required = true)]
    pub archives: Vec<PathBuf>,
    /// A drive with an empty store
    #[arg(long, value_name = "DRIVE", group = "what")]
    pub to: Option<PathBuf>,
    /// Read and compare the archives, and store nothing
    #[arg(long, group = "what")]
    pub check: bool,
}
