//! The steps of a run. Each is complete in itself, so that any of them can be left out when a failing run is shortened.

use super::call::{Call, Data, Target};

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Commit {
        calls: Vec<Call>,
        readable: bool,
    },
    /// Waits until all readable commits are durable.
    Wait,
    /// Writes data that is never committed.
    Abandon(Data),
    /// Writes half of an upload, or the other half and its commit.
    Upload(Target, Data),
    /// Reads the object that was opened by the last such step, and opens this one.
    Hold(Target),
    Clean,
    Seal,
    Flush,
    Tend,
    Check,
    /// Makes the drive fail soon; the number says when and how.
    Trouble(u16),
    /// Restarts the store; `number` chooses the mount options.
    Restart {
        clean: bool,
        number: u32,
    },
}
