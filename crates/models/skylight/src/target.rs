//! The drive under examination: a model in virtual time ([`Model`]), or a device in real time ([`real`]).

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

/// A request with its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The request.
    pub request: Request,
    /// Time from arrival to completion.
    pub latency: Span,
    /// Time of completion.
    pub at: Time,
    /// Success, or why the request failed.
    pub result: Result<(), Failure>,
}

/// Why the examination ended early.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TargetError {
    /// The device does not answer any more.
    #[error("{what} does not answer: {reason}")]
    Gone {
        /// Name of the device.
        what: String,
        /// The system's message.
        reason: String,
    },
    /// A request exceeded the watchdog's limit.
    #[error("a request has been under way for {seconds} s: the device is stuck")]
    Stuck {
        /// How long the request has been under way.
        seconds: u64,
    },
    /// A request failed.
    #[error("a {what} at byte {at} failed: {reason}")]
    Failed {
        /// Kind of the request.
        what: &'static str,
        /// Byte offset of the request.
        at: u64,
        /// Message of the system or of the drive.
        reason: String,
    },
    /// A request transferred fewer bytes than it asked for.
    #[error("a {what} at byte {at} did {done} of {asked} bytes")]
    Short {
        /// Kind of the request.
        what: &'static str,
        /// Byte offset of the request.
        at: u64,
        /// Bytes done.
        done: u64,
        /// Bytes asked for.
        asked: u64,
    },
    /// The device is smaller than it reports.
    #[error("it says that it has {reported} bytes, but it ends at {found}")]
    Ends {
        /// Reported size in bytes.
        reported: u64,
        /// Bytes before the first one that cannot be read, found by bisection.
        found: u64,
    },
    /// Data written at one offset is read at another: the addresses wrap around.
    #[error(
        "it says that it has {reported} bytes, but what is written at byte {at} is found at byte \
         {found}: it is smaller than it says, and begins again"
    )]
    Wraps {
        /// Reported size in bytes.
        reported: u64,
        /// Offset of the write.
        at: u64,
        /// Offset where the data was found.
        found: u64,
    },
    /// The device returns other data than was written.
    #[error("what is written at byte {at} is not there when it is read")]
    Forgets {
        /// Byte offset.
        at: u64,
    },
    /// The time budget is used up.
    #[error("the time given is over")]
    TimeOver,
    /// The user has interrupted the examination.
    #[error("interrupted")]
    Interrupted,
}

impl TargetError {
    /// The error for a refused write that no rule of zones explains.
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

/// A drive under test. All times are those of its own clock, which is virtual for a model.
pub trait Target {
    /// Number of blocks of 4 KiB.
    fn blocks(&self) -> u64;

    /// Time of its clock.
    fn now(&self) -> Time;

    /// Keeps `depth` requests under way, and passes each answer to `watch`; sends no more once `watch` breaks.
    ///
    /// # Errors
    /// The target does not answer.
    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError>;

    /// Leaves the drive idle for a span, or until the limits end the examination; the next request returns that
    /// error.
    fn pause(&mut self, span: Span);

    /// Switches the volatile write cache; returns whether that was possible.
    fn set_volatile_cache(&mut self, on: bool) -> bool;

    /// Switches read-ahead; returns whether that was possible.
    fn set_look_ahead(&mut self, on: bool) -> bool;

    /// Restores the factory state (secure erase); returns whether that was possible.
    fn erase(&mut self) -> bool;

    /// Cuts the power during the present work and restores it; returns whether that was possible.
    fn power_cut(&mut self) -> bool {
        false
    }

    /// Whether [`Self::erase`] is possible.
    fn can_erase(&self) -> bool {
        false
    }

    /// Characteristics that the drive reports.
    fn told(&self) -> Told {
        Told::default()
    }

    /// The system's message on the last write that was refused, if there is a system.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// Checks that the drive is as large as it reports, by writes too if they are allowed.
    ///
    /// # Errors
    /// The drive is smaller, or does not answer.
    fn check_size(&mut self, _write: bool) -> Result<(), TargetError> {
        Ok(())
    }
}

/// Runs requests as [`Target::run`] does; a failed request is an error.
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

/// The kind of a request, for error messages.
const fn name(operation: RequestKind) -> &'static str {
    match operation {
        RequestKind::Read => "read",
        RequestKind::Write | RequestKind::WriteThrough | RequestKind::Append => "write",
        RequestKind::Flush => "flush",
        RequestKind::Trim => "trim",
        _ => "command on a zone",
    }
}

/// Runs requests; returns the answers in order of completion.
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

/// As [`gather`], but keeps the answers that came before an error.
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

/// Runs requests one at a time until one fails; returns the answers before that, and whether one failed.
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
