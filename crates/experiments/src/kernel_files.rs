//! Linux's file systems on the disk of the Caveat-Scriptor thesis, for comparison with the thesis's two file systems:
//! their requests were recorded once by `scripts/record-files`.

use crate::experiment::{Run, Stopped};
use crate::ext4_lazy::trace;
use crate::file_loads::Load;
use crate::guest_replay::Player;
use crate::guest_trace::GuestTrace;
use crate::smrfs_bed::DISK;
use drive_model::Profile;

/// A file system of Linux, of which there is a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KernelFiles {
    Ext4,
    Nilfs2,
    F2fs,
}

impl KernelFiles {
    pub(crate) const ALL: [Self; 3] = [Self::Ext4, Self::Nilfs2, Self::F2fs];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Nilfs2 => "NILFS2",
            Self::F2fs => "F2FS",
        }
    }

    pub(crate) fn trace(self) -> Result<GuestTrace, Stopped> {
        let (name, packed): (_, &[u8]) = match self {
            Self::Ext4 => trace!("thesis-ext4"),
            Self::Nilfs2 => trace!("thesis-nilfs2"),
            Self::F2fs => trace!("thesis-f2fs"),
        };
        GuestTrace::decode(name, packed)
    }
}

/// Replays a load on a new disk. Returns the seconds of each of its parts, until its writes are durable.
pub(crate) fn seconds(run: &Run<'_>, trace: &GuestTrace, load: Load) -> Result<Vec<f64>, Stopped> {
    let mut profile = Profile::named(DISK)?;
    profile.zones = None;
    let mut player = Player::new(profile.drive(run.seed)?);
    let parts = load.parts().iter();
    let stages = parts.map(|part| trace.stage(&format!("{}-{part}", load.name())));
    stages
        .map(|stage| player.play(run, &stage?.requests))
        .collect()
}
