//! A long answer: frames of bytes, each behind its length in four bytes (little-endian), an empty one at their end, and
//! behind it in JSON what came of it. So an error in the middle is told as one.

use serde::de::DeserializeOwned;
use std::io::{self, Write};

const LENGTH: usize = 4;

/// One frame. Empty, it is the last.
pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), bytes].concat()
}

/// Takes frames apart as they come.
pub struct Frames<'a> {
    to: &'a mut dyn Write,
    /// Of the length, or of what came of it all.
    held: Vec<u8>,
    /// Of this frame.
    left: usize,
    has_ended: bool,
}

impl<'a> Frames<'a> {
    /// Writes what frames hold there.
    pub fn new(to: &'a mut dyn Write) -> Self {
        Self {
            to,
            held: Vec::new(),
            left: 0,
            has_ended: false,
        }
    }

    /// More has come.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.has_ended {
                self.held.extend_from_slice(bytes);
                return Ok(());
            }
            if self.left > 0 {
                let (now, rest) = bytes.split_at(self.left.min(bytes.len()));
                self.to.write_all(now)?;
                self.left -= now.len();
                bytes = rest;
                continue;
            }
            let (now, rest) = bytes.split_at((LENGTH - self.held.len()).min(bytes.len()));
            self.held.extend_from_slice(now);
            bytes = rest;
            if let Ok(length) = <[u8; LENGTH]>::try_from(&self.held[..]) {
                self.held.clear();
                self.left = u32::from_le_bytes(length) as usize;
                self.has_ended = self.left == 0;
            }
        }
        Ok(())
    }

    /// What came of it; `None` if the answer was cut off.
    pub fn end<T: DeserializeOwned>(self) -> Option<T> {
        serde_json::from_slice(&self.held)
            .ok()
            .filter(|_| self.has_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_apart_wherever_they_are_cut() {
        let told = [frame(b"one"), frame(b"t"), frame(b""), b"[1, 2]".to_vec()].concat();
        for size in 1..=told.len() {
            let mut whole = Vec::new();
            let mut frames = Frames::new(&mut whole);
            told.chunks(size)
                .for_each(|chunk| frames.take(chunk).unwrap());
            assert_eq!(frames.end::<Vec<u32>>(), Some(vec![1, 2]));
            assert_eq!(whole, b"onet");
        }
        for cut in 0..told.len() {
            let mut whole = Vec::new();
            let mut frames = Frames::new(&mut whole);
            frames.take(&told[..cut]).unwrap();
            assert_eq!(frames.end::<Vec<u32>>(), None);
        }
    }
}
