//! Gaining zones: what is live in the emptiest one is moved, and that one reset.

use crate::error::{Error, Result};
use crate::format::operation::{Operation, Piece};
use crate::inner::Inner;
use crate::reader::read_pieces;
use crate::streams::Stream;
use zone::ZoneId;
use zone_alloc::{CleaningPolicy, Greedy, Pressure, ZoneView};

impl Inner {
    /// Gains a zone that files may take.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if nothing more can be gained.
    pub fn make_space(&mut self) -> Result<()> {
        // What is dead may only wait for its commit.
        self.commit()?;
        let mut turns = self.space.geometry().zone_count.saturating_mul(2);
        while self.space.free_for_files() == 0 {
            turns = turns.checked_sub(1).ok_or(Error::NoSpace)?;
            let zones = self.space.candidates();
            let view = ZoneView {
                zones: &zones,
                now: 0,
            };
            let victim = Greedy
                .choose(view, Pressure::Urgent)
                .ok_or(Error::NoSpace)?;
            self.clean(victim.zone)?;
        }
        Ok(())
    }

    /// Moves all live pieces out of a zone and resets it.
    fn clean(&mut self, zone: ZoneId) -> Result<()> {
        let mut live = Vec::new();
        for (inode, file) in &self.map.files {
            for (place, piece) in file.pieces.iter().enumerate() {
                if piece.at.zone == zone {
                    live.push((*inode, piece.clone(), file.end_of(place)));
                }
            }
        }
        for (inode, piece, end) in live {
            let length = end - piece.file_offset;
            let device = self.space.device.clone();
            let data = read_pieces(&*device, &[(piece.clone(), 0, length)])?;
            self.moved_bytes += length;
            let mut to: Vec<Piece> = Vec::new();
            let mut done = 0;
            while done < data.len() {
                let file_offset = piece.file_offset + done as u64;
                let put = self
                    .space
                    .put(Stream::Moved, inode, file_offset, &data[done..])?;
                done += put.length as usize;
                to.push(put);
            }
            let file_offset = piece.file_offset;
            self.change(Operation::Move {
                inode,
                file_offset,
                to,
            });
        }
        self.commit()
    }
}
