//! Frames of a long answer: each has its length in four bytes (little-endian) before its bytes; an empty frame ends
//! them, and the result follows in JSON. So an error in the middle arrives as an error.

use serde::de::DeserializeOwned;
use std::io::{self, Write};

const LENGTH: usize = 4;

/// Encodes one frame. An empty one is the last.
pub fn frame(bytes: &[u8]) -> Vec<u8> {
    frames(&[bytes])
}

/// Encodes frames one after the other, and copies each byte once.
pub fn frames(all: &[&[u8]]) -> Vec<u8> {
    let bytes = all.iter().map(|bytes| LENGTH + bytes.len());
    let mut encoded = Vec::with_capacity(bytes.sum());
    for bytes in all {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        encoded.extend_from_slice(&length.to_le_bytes());
        encoded.extend_from_slice(bytes);
    }
    encoded
}

/// Decodes frames from pieces of any size.
pub struct Frames<'a> {
    to: &'a mut dyn Write,
    /// Bytes received of a frame's length or, after the last frame, of the result.
    held: Vec<u8>,
    /// Bytes of the current frame that have not arrived yet.
    left: usize,
    has_ended: bool,
}

impl<'a> Frames<'a> {
    /// Writes the content of frames to `to`.
    pub fn new(to: &'a mut dyn Write) -> Self {
        Self {
            to,
            held: Vec::new(),
            left: 0,
            has_ended: false,
        }
    }

    /// Takes the next piece of the answer.
    ///
    /// # Errors
    /// The content cannot be written.
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

    /// The result that follows the frames; `None` if the answer was cut off.
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
