//! `zonestore drive …`

use super::OnDrive;
use clap::{Args, Subcommand};
use device::ShapeRequest;
use std::path::PathBuf;
use terminal::{Size, Span};

/// Make emulated zoned drives; look at drives, try and reset them
#[derive(Subcommand, Debug)]
pub enum DriveCommand {
    /// Make a drive: a sparse file that behaves as a zoned drive does
    Create(DriveCreate),
    /// List the profiles a drive can be made from
    Profiles,
    /// Print the zones, one a line, as `blkzone report` does
    Report(DriveReport),
    /// Say what a drive is, what is on it and how full its zones are
    Info(OnDrive),
    /// Reset zones: what is in them is gone, and the host's disk has its space back
    Reset(DriveReset),
    /// Put a drive through the conformance suite; destroys everything on it
    Conformance(DriveConformance),
}

/// The shape of a new drive: a profile, and what differs from it.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Shape of the drive")]
pub struct NewDrive {
    /// The drive it is modelled on; `zonestore drive profiles` lists them [default: hm-smr-14tb]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// How large it is, such as 64GiB, in whole zones; the file itself starts out almost empty
    /// [default: the profile's]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Bytes from one zone to the next
    #[arg(long, value_name = "SIZE")]
    pub zone_size: Option<Size>,
    /// Bytes of a zone that can be written, at most its size
    #[arg(long, value_name = "SIZE")]
    pub zone_capacity: Option<Size>,
    /// How many conventional zones it begins with
    #[arg(long, value_name = "N")]
    pub conventional: Option<u32>,
    /// Most zones open at once; 0 for no limit
    #[arg(long, value_name = "N")]
    pub max_open: Option<u32>,
    /// Most zones active (open or closed) at once; 0 for no limit
    #[arg(long, value_name = "N")]
    pub max_active: Option<u32>,
}

impl From<&NewDrive> for ShapeRequest {
    fn from(asked: &NewDrive) -> Self {
        let bytes = |size: Option<Size>| size.map(|size| size.0);
        Self {
            profile: asked.profile.clone(),
            size: bytes(asked.size),
            zone_size: bytes(asked.zone_size),
            zone_capacity: bytes(asked.zone_capacity),
            conventional: asked.conventional,
            max_open: asked.max_open,
            max_active: asked.max_active,
        }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore drive create d.zoned --profile hm-smr-14tb --size 64GiB
  zonestore drive create z.zoned --profile zns-zn540 --size 128GiB --max-open 8
  zonestore drive create t.zoned --size 1GiB --zone-size 4MiB --conventional 0")]
pub struct DriveCreate {
    /// The file to make; it must not exist
    pub path: PathBuf,
    #[command(flatten)]
    pub shape: NewDrive,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore drive report d.zoned
  zonestore drive report d.zoned --zones 0..8
  zonestore drive report d.zoned --json | jq '.zones[] | select(.condition == \"full\").id'

All numbers of the text are in 512-byte sectors, as with blkzone; those of --json are in bytes.")]
pub struct DriveReport {
    /// The drive
    pub drive: PathBuf,
    /// Only these zones: A..B (without B), A.., or one number
    #[arg(long, value_name = "A..B")]
    pub zones: Option<Span>,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true))]
#[command(after_help = "\
Examples:
  zonestore drive reset d.zoned --zone 17
  zonestore drive reset d.zoned --all --yes

A drive that a server or another command uses is not touched.")]
pub struct DriveReset {
    /// The drive
    pub drive: PathBuf,
    /// This zone
    #[arg(long, value_name = "N", group = "which")]
    pub zone: Option<u32>,
    /// Every sequential zone
    #[arg(long, group = "which")]
    pub all: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore drive conformance /dev/nvme0n1 --yes-erase

Every command in every condition, limits, ranges, data. What the drive cannot be asked is left out and
said; what it does its own way, where the standards let it, is said too.")]
pub struct DriveConformance {
    /// The drive
    pub drive: PathBuf,
    /// Everything on the drive may be destroyed
    #[arg(long)]
    pub yes_erase: bool,
}
