//! What is looked into: a model in virtual time, here, or a device in real time ([`real`]).

pub mod facts;
pub mod host;
pub mod limits;
mod model;
pub mod real;
mod size;

pub use block_device::host::medium::{Told, Zoned};
pub use block_device::host::{clock, medium};
pub use model::Model;

use drive_model::{BLOCK_BYTES, Failure, Lba, Request, RequestKind, Span, Time};
use std::ops::ControlFlow;
use thiserror::Error;

/// A request and how it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// How long it took.
    pub latency: Span,
    /// When it was done.
    pub at: Time,
    /// Whether it was done.
    pub result: Result<(), Failure>,
}

/// Why nothing more can be found out.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TargetError {
    /// The device does not answer any more.
    #[error("{what} does not answer: {reason}")]
    Gone {
        /// Which.
        what: String,
        /// What the system says.
        reason: String,
    },
    /// A request has taken too long.
    #[error("a request has been under way for {seconds} s: the device is stuck")]
    Stuck {
        /// How long.
        seconds: u64,
    },
    /// A request failed.
    #[error("a {what} at byte {at} failed: {reason}")]
    Failed {
        /// What was asked.
        what: &'static str,
        /// Where.
        at: u64,
        /// What the system, or the drive, says.
        reason: String,
    },
    /// Less than a request asked for was done.
    #[error("a {what} at byte {at} did {done} of {asked} bytes")]
    Short {
        /// What was asked.
        what: &'static str,
        /// Where.
        at: u64,
        /// Bytes done.
        done: u64,
        /// Bytes asked for.
        asked: u64,
    },
    /// There is less of it than it says.
    #[error("it says that it has {reported} bytes, but it ends at {found}")]
    Ends {
        /// Bytes that it says.
        reported: u64,
        /// Bytes in front of the first that cannot be read, found by halving.
        found: u64,
    },
    /// What is written in one place is read in another.
    #[error(
        "it says that it has {reported} bytes, but what is written at byte {at} is found at byte \
         {found}: it is smaller than it says, and begins again"
    )]
    Wraps {
        /// Bytes that it says.
        reported: u64,
        /// Where was written.
        at: u64,
        /// Where that was found.
        found: u64,
    },
    /// What is read is not what was written.
    #[error("what is written at byte {at} is not there when it is read")]
    Forgets {
        /// Where.
        at: u64,
    },
    /// It has been looked into for as long as it may.
    #[error("the time given is over")]
    TimeOver,
    /// Somebody wants it to stop.
    #[error("interrupted")]
    Interrupted,
}

impl TargetError {
    /// A write that was refused, and no rule of zones says why.
    pub(crate) fn refused(target: &dyn Target, lba: Lba) -> Self {
        let reason = target.refusal().map_or_else(
            || "the drive refuses it".into(),
            |system| format!("the drive refuses it, or is broken: {system}"),
        );
        Self::Failed {
            what: "write",
            at: lba.0 * BLOCK_BYTES,
            reason,
        }
    }
}

/// A drive under test. All times are its own: virtual for a model.
pub trait Target {
    /// Blocks of 4 KiB.
    fn blocks(&self) -> u64;

    /// Its clock.
    fn now(&self) -> Time;

    /// Sends requests, `depth` of them under way at a time, and shows each answer as it comes;
    /// no more are sent once `watch` breaks.
    ///
    /// # Errors
    /// The target does not answer.
    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError>;

    /// Leaves it alone for a while, or until nothing more may be asked; the next request says so.
    fn pause(&mut self, span: Span);

    /// Switches its volatile write cache; whether that was possible.
    fn set_volatile_cache(&mut self, on: bool) -> bool;

    /// Switches its reading ahead; whether that was possible.
    fn set_look_ahead(&mut self, on: bool) -> bool;

    /// Puts it back to how it left the factory (secure erase); whether that was possible.
    fn erase(&mut self) -> bool;

    /// Cuts its power in the middle of what it does and puts it on again; whether that was possible.
    fn power_cut(&mut self) -> bool {
        false
    }

    /// Whether that would be possible.
    fn can_erase(&self) -> bool {
        false
    }

    /// What it says of itself.
    fn told(&self) -> Told {
        Told::default()
    }

    /// What the system said of the last write that was refused, if there is a system.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// Looks whether it is as large as it says, by writing too if that is allowed.
    ///
    /// # Errors
    /// It is not, or does not answer.
    fn check_size(&mut self, _write: bool) -> Result<(), TargetError> {
        Ok(())
    }
}

/// Sends requests as [`Target::run`] does, and takes one that failed for the end.
///
/// # Errors
/// The target does not answer, or a request failed.
pub fn serve(
    target: &mut dyn Target,
    depth: usize,
    requests: &mut dyn Iterator<Item = Request>,
    watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
) -> Result<(), TargetError> {
    let mut failed = None;
    target.run(depth, requests, &mut |answer| match answer.result {
        Ok(()) => watch(answer),
        Err(failure) => {
            failed.get_or_insert((answer.request, failure));
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(()), |(request, failure)| {
        Err(match failure {
            Failure::Refused(_) => TargetError::refused(target, request.lba),
            failure => TargetError::Failed {
                what: name(request.operation),
                at: request.lba.0 * BLOCK_BYTES,
                reason: failure.to_string(),
            },
        })
    })
}

/// What a request is called in an error.
const fn name(operation: RequestKind) -> &'static str {
    match operation {
        RequestKind::Read => "read",
        RequestKind::Write | RequestKind::WriteThrough | RequestKind::Append => "write",
        RequestKind::Flush => "flush",
        RequestKind::Trim => "trim",
        _ => "command on a zone",
    }
}

/// Sends requests and gathers the answers in the order in which they came.
///
/// # Errors
/// The target does not answer, or a request failed.
pub fn gather(
    target: &mut dyn Target,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Result<Vec<Answer>, TargetError> {
    let mut answers = Vec::new();
    gather_into(&mut answers, target, depth, requests)?;
    Ok(answers)
}

/// Does what [`gather`] does, and keeps the answers that came before an error.
///
/// # Errors
/// The target does not answer, or a request failed.
pub fn gather_into(
    answers: &mut Vec<Answer>,
    target: &mut dyn Target,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Result<(), TargetError> {
    serve(target, depth, &mut requests.into_iter(), &mut |answer| {
        answers.push(*answer);
        ControlFlow::Continue(())
    })
}

/// Sends requests one at a time, as far as the drive does what they ask: answers up to the first that
/// it did not, and whether there was one.
///
/// # Errors
/// The target does not answer.
pub fn attempt(
    target: &mut dyn Target,
    requests: impl IntoIterator<Item = Request>,
) -> Result<(Vec<Answer>, Option<Failure>), TargetError> {
    let (mut answers, mut failure) = (Vec::new(), None);
    target.run(1, &mut requests.into_iter(), &mut |answer| {
        match answer.result {
            Ok(()) => answers.push(*answer),
            Err(why) => {
                failure = Some(why);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok((answers, failure))
}

/// Latencies in milliseconds.
pub fn millis(answers: &[Answer]) -> Vec<f64> {
    answers
        .iter()
        .map(|answer| answer.latency.millis())
        .collect()
}
