//! The disk of a drive: a model, or a queue with drawn times.

use super::job::{Ended, Job};
use super::model_disk::ModelDisk;
use super::served_disk::ServedDisk;
use drive_model::{Span, Time};

/// One of the two ways to time a drive's jobs.
#[derive(Debug)]
pub enum Disk {
    /// Does one job at a time, for drawn times.
    Served(Box<ServedDisk>),
    /// Passes all jobs to the queue of a model.
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

    /// When a job may end, if no other is taken.
    pub fn next_moment(&self) -> Option<Time> {
        match self {
            Self::Served(disk) => disk.next_moment(),
            Self::Model(disk) => disk.next_moment(),
        }
    }

    /// Takes out a job that is done by `now`.
    pub fn ended_by(&mut self, now: Time) -> Option<Ended> {
        match self {
            Self::Served(disk) => disk.ended_by(now),
            Self::Model(disk) => disk.ended_by(now),
        }
    }

    /// Resets the zone that begins at byte `at` of the data.
    pub fn reset(&mut self, at: u64, now: Time) {
        if let Self::Model(disk) = self {
            disk.reset(at, now);
        }
    }

    /// Time in which it was busy until `now`.
    pub fn busy(&self, now: Time) -> Span {
        match self {
            Self::Served(disk) => disk.busy(),
            Self::Model(disk) => disk.busy(now),
        }
    }

    /// Number of requests that a model refused.
    pub fn refused(&self) -> u64 {
        match self {
            Self::Served(_) => 0,
            Self::Model(disk) => disk.refused(),
        }
    }
}
