//! Iterates over all extents of a zone, the newest first, by the back pointers in their metadata.
//!
//! A block of metadata names the n blocks before it, so these are read at once, which a drive that serves many
//! reads in parallel does much faster. Each extent's number tells how many extents are before it.

use crate::error::{Error, Result};
use crate::format::metadata::{Decoded, Metadata};
use crate::forward::Forward;
use crate::placed::Placed;
use crate::reading::ZoneReader;
use std::collections::VecDeque;

/// Follows back pointers, from the newest extent to the oldest.
///
/// A damaged block of metadata yields an error in its place. The iteration goes on with the blocks that other
/// metadata points to, or, if there are none, with a [`Forward`] scan of the rest of the zone. A read error of
/// the drive ends it.
#[derive(Debug)]
pub struct Backward {
    reader: ZoneReader,
    ready: VecDeque<Result<Placed, Error>>,
    /// The oldest valid metadata; its pointers are followed next.
    oldest: Option<Metadata>,
    /// All blocks of metadata from this one on have been yielded.
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

    /// Reads the metadata that the oldest one points to.
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
            // All that it points to has been yielded; if there are extents before those, the way to them is
            // damaged.
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
        // Continues from the oldest valid metadata, or again from the present one if none is valid.
        let whole = decoded.drain(..).rev().find_map(|decoded| match decoded {
            Decoded::Valid(metadata) => Some(metadata),
            _ => None,
        });
        self.oldest = Some(whole.unwrap_or(oldest));
        Ok(())
    }

    /// Finds all extents before the yielded ones by reading the zone.
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
