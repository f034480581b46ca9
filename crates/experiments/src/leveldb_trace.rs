//! Traces of the requests of LevelDB's file systems to their drives, recorded by `scripts/record-leveldb`: compressed
//! text.
//!
//! The first line is JSON and gives the origin. `= BYTES async|sync fill|read MOVED` begins a stage with values of
//! BYTES bytes, MOVED bytes in all. Each line after it is a request: `r`, `w` or `a` (a read ahead), the distance in
//! blocks of 4 KiB from the end of the previous request, and blocks; `f` is a flush; `z` (a zone is reset) and `e` (a
//! zone is finished) have that distance.

use crate::experiment::Stopped;
use crate::guest_trace::Traced;
use drive_model::{Lba, Request, RequestKind};
use serde::Deserialize;
use std::str::FromStr;

/// The load of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Bytes of a value.
    pub value: u64,
    /// Whether each put waits for its sync.
    pub synced: bool,
}

/// One part of a load.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    pub load: Load,
    /// Whether values are read instead of put.
    pub reads: bool,
    /// Bytes of all values.
    pub moved: u64,
    pub requests: Vec<Traced>,
}

/// The origin of a trace.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Head {
    /// The version of the format.
    pub trace: u32,
    pub file_system: String,
    pub date: String,
    pub kernel: String,
    pub leveldb: String,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LevelDbTrace {
    pub head: Head,
    pub stages: Vec<Stage>,
}

/// The most bytes of an unpacked trace, so that other data cannot fill the memory.
const MOST_BYTES: usize = 64 << 20;
const VERSION: u32 = 1;

impl LevelDbTrace {
    /// Unpacks and parses a trace.
    ///
    /// # Errors
    /// The bytes are no trace, or one of another version.
    pub fn decode(packed: &[u8]) -> Result<Self, Stopped> {
        let unpacked = zstd::bulk::decompress(packed, MOST_BYTES).map_err(Stopped::store)?;
        let text = String::from_utf8(unpacked).map_err(Stopped::store)?;
        let mut lines = text.lines();
        let head: Head =
            serde_json::from_str(lines.next().unwrap_or_default()).map_err(Stopped::store)?;
        if head.trace != VERSION {
            return Err(wrong(1, "another version"));
        }
        let mut stages: Vec<Stage> = Vec::new();
        let mut end = 0;
        for (number, line) in lines.enumerate() {
            let bad = || wrong(number + 2, "is not understood");
            if let Some(words) = line.strip_prefix("= ") {
                stages.push(stage(words).ok_or_else(bad)?);
                end = 0;
                continue;
            }
            let stage = stages.last_mut().ok_or_else(bad)?;
            stage
                .requests
                .push(request(line, &mut end).ok_or_else(bad)?);
        }
        Ok(Self { head, stages })
    }

    /// The stage of a load that reads, or puts if `reads` is false.
    ///
    /// # Errors
    /// The trace has no such stage.
    pub fn stage(&self, load: Load, reads: bool) -> Result<&Stage, Stopped> {
        let is_it = |stage: &&Stage| (stage.load, stage.reads) == (load, reads);
        let found = self.stages.iter().find(is_it);
        found.ok_or_else(|| wrong(0, &format!("lacks {load:?}, reads: {reads}")))
    }
}

fn stage(words: &str) -> Option<Stage> {
    let mut words = words.split(' ');
    Some(Stage {
        load: Load {
            value: number(words.next())?,
            synced: one_of(words.next()?, "async", "sync")?,
        },
        reads: one_of(words.next()?, "fill", "read")?,
        moved: number(words.next())?,
        requests: Vec::new(),
    })
}

fn one_of(word: &str, no: &str, yes: &str) -> Option<bool> {
    (word == no || word == yes).then_some(word == yes)
}

fn request(line: &str, end: &mut u64) -> Option<Traced> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let operation = match kind {
        "r" | "a" => RequestKind::Read,
        "w" => RequestKind::Write,
        "z" => RequestKind::ResetZone,
        "e" => RequestKind::FinishZone,
        "f" => RequestKind::Flush,
        _ => return None,
    };
    let mut request = Request::flush();
    request.operation = operation;
    if operation != RequestKind::Flush {
        request.lba = Lba(end.checked_add_signed(number(words.next())?)?);
        if matches!(operation, RequestKind::Read | RequestKind::Write) {
            request.blocks = number(words.next())?;
        }
        *end = request.lba.0.checked_add(u64::from(request.blocks))?;
    }
    // The trace does not tell what LevelDB wrote into the blocks.
    let (content, ahead) = (None, kind == "a");
    Some(Traced {
        request,
        content,
        ahead,
    })
}

fn number<T: FromStr>(word: Option<&str>) -> Option<T> {
    word?.parse().ok()
}

fn wrong(line: usize, reason: &str) -> Stopped {
    let reason = format!("a trace of LevelDB, line {line}: {reason}");
    Stopped::Store { reason }
}
