//! `zonestore store …`

use super::archive::{StoreBackup, StoreExport, StoreImport, StoreRestore};
use super::dump::StoreDump;
use super::fs::seconds;
use super::{CollectionCommand, Mkfs, OnDrive, ReadDrive, Tolerance, bytes};
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use store::{CleanerChange, Hours, ObjectPath, Pace, Watermarks};
use terminal::Span;

/// The object store on a drive, with a server or without.
#[derive(Subcommand, Debug)]
pub enum StoreCommand {
    /// Make an empty store on a drive
    Mkfs(Mkfs),
    /// Say how much is stored, how much space there is and what cleaning would give back
    Df(ReadDrive),
    /// Say what is lost or at risk, and what the drive does not answer
    #[command(after_help = "\
Examples:
  zonestore store health d.zoned
  zonestore store health d.zoned --json || mail -s 'd.zoned' root < /dev/null

Exit code 0: healthy; 10: something is lost or at risk. It says what is known: zones that the drive reports
as read-only or offline, and those in which something could not be read since the drive was mounted; a
drive that `zonestore serve` has open is asked through its socket. `store scrub --deep` reads everything.
Zones that are set aside are tried again after the next mount, or by `store clean --start`.")]
    Health(OnDrive),
    /// Show what a served drive does, live: traffic, space, cleaner, health, requests
    Top(StoreTop),
    /// List collections, or the objects of one
    Ls(StoreList),
    /// Store a file (or standard input) as an object
    Put(StorePut),
    /// Read an object into a file (or to standard output)
    Get(StoreGet),
    /// Remove an object, or a collection
    Rm(StoreRemove),
    /// Make, split, merge, list and remove collections
    #[command(subcommand)]
    Collection(CollectionCommand),
    /// Check everything against everything; count each kind of error, and repair them
    Fsck(StoreFsck),
    /// Look at everything stored before somebody needs it, and write anew what has another copy
    Scrub(StoreScrub),
    /// Copy objects from a drive whose metadata is lost into another store
    Salvage(StoreSalvage),
    /// Show every record of the database in words
    Dump(StoreDump),
    /// Write all objects, or some, into a tar archive
    Export(StoreExport),
    /// Add the objects of such an archive to a store
    Import(StoreImport),
    /// Write all of a store into a tar archive, or what has changed since an earlier one
    Backup(StoreBackup),
    /// Make a store of a backup and of those that build on it
    Restore(StoreRestore),
    /// Move live data out of zones with dead bytes and reset them
    Clean(StoreClean),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store top d.zoned
  zonestore store top d.zoned --json | jq .drive.space

It shows what the status page of the server shows, which it asks through its socket. Keys: q or Ctrl-C leaves, space
looks at once.")]
pub struct StoreTop {
    /// The drive, which zonestore serve has
    pub drive: PathBuf,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: std::time::Duration,
    /// Look once and print that as text
    #[arg(long)]
    pub once: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store fsck d.zoned
  zonestore store fsck d.zoned --deep --json
  zonestore store fsck d.zoned --repair

Exit code 0: clean; 6: errors were found; 9: repaired, and something that was stored is gone. Without --repair nothing is
changed on the drive. --repair brings records in line with each other: what nothing refers to is removed, counts and
indexes are made anew. What it would lose, it names first. An object that lost some of its bytes goes to the collection fsck-damaged, with holes in their
place. Damaged bytes of objects are not repaired, nor is a database that cannot be read: that is for `store salvage`.")]
pub struct StoreFsck {
    /// The drive
    pub drive: PathBuf,
    /// Also read all data and compare its checksums
    #[arg(long)]
    pub deep: bool,
    /// Bring what is wrong in the metadata in order, then check again
    #[arg(long)]
    pub repair: bool,
    /// Do not ask
    #[arg(long, requires = "repair")]
    pub yes: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store scrub d.zoned             compare both copies of the metadata
  zonestore store scrub d.zoned --deep      and read all data
  zonestore store scrub d.zoned --status

What is damaged in one copy of the metadata is written anew from the other one; segment summaries are written anew from the
database. Bytes of objects have one copy: where they are damaged is kept, and `store health` names the objects and which of their
bytes are lost. A pass over the data that is stopped (Ctrl-C, --stop, the end of the server) goes on in the same zone. A
drive that `zonestore serve` has open is scrubbed by the server, at its --scrub-pace; Ctrl-C ends only this command then. A server
does it by itself: metadata each day, data as --scrub-every says.
Exit code 0: nothing is damaged; 6: something is.")]
pub struct StoreScrub {
    /// The drive
    pub drive: PathBuf,
    /// Also read all data and compare its checksums
    #[arg(long)]
    pub deep: bool,
    /// Only print what the scrub is doing and has done
    #[arg(long, conflicts_with = "deep")]
    pub status: bool,
    /// Stop the server's scrub, also over restarts. It begins again with `store scrub`, or after a day (metadata) or
    /// --scrub-every (data)
    #[arg(long, conflicts_with_all = ["deep", "status"])]
    pub stop: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store salvage d.zoned                 see what there is; nothing is written
  zonestore store salvage d.zoned --to e.zoned    copy it into the store on e.zoned
  zonestore store salvage d.zoned --in-place      make the drive's own store anew, around the data on it

But for --in-place the drive is only read, from its first zone to its last. Summaries among the data tell which objects there are; every
byte of them is compared with its checksum. An object whose newest version was in no summary yet may come back as the
version before, or not at all: summaries take one byte in 1,024 of a drive, enough for objects of 64 KiB with few
attributes, and what was put just before a crash may be in none. Objects and parts of up to half a block (2 KiB) were in the metadata and do not come
back. What has no collection any more, and what is damaged, goes to collections of its own. What the other store
has by the same name is left alone: a copy that was interrupted goes on when it is run again.
With --in-place data stay where they are: new metadata are made in zones that hold none, and point to them. It is
refused as long as the old metadata can be opened, and says first what stays, what is copied and what is lost. Zones with
anything that nothing describes are not reset: they become objects of the collection salvaged-unplaced, which you remove
when you have looked at them. Stopped at any moment, the same command goes on.
Exit code 0: all that was found is whole; 6: bytes of some objects are lost.")]
pub struct StoreSalvage {
    /// The drive with the lost metadata
    pub drive: PathBuf,
    /// A drive with the store that the objects go to
    #[arg(long, value_name = "DRIVE")]
    pub to: Option<PathBuf>,
    /// Make the store on the drive itself anew
    #[arg(long, conflicts_with = "to")]
    pub in_place: bool,
    /// Also copy what is left of damaged objects, into the collection salvaged-damaged
    #[arg(long)]
    pub damaged: bool,
    /// Give up bytes that nothing describes, instead of keeping them as objects
    #[arg(long, requires = "in_place")]
    pub drop_unplaced: bool,
    /// Do not ask before the first write
    #[arg(long, requires = "in_place")]
    pub yes: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store ls d.zoned                  the collections
  zonestore store ls d.zoned papers           every object in papers
  zonestore store ls -l d.zoned papers/2016/  with size and time, names beginning with 2016/
  zonestore store ls -0 d.zoned papers | xargs -0 -n1 echo

On a terminal a name with control characters is quoted as a shell takes it, and so is everywhere one that is
no UTF-8; with -0 names are exact. In --json such a name is an object with its hexadecimal digits, {\"hex\": \"ff\"}. A drive that `zonestore serve` has open is asked through its socket.")]
pub struct StoreList {
    /// The drive
    pub drive: PathBuf,
    /// COLLECTION, or COLLECTION/PREFIX
    #[arg(value_parser = bytes().try_map(|text| ObjectPath::prefix(&text)))]
    pub what: Option<ObjectPath>,
    /// With size and time of change; of collections by hash with their family and hashes
    #[arg(long, short)]
    pub long: bool,
    /// Also collections whose name begins with a dot, which programs keep for themselves
    #[arg(long, short)]
    pub all: bool,
    /// End every name with a zero byte instead of a line end, for `xargs -0`; names are exact
    #[arg(long, short = '0')]
    pub null: bool,
    #[command(flatten)]
    pub damage: Tolerance,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store put d.zoned thesis.pdf papers/2016/thesis.pdf
  tar c photos | zonestore store put d.zoned - backup/photos.tar

When the command ends with 0, the object survives a power cut. The collection is created if there
is none; an object of that name is replaced. A file that cannot fit is refused before anything is
written; a name that S3 clients could not reach is stored and said. Names have at most 4,096 bytes; S3's 1,024.")]
pub struct StorePut {
    /// The drive
    pub drive: PathBuf,
    /// The file; - for standard input
    pub file: PathBuf,
    /// COLLECTION/OBJECT
    #[arg(value_parser = bytes().try_map(|text| ObjectPath::from_bytes(&text)))]
    pub object: ObjectPath,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store get d.zoned papers/2016/thesis.pdf thesis.pdf
  zonestore store get d.zoned papers/2016/thesis.pdf --range 0..1KiB | head

Every byte is compared with its checksum before it is handed out.")]
pub struct StoreGet {
    /// The drive
    pub drive: PathBuf,
    /// COLLECTION/OBJECT
    #[arg(value_parser = bytes().try_map(|text| ObjectPath::from_bytes(&text)))]
    pub object: ObjectPath,
    /// Where to; - for standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Only these bytes: A..B (without B), A.., ..B
    #[arg(long, value_name = "A..B")]
    pub range: Option<Span>,
    #[command(flatten)]
    pub damage: Tolerance,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store rm d.zoned papers/2016/thesis.pdf
  zonestore store rm -r d.zoned papers/2016/       every object whose name begins with 2016/
  zonestore store rm -r d.zoned papers             the collection and all it holds

Where a bucket keeps versions, the one before the removed one is current then; with -r, all versions go.
What S3's object lock keeps stays, and nothing is removed then, unless --break-locks is given.")]
pub struct StoreRemove {
    /// The drive
    pub drive: PathBuf,
    /// COLLECTION/OBJECT; an empty COLLECTION; with -r COLLECTION or COLLECTION/PREFIX
    #[arg(value_parser = bytes().try_map(|text| ObjectPath::prefix(&text)))]
    pub what: ObjectPath,
    /// Remove everything whose name begins so; asks first
    #[arg(long, short)]
    pub recursive: bool,
    /// Also remove what S3's object lock keeps: versions with a retention that has not ended, or with a legal hold
    #[arg(long)]
    pub break_locks: bool,
    /// Do not ask
    #[arg(long, requires = "recursive")]
    pub yes: bool,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("how_much"))]
#[command(after_help = "\
Examples:
  zonestore store clean d.zoned --status
  zonestore store clean d.zoned --zones 4
  zonestore store clean d.zoned --all
  zonestore store clean d.zoned --start      while `zonestore serve` has the drive: in the background
  zonestore store clean d.zoned --pace 50MiB/s --hours 22:00-06:00 --free-zones 5%..20%

A pace is full, so many bytes moved a second (100MiB/s), only while no request was under way for a while
(idle:200ms), or as fast as 99 of 100 reads of users take no longer than that (latency:20ms). Whoever needs
a zone waits for no pace. Ctrl-C stops at any time; what is moved is moved. A drive that `zonestore serve`
has open is cleaned by the server, and what is counted is what was done for this command; it forgets --start and what it was told here when it stops.")]
pub struct StoreClean {
    /// The drive
    pub drive: PathBuf,
    /// Until no zone has dead bytes (the default)
    #[arg(long, group = "how_much")]
    pub all: bool,
    /// At most so many zones
    #[arg(long, value_name = "N", group = "how_much")]
    pub zones: Option<u64>,
    /// Only say what there is to clean
    #[arg(long, group = "how_much")]
    pub status: bool,
    /// Let the drive's server clean everything in the background, and begin by itself again after --stop
    #[arg(long, group = "how_much")]
    pub start: bool,
    /// Stop the server's cleaner after the piece that it is copying, and every --all or --zones under way. Until --start,
    /// only writers that need a zone have one cleaned
    #[arg(long, group = "how_much")]
    pub stop: bool,
    /// How fast the server's cleaner goes: full, 100MiB/s, idle:200ms or latency:20ms
    #[arg(long, allow_hyphen_values = true, conflicts_with_all = AT_ONCE)]
    pub pace: Option<Pace>,
    /// When it begins by itself before zones are urgently needed: 22:00-06:00, or always
    #[arg(long, value_name = "FROM-TO", conflicts_with_all = AT_ONCE)]
    pub hours: Option<Hours>,
    /// Free zones below which cleaning is urgent (MIN) and begins (LOW): 1..2, or of the zones for data 5%..20%
    #[arg(long, value_name = "MIN..LOW", conflicts_with_all = AT_ONCE)]
    pub free_zones: Option<Watermarks>,
}

const AT_ONCE: [&str; 3] = ["all", "zones", "status"];

impl StoreClean {
    /// What the server's cleaner is to be held to from now on.
    pub const fn change(&self) -> CleanerChange {
        CleanerChange {
            pace: self.pace,
            hours: self.hours,
            free_zones: self.free_zones,
        }
    }
}
