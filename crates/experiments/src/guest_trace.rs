//! Traces of a guest's requests to its drive, recorded by `kernel/ext4-lazy/record`: compressed text, whose lines are
//! described in docs/ext4-lazy.md.

use crate::experiment::Stopped;
use drive_model::{Lba, Request, RequestKind};
use serde::Deserialize;
use std::str::FromStr;

/// The content of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Data of files.
    Data,
    /// Metadata of the file system, in its home place.
    Metadata,
    /// The journal.
    Journal,
    /// The superblock.
    Superblock,
}

/// A request, and the content of its blocks; `None` for a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traced {
    pub request: Request,
    pub content: Option<Content>,
    /// Whether it is a read ahead, which no process waited for.
    pub ahead: bool,
}

/// A part of a load, which begins with a cold cache.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    pub name: String,
    /// Seconds that the work took in the guest, without the sync after it.
    pub seconds: f64,
    /// Of these, seconds in which the guest's processor was busy.
    pub processor: f64,
    pub requests: Vec<Traced>,
    /// Number of requests when the work was done; the later ones belong to the sync.
    pub work: usize,
}

/// The origin of a trace.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Head {
    /// The version of the format.
    pub trace: u32,
    pub load: String,
    pub file_system: String,
    /// The printed load ÷ this one: 40 for a fortieth.
    pub scale: u32,
    pub kernel: String,
    pub date: String,
    pub seed: u64,
    pub partition_blocks: u64,
    /// Size of the journal. This field and the next two are in traces of ext4-lazy and of what it is compared with.
    #[serde(default)]
    pub journal_mib: u64,
    /// Entries of the map at the end; `log_used` has the blocks of the journal between its tail and its head.
    #[serde(default)]
    pub mapped: u64,
    #[serde(default)]
    pub log_used: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct GuestTrace {
    pub head: Head,
    pub stages: Vec<Stage>,
}

/// The most bytes of an unpacked trace, so that other data cannot fill the memory.
const MOST_BYTES: usize = 64 << 20;
const VERSION: u32 = 1;

impl GuestTrace {
    /// Unpacks and parses a trace.
    ///
    /// # Errors
    /// The bytes are no trace, or one of another version.
    pub fn decode(name: &str, packed: &[u8]) -> Result<Self, Stopped> {
        let text = zstd::bulk::decompress(packed, MOST_BYTES)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| wrong(name, 0, "is not compressed text"))?;
        Self::parse(name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self, Stopped> {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        let head: Head = serde_json::from_str(head).map_err(|e| wrong(name, 1, &e.to_string()))?;
        if head.trace != VERSION {
            return Err(wrong(name, 1, "is of another version"));
        }
        let mut stages: Vec<Stage> = Vec::new();
        let mut end = 0;
        for (number, line) in lines.enumerate() {
            let bad = || wrong(name, number + 2, "is not understood");
            if let Some(words) = line.strip_prefix("= ") {
                stages.push(stage(words).ok_or_else(bad)?);
                end = 0;
                continue;
            }
            let stage = stages.last_mut().ok_or_else(bad)?;
            if line == "-" {
                stage.work = stage.requests.len();
            } else {
                let traced = request(line, end).ok_or_else(bad)?;
                if traced.content.is_some() {
                    end = traced.request.end().0;
                }
                stage.requests.push(traced);
            }
        }
        for stage in &mut stages {
            stage.work = stage.work.min(stage.requests.len());
        }
        Ok(Self { head, stages })
    }

    /// The stage of this name.
    ///
    /// # Errors
    /// The trace has none of this name.
    pub fn stage(&self, name: &str) -> Result<&Stage, Stopped> {
        let found = self.stages.iter().find(|stage| stage.name == name);
        found.ok_or_else(|| wrong(&self.head.load, 0, &format!("has no stage {name}")))
    }

    /// The origin in one line for people.
    pub fn origin(&self) -> String {
        let h = &self.head;
        format!(
            "{} {}: trace recorded {} with Linux {}, seed {}, 1/{} of the printed load",
            h.load, h.file_system, h.date, h.kernel, h.seed, h.scale
        )
    }
}

impl Stage {
    /// Blocks of this content that were written, or read if `written` is false.
    pub fn blocks(&self, content: Content, written: bool) -> u64 {
        let of =
            |t: &&Traced| t.content == Some(content) && t.request.operation.is_write() == written;
        let all = self.requests.iter().filter(of);
        all.map(|t| u64::from(t.request.blocks)).sum()
    }

