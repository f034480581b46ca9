//! A drive as the cluster has it: a model, or times that were drawn.

use super::job::{Ended, Job};
use super::model_disk::ModelDisk;
use super::served_disk::ServedDisk;
use drive_model::{Span, Time};

/// See the head of this file.
#[derive(Debug)]
pub enum Disk {
    /// One job after the other.
    Served(Box<ServedDisk>),
    /// All that comes goes to a model's queue.
    Model(Box<ModelDisk>),
}

impl Disk {
    /// Takes a job at `now`.
    pub fn take(&mut self, job: Job, now: Time) {
        match self {
            Self::Served(disk) => disk.take(job, now),
            Self::Model(disk) => disk.take(job, now),
        }
    }

    /// When something may end, if nothing more comes.
    pub fn next_moment(&self) -> Option<Time> {
        match self {
            Self::Served(disk) => disk.next_moment(),
            Self::Model(disk) => disk.next_moment(),
        }
    }

    /// A job that is done by `now`.
    pub fn ended_by(&mut self, now: Time) -> Option<Ended> {
        match self {
            Self::Served(disk) => disk.ended_by(now),
            Self::Model(disk) => disk.ended_by(now),
        }
    }

    /// A zone of the data is reset, which begins at this byte.
    pub fn reset(&mut self, at: u64, now: Time) {
        if let Self::Model(disk) = self {
            disk.reset(at, now);
        }
    }

    /// How long it has worked.
    pub fn busy(&self, now: Time) -> Span {
        match self {
            Self::Served(disk) => disk.busy(),
            Self::Model(disk) => disk.busy(now),
        }
    }

    /// Requests that a model refused.
    pub fn refused(&self) -> u64 {
        match self {
            Self::Served(_) => 0,
            Self::Model(disk) => disk.refused(),
        }
    }
}
