//! What a run is made of. A step says all that it needs, so that any of a run's steps can be left out.

use super::call::{Call, Data, Target};

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Commit {
        calls: Vec<Call>,
        readable: bool,
    },
    /// Waits until what is readable is durable.
    Wait,
    /// Data that is never committed.
    Abandon(Data),
    /// Half of an upload, then the other half and its commit.
    Upload(Target, Data),
    /// Opens an object, reads it much later.
    Hold(Target),
    Clean,
    Seal,
    Flush,
    Tend,
    Check,
    /// The drive fails so many commands later.
    Trouble(u16),
    /// The number says how what follows is written.
    Restart {
        clean: bool,
        number: u32,
    },
}