    /// [`Self::blocks`] in MiB.
    pub fn mib(&self, content: Content, written: bool) -> f64 {
        self.blocks(content, written) as f64 / 256.0
    }
}

/// Parses `NAME SECONDS PROCESSOR`.
fn stage(words: &str) -> Option<Stage> {
    let mut words = words.split(' ');
    Some(Stage {
        name: words.next()?.to_owned(),
        seconds: number(words.next())?,
        processor: number(words.next())?,
        requests: Vec::new(),
        work: usize::MAX,
    })
}

/// Parses `f`, or kind and content, the distance from the end of the previous request, and blocks. Milliseconds at
/// the end of a line are ignored.
fn request(line: &str, end: u64) -> Option<Traced> {
    let mut words = line.split(' ');
    let mut letters = words.next()?.chars();
    let (kind, content) = (letters.next()?, letters.next());
    let mut place = |operation| {
        let lba = Lba(end.checked_add_signed(number(words.next())?)?);
        let blocks = number::<u32>(words.next())?;
        lba.0.checked_add(u64::from(blocks))?;
        let request = Request {
            operation,
            lba,
            blocks,
        };
        Some((request, Some(content_of(content?)?)))
    };
    let (request, content) = match kind {
        'f' => (Request::flush(), None),
        'r' | 'a' => place(RequestKind::Read)?,
        'w' => place(RequestKind::Write)?,
        _ => return None,
    };
    Some(Traced {
        request,
        content,
        ahead: kind == 'a',
    })
}

fn content_of(letter: char) -> Option<Content> {
    Some(match letter {
        'd' => Content::Data,
        'm' => Content::Metadata,
        'j' => Content::Journal,
        's' => Content::Superblock,
        _ => return None,
    })
}

fn number<T: FromStr>(word: Option<&str>) -> Option<T> {
    word?.parse().ok()
}

fn wrong(name: &str, line: usize, reason: &str) -> Stopped {
    let place = match line {
        0 => String::new(),
        line => format!(", line {line},"),
    };
    Stopped::Trace {
        reason: format!("the trace {name}{place} {reason}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HEAD: &str = r#"{"trace":1,"load":"l","file_system":"lazy","scale":40,"kernel":"6.1","date":"d","seed":1,
"partition_blocks":9,"journal_mib":1,"mapped":0,"log_used":0}"#;

    fn parsed(lines: &str) -> Result<GuestTrace, Stopped> {
        GuestTrace::parse("t", &format!("{}\n{lines}", HEAD.replace('\n', "")))
    }

    #[test]
    fn lines_become_requests_one_after_the_other() {
        let trace = parsed("= Make 1.5 1\nrm 7 2\nwj -1 3 +20\nf\n-\nad 5 1\n").unwrap();
        let stage = trace.stage("Make").unwrap();
        assert_eq!((stage.seconds, stage.work), (1.5, 3));
        let asked: Vec<_> = stage.requests.iter().map(|t| t.request).collect();
        let expected = [
            Request::read(Lba(7), 2),
            Request::write(Lba(8), 3),
            Request::flush(),
            Request::read(Lba(16), 1),
        ];
        assert_eq!(asked, expected);
        assert!(stage.requests[3].ahead && !stage.requests[0].ahead);
        assert_eq!(stage.blocks(Content::Journal, true), 3);
        assert_eq!(stage.blocks(Content::Journal, false), 0);
    }

    #[test]
    fn what_is_no_trace_is_refused_with_the_line() {
        for lines in [
            "rm 1 1",
            "= a",
            "= a 1 1\nx 1 1",
            "= a 1 1\nrm -1 1",
            "= a 1 1\nrq 1 1",
        ] {
            let error = parsed(lines).unwrap_err().to_string();
            assert!(error.contains("line "), "{lines}: {error}");
        }
        assert!(GuestTrace::decode("t", b"none").is_err());
        assert!(
            GuestTrace::parse(
                "t",
                &HEAD.replace("\"trace\":1", "\"trace\":2").replace('\n', "")
            )
            .is_err()
        );
    }
}
