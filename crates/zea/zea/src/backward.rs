//! All extents of a zone, the newest first, by the back pointers of their metadata.
//!
//! A block of metadata names the n before it, so these are read at once, and a drive that can do many reads
//! at a time needs so much less of it. Each extent's number says how many are before it.

use crate::error::{Error, Result};
use crate::format::metadata::{Decoded, Metadata};
use crate::forward::Forward;
use crate::placed::Placed;
use crate::reading::ZoneReader;
use std::collections::VecDeque;

/// Follows back pointers. A block of metadata that is damaged is an error in its place, and the walk goes on
/// behind it: by what other blocks point to, or, where none does, by a [`Forward`] scan of what is in front.
/// A drive that fails a read ends it with the error.
#[derive(Debug)]
pub struct Backward {
    reader: ZoneReader,
    ready: VecDeque<Result<Placed, Error>>,
    /// The oldest metadata that was read whole; its pointers lead on.
    oldest: Option<Metadata>,
    /// All blocks of metadata from here on have been told of.
    told: u32,
}

impl Backward {
    pub(crate) fn new(reader: ZoneReader, last: Option<Metadata>) -> Self {
        let ready = last.iter().map(|last| Ok(reader.placed(last))).collect();
        Self {
            told: last.as_ref().map_or(0, |last| last.block),
            reader,
            ready,
            oldest: last,
        }
    }

    /// Reads what the oldest metadata points to.
    fn go_on(&mut self) -> Result<()> {
        let Some(oldest) = self.oldest.take() else {
            return Ok(());
        };
        let blocks: Vec<u32> = oldest
            .back
            .iter()
            .copied()
            .filter(|b| *b < self.told)
            .collect();
        if blocks.is_empty() {
            // All that it points to has been told of; if anything is before that, damage is in between.
            return match oldest.number as usize > oldest.back.len() {
                true => self.scan(),
                false => Ok(()),
            };
        }
        let mut decoded = self.reader.read_metadata(&blocks)?;
        for (block, decoded) in blocks.iter().zip(&decoded) {
            self.ready.push_back(match decoded {
                Decoded::Valid(metadata) => Ok(self.reader.placed(metadata)),
                other => Err(self.reader.corrupt(*block, other)),
            });
            self.told = *block;
        }
        // The walk goes on from the oldest that is whole, or once more from this one.
        let whole = decoded.drain(..).rev().find_map(|decoded| match decoded {
            Decoded::Valid(metadata) => Some(metadata),
            _ => None,
        });
        self.oldest = Some(whole.unwrap_or(oldest));
        Ok(())
    }

    /// Everything in front of what has been told of, by reading it.
    fn scan(&mut self) -> Result<()> {
        let found = Forward::new(self.reader.clone(), self.told);
        let mut found: Vec<_> = found.collect::<Result<_>>()?;
        found.reverse();
        self.ready.extend(found.into_iter().map(Ok));
        Ok(())
    }
}

impl Iterator for Backward {
    type Item = Result<Placed, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && self.oldest.is_some() {
            if let Err(error) = self.go_on() {
                self.oldest = None;
                return Some(Err(error));
            }
        }
        self.ready.pop_front()
    }
}
