//! `zonestore drive …`

use super::OnDrive;
use clap::{Args, Subcommand};
use device::ShapeRequest;
use std::path::PathBuf;
use terminal::{Duration, Size, Span};

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
    /// Try a drive before it is trusted with data: conformance, speed, power cuts; destroys everything on it
    Qualify(DriveQualify),
    /// Write until the power goes, then see whether all that was flushed is there; destroys everything on it
    PowerTest(DrivePowerTest),
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
    /// Every sequential zone; the first MiB of every conventional one is overwritten with zeros
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

The suite sends every command in every zone condition, and tests limits, ranges and data. It names what the
drive cannot be asked, and where the drive differs within what the standards permit.")]
pub struct DriveConformance {
    /// The drive
    pub drive: PathBuf,
    /// Everything on the drive may be destroyed
    #[arg(long)]
    pub yes_erase: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore drive qualify /dev/sda --yes-erase --report sda.md
  zonestore drive qualify /dev/sda --yes-erase --report sda.md --power-log /root/sda.power

It takes some minutes on a disk. Of an emulated drive its figures are those of the host's page cache. A report of a drive
that was never tried before is welcome: open an issue with it.")]
pub struct DriveQualify {
    /// The drive
    pub drive: PathBuf,
    /// Write what was found to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Include what the power tests of this log have left: check each with `drive power-test --check` first
    #[arg(long, value_name = "LOG")]
    pub power_log: Option<PathBuf>,
    /// Zones that are filled at the drive's start, in its middle and at its end
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub zones: u32,
    /// The longest a measurement takes
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub most_time: Duration,
    /// Everything on the drive may be destroyed
    #[arg(long)]
    pub yes_erase: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore drive power-test /dev/sda --log /root/sda.power --yes-erase     then cut the drive's power
  zonestore drive power-test /dev/sda --log /root/sda.power --check         when it is back
  ssh host zonestore drive power-test /dev/sda --log - --yes-erase > sda.power    to cut the power of the whole host

The log must be on another drive, or on another machine, that keeps it. Each round is added to it. Cut the power of the drive
itself: a reset of the host leaves a drive its memory. With --log -, flushes may still be on their way when the power goes. So the
check allows for 1,024 more, and says nothing of zones that these erase: a file in --log is stricter.")]
pub struct DrivePowerTest {
    /// The drive
    pub drive: PathBuf,
    /// Where to note each flush that the drive has answered; - for standard output
    #[arg(long, value_name = "LOG")]
    pub log: PathBuf,
    /// Compare the drive with the last round of the log, and write nothing
    #[arg(long)]
    pub check: bool,
    /// How many zones are written to, again and again
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub zones: u32,
    /// End after so many flushes if the power is still on
    #[arg(long, value_name = "N")]
    pub flushes: Option<u64>,
    /// Everything on the drive may be destroyed
    #[arg(long)]
    pub yes_erase: bool,
}
