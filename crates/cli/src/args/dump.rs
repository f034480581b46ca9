//! `zonestore store dump`

use super::{bytes, named};
use clap::Args;
use clap::builder::TypedValueParser;
use std::path::PathBuf;
use store::{Dump, Name, RecordKind};
use zone::ZoneId;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore store dump d.zoned --kind onodes
  zonestore store dump d.zoned --collection papers --object 2016/smr.pdf     its onode, extents, places and omap
  zonestore store dump d.zoned --zone 17                                     what is known of a zone
  zonestore store dump d.zoned --json | jq 'select(.kind == \"extents\")'

Every record of the database is a line: its kind, what its key says, and behind a colon what its value says. With --json
it is an object with kind, key and value, and bytes that are no text are {\"hex\": \"…\"}. A record that makes no sense is shown
in hexadecimal digits, and where the database cannot read on, the dump goes on behind that. Nothing is changed, and the
drive must not be served. What the records are is in docs/format/store.md.
Exit code 0: every record could be read and makes sense; 6: some are damaged.")]
pub struct StoreDump {
    /// The drive
    pub drive: PathBuf,
    /// Only records of this kind; may be given several times
    #[arg(long, value_name = "KIND", value_parser = named(RecordKind::ALL))]
    pub kind: Vec<RecordKind>,
    /// Only what this collection is made of
    #[arg(long, conflicts_with = "zone")]
    pub collection: Option<String>,
    /// Only what this object of it is made of
    #[arg(long, requires = "collection", value_parser = bytes().map(|name| Name::from(&name)))]
    pub object: Option<Name>,
    /// Only what is known of this zone
    #[arg(long, value_name = "N")]
    pub zone: Option<u32>,
    /// Also every key and value as they are stored, in hexadecimal digits
    #[arg(long)]
    pub raw: bool,
}

impl StoreDump {
    /// Which records are asked for.
    pub fn which(&self) -> Dump {
        Dump {
            kinds: self.kind.clone(),
            collection: self.collection.clone(),
            object: self.object.clone(),
            zone: self.zone.map(ZoneId),
        }
    }
}
