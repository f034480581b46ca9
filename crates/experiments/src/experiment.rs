//! The interface of an experiment: its definition, the parameters of a run, and its outcome.

use crate::expected::Expected;
use crate::table::Table;
use drive_model::{Completion, DiskDrive, Model, Profile, ProfileError, Random, Request, Time};
use plot::Figure;
use skylight::TargetError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A printed table, figure or claim that can be measured again.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Name on the command line: that of the table, figure or section, or a word.
    pub id: &'static str,
    /// The result that it shows, in a sentence.
    pub title: &'static str,
    /// Where it is printed: paper and section.
    pub source: &'static str,
    /// The printed numbers, row by row.
    pub expected: fn() -> Vec<Expected>,
    /// Measures the rows of `expected`, in their order.
    pub measure: fn(&mut Run<'_>) -> Result<Outcome, Stopped>,
}

/// The measurements of one run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Outcome {
    /// A number for each row of [`Experiment::expected`].
    pub measured: Vec<f64>,
    /// The figures, each with its file name without extension.
    pub figures: Vec<(String, Figure)>,
}

impl From<Vec<f64>> for Outcome {
    fn from(measured: Vec<f64>) -> Self {
        Self {
            measured,
            figures: Vec::new(),
        }
    }
}

impl Outcome {
    /// Adds a figure, whose file name is its number.
    #[must_use]
    pub fn with(mut self, figure: Figure) -> Self {
        self.figures.push((figure.number.to_owned(), figure));
        self
    }
}

/// The amount of work, as a share of what it takes to draw a whole figure. Where less work would measure something
/// else, an experiment keeps it the same.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale(pub f64);

impl Scale {
    /// The scale of tests.
    pub const SMALL: Self = Self(0.1);
    /// The scale of whole figures.
    pub const FULL: Self = Self(1.0);
}

/// Why an experiment has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Stopped {
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// A model's profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A drive did not answer.
    #[error(transparent)]
    Target(TargetError),
    /// A drive refused a request that it should have carried out.
    #[error("{request} was refused: {reason}")]
    Refused {
        /// The request.
        request: String,
        /// The drive's answer.
        reason: String,
    },
    /// A cluster cannot be simulated.
    #[error(transparent)]
    Cluster(sim::cluster::Impossible),
    /// A load cannot be simulated.
    #[error(transparent)]
    Load(#[from] sim::cleaning::Impossible),
    /// A trace that is built in cannot be read.
    #[error("{reason}")]
    Trace {
        /// The trace and the reason.
        reason: String,
    },
    /// The store or its drive failed.
    #[error("{reason}")]
    Store {
        /// The message of its error.
        reason: String,
    },
}

impl Stopped {
    pub(crate) fn refused(request: &Request, reason: &drive_model::Failure) -> Self {
        Self::Refused {
            request: format!("{request:?}"),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn store(error: impl std::error::Error) -> Self {
        let reason = error.to_string();
        Self::Store { reason }
    }
}

impl From<store::Error> for Stopped {
    fn from(error: store::Error) -> Self {
        Self::store(error)
    }
}

impl From<sim::cluster::Impossible> for Stopped {
    fn from(error: sim::cluster::Impossible) -> Self {
        match error {
            sim::cluster::Impossible::Interrupted => Self::Interrupted,
            other => Self::Cluster(other),
        }
    }
}

impl From<TargetError> for Stopped {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Interrupted => Self::Interrupted,
            other => Self::Target(other),
        }
    }
}

/// The parameters of one run of an experiment.
pub struct Run<'a> {
    /// Seed of random numbers, and so of places and of the platters' angles.
    pub seed: u64,
    /// The amount of work.
    pub scale: Scale,
    /// Whether figures are wanted that take more requests than the table does.
    pub figures: bool,
    /// Set when the run is to stop.
    pub interrupted: Arc<AtomicBool>,
    /// Called with the name of each part that is measured next.
    pub progress: &'a mut dyn FnMut(&str),
}

impl Run<'_> {
    /// Reports the part that is measured next.
    ///
    /// # Errors
    /// [`Stopped::Interrupted`].
    pub fn next(&mut self, what: &str) -> Result<(), Stopped> {
        (self.progress)(what);
        if self.is_interrupted() {
            return Err(Stopped::Interrupted);
        }
        Ok(())
    }

    /// Whether the run is to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The count `full` at this scale, but at least `least`.
    pub fn scaled(&self, full: u64, least: u64) -> u64 {
        ((full as f64 * self.scale.0) as u64).max(least)
    }

    /// Random numbers for one purpose.
    pub fn random(&self, purpose: u64) -> Random {
        Random::new(self.seed.wrapping_mul(1_000).wrapping_add(purpose))
    }

    /// A model of a disk with volatile cache and read-ahead off, as the thesis CMU-CS-20-130 measured disks unless it
    /// says otherwise (section 2.4.2).
    ///
    /// # Errors
    /// There is no profile of this name.
    pub fn disk(&self, name: &str) -> Result<DiskDrive, ProfileError> {
        let mut drive = Profile::named(name)?.drive(self.seed)?;
        drive.set_volatile_cache(false);
        drive.set_look_ahead(false);
        Ok(drive)
    }

    /// Submits all `requests`, `depth` at a time. Returns their completions in the order of the requests.
    ///
    /// # Errors
    /// [`Stopped::Interrupted`].
    pub fn ask(
        &self,
        model: &mut dyn Model,
        start: Time,
        depth: usize,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<Vec<Completion>, Stopped> {
        let requests = requests.into_iter();
        let going = requests.take_while(|_| !self.is_interrupted());
        let done = drive_model::answers(model, start, depth, going);
        if self.is_interrupted() {
            return Err(Stopped::Interrupted);
        }
        Ok(done)
    }
}

impl Experiment {
    /// Measures the experiment. Returns the table, and the figures with their file names without extension.
    ///
    /// # Errors
    /// It could not be measured to the end.
    pub fn run(&self, run: &mut Run<'_>) -> Result<(Table, Vec<(String, Figure)>), Stopped> {
        let outcome = (self.measure)(run)?;
        let table = Table::new(
            (self.id, self.title, self.source),
            (self.expected)(),
            &outcome.measured,
        );
        Ok((table, outcome.figures))
    }
}
