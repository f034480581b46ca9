//! Log lines that are written whole or counted as lost: a full disk does not drop lines silently.

use serde_json::json;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// Format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Text,
    Json,
}

/// The writer of a log's lines to `out`. Loss is reported on `aside` too: once when the first line is lost, and once
/// when lines can be written again.
pub(crate) struct Lines<W> {
    /// Where the lines are written.
    pub out: W,
    /// Whether the output ends within a line, to which the next line would be appended.
    pub is_torn: bool,
    aside: Box<dyn Write + Send>,
    name: String,
    form: Form,
    /// Number of lines lost since the last one that was written.
    missed: u64,
    /// Number of lines lost in total. Atomic, so that it can be read while a line waits for its disk.
    lost: Arc<AtomicU64>,
}

impl<W: Write> Lines<W> {
    /// `name` names `out` in messages.
    pub fn new(out: W, aside: Box<dyn Write + Send>, name: String, form: Form) -> Self {
        Self {
            out,
            is_torn: false,
            aside,
            name,
            form,
            missed: 0,
            lost: Arc::default(),
        }
    }

    /// Number of lines lost in total.
    pub fn lost(&self) -> Arc<AtomicU64> {
        self.lost.clone()
    }

    /// Writes a complete line, or counts it as lost. An earlier loss is reported first.
    pub fn put(&mut self, line: &[u8]) {
        let told = self.tell_missed();
        let Err(error) = told.and_then(|()| self.write(line)) else {
            return;
        };
        self.lost.fetch_add(1, Relaxed);
        self.missed += 1;
        if self.missed == 1 {
            let name = &self.name;
            let words =
                format!("{name}: {error}: lines of this log are lost until it can be written");
            self.say("ERROR", &words);
        }
    }

    /// Reports unreported losses on `aside`, at the end of the process.
    pub fn finish(&mut self) {
        if self.missed > 0 && self.tell_missed().is_err() {
            self.say("ERROR", &format!("{}: {}", self.name, words(self.missed)));
            self.missed = 0;
        }
    }

    fn tell_missed(&mut self) -> io::Result<()> {
        if self.missed == 0 {
            return Ok(());
        }
        let words = words(self.missed);
        self.write(line(self.form, "ERROR", &words).as_bytes())?;
        self.missed = 0;
        self.say(
            "WARN",
            &format!("{}: {words}; it is written again", self.name),
        );
        Ok(())
    }

    fn say(&mut self, level: &str, words: &str) {
        // If `aside` cannot be written either, there is no other place for the message.
        let _ = self
            .aside
            .write_all(line(self.form, level, words).as_bytes());
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let apart = self.is_torn.then(|| [b"\n", line].concat());
        let mut left = apart.as_deref().unwrap_or(line);
        while !left.is_empty() {
            match self.out.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    let (done, rest) = left.split_at(written);
                    self.is_torn = done.last() != Some(&b'\n');
                    left = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn words(lost: u64) -> String {
    let lines = if lost == 1 { "line" } else { "lines" };
    format!("{lost} {lines} lost")
}

/// A line in the format of the log: `tracing`, which formats the others, cannot be called in the middle of one.
fn line(form: Form, level: &str, words: &str) -> String {
    const TARGET: &str = "log";
    let mut time = String::new();
    // If the time cannot be formatted, the line is written without it.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    match form {
        Form::Text => format!("{time} {level:>5} {TARGET}: {words}\n"),
        Form::Json => {
            let fields =
                json!({ "timestamp": time, "level": level, "message": words, "target": TARGET });
            format!("{fields}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A disk with so much room.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Disk {
        fn with_room(room: usize) -> Self {
            let disk = Self::default();
            disk.make_room(room);
            disk
        }

        fn make_room(&self, room: usize) {
            self.0.lock().unwrap().1 = room;
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock().unwrap();
            let taken = bytes.len().min(disk.1);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.0.extend_from_slice(&bytes[..taken]);
            disk.1 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(disk: &Disk, aside: &Disk, form: Form) -> Lines<Disk> {
        let aside = Box::new(aside.clone());
        Lines::new(disk.clone(), aside, "a.log".to_owned(), form)
    }

    /// What lines say behind their times.
    fn said(text: &str) -> Vec<&str> {
        text.lines()
            .map(|line| line.split_once(" log: ").map_or(line, |(_, said)| said))
            .collect()
    }

    #[test]
    fn what_a_full_disk_takes_is_told_once_and_counted() {
        let (disk, aside) = (Disk::with_room(9), Disk::with_room(10_000));
        let mut lines = lines(&disk, &aside, Form::Text);
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
            lines.put(line.as_bytes());
        }
        assert_eq!(
            (disk.text().as_str(), lines.lost.load(Relaxed)),
            ("one\ntwo\nt", 3)
        );
        let told = aside.text();
        let [first] = said(&told)[..] else {
            panic!("{told}")
        };
        assert!(first.starts_with("a.log: ") && first.ends_with("until it can be written"));
        assert!(told.contains(" ERROR log: "));

        disk.make_room(10_000);
        lines.put(b"six\n");
        lines.put(b"seven\n");
        let text = disk.text();
        assert_eq!(
            said(&text),
            ["one", "two", "t", "3 lines lost", "six", "seven"]
        );
        let told = aside.text();
        assert_eq!(
            said(&told)[1..],
            ["a.log: 3 lines lost; it is written again"]
        );
        assert_eq!(lines.lost.load(Relaxed), 3);
    }

    #[test]
    fn room_for_the_news_alone_begins_a_new_loss() {
        let (disk, aside) = (Disk::with_room(0), Disk::with_room(10_000));
        let mut lines = lines(&disk, &aside, Form::Text);
        lines.put(b"one\n");
        disk.make_room(line(Form::Text, "ERROR", "1 line lost").len());
        lines.put(b"two\n");
        disk.make_room(10_000);
        lines.put(b"three\n");
        let text = disk.text();
        assert_eq!(said(&text), ["1 line lost", "1 line lost", "three"]);
        assert_eq!(
            (aside.text().lines().count(), lines.lost.load(Relaxed)),
            (4, 2)
        );
    }

    #[test]
    fn news_is_json_where_lines_are() {
        let (disk, aside) = (Disk::with_room(1), Disk::with_room(10_000));
        let mut lines = lines(&disk, &aside, Form::Json);
        lines.put(b"{}\n");
        disk.make_room(10_000);
        lines.put(b"{}\n");
        for text in [&disk.text()[2..], &aside.text()] {
            for line in text.lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
        }
        assert!(disk.text().contains(r#""message":"1 line lost""#));
    }

    #[test]
    fn what_is_lost_at_the_end_is_told() {
        let (disk, aside) = (Disk::with_room(0), Disk::with_room(10_000));
        let mut lines = lines(&disk, &aside, Form::Text);
        lines.put(b"one\n");
        lines.put(b"two\n");
        lines.finish();
        lines.finish();
        let told = aside.text();
        assert_eq!(said(&told)[1..], ["a.log: 2 lines lost"]);
    }
}
