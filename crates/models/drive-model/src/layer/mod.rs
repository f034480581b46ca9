//! Translation layers: where a logical block lies, and what a write of it costs.

mod direct;
mod fully_associative;
mod interface;
mod seagate;
mod set_associative;
mod shape;

pub use direct::Direct;
pub use fully_associative::{FullyAssociative, FullyAssociativeShape};
pub use interface::{Cleaning, Layer, Turnout};
pub use seagate::{Seagate, SeagateShape};
pub use set_associative::{CachePlace, SetAssociative, SetAssociativeShape};
pub use shape::{LayerShape, MOST_BANDS};

use crate::caveat::CaveatScriptor;
use crate::disk::Disk;
use crate::queue::Queue;
use crate::request::Lba;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The translation layer of a disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Translation {
    /// None: a conventional drive.
    Direct(Direct),
    /// The set-associative layer.
    SetAssociative(SetAssociative),
    /// The fully-associative layer.
    FullyAssociative(FullyAssociative),
    /// A layer like that of Seagate's drive.
    Seagate(Box<Seagate>),
    /// None, on a shingled disk whose host is told of damage.
    CaveatScriptor(CaveatScriptor),
}

impl Translation {
    fn layer(&self) -> &dyn Layer {
        match self {
            Self::Direct(layer) => layer,
            Self::SetAssociative(layer) => layer,
            Self::FullyAssociative(layer) => layer,
            Self::Seagate(layer) => &**layer,
            Self::CaveatScriptor(layer) => layer,
        }
    }

    fn layer_mut(&mut self) -> &mut dyn Layer {
        match self {
            Self::Direct(layer) => layer,
            Self::SetAssociative(layer) => layer,
            Self::FullyAssociative(layer) => layer,
            Self::Seagate(layer) => &mut **layer,
            Self::CaveatScriptor(layer) => layer,
        }
    }
}

impl Layer for Translation {
    fn blocks(&self) -> u64 {
        self.layer().blocks()
    }

    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        self.layer_mut().serve(disk, now, queue)
    }

    fn idle(&mut self, disk: &mut Disk, from: Time, until: Time) -> Time {
        self.layer_mut().idle(disk, from, until)
    }

    fn set_volatile_cache(&mut self, on: bool) {
        self.layer_mut().set_volatile_cache(on);
    }

    fn power_cut(&mut self, disk: &Disk, now: Time) {
        self.layer_mut().power_cut(disk, now);
    }

    fn reached(&self, disk: &Disk, now: Time) -> u64 {
        self.layer().reached(disk, now)
    }

    fn unreadable(&self, lba: Lba, blocks: u64) -> Option<Lba> {
        self.layer().unreadable(lba, blocks)
    }

    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        self.layer().endangered(lba, blocks)
    }

    fn cleaning(&self) -> Cleaning {
        self.layer().cleaning()
    }

    fn is_dirty(&self) -> bool {
        self.layer().is_dirty()
    }
}
