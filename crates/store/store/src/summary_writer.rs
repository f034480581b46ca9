//! Writes segment summaries, and copies the rows in a zone's summaries to others before the zone is reset.

use crate::Result;
use crate::format::key;
use crate::format::summary::{self, Summary};
use crate::format::waiting;
use crate::inner::Inner;
use crate::rows::corrupt;
use crate::stream::{AppendError, Placed, Stream, judge};
use device::ZonedDevice;
use kv::{Batch, Durability, Kv};
use zone::{ZoneAddress, ZoneError, ZoneId};

/// Bytes that a summary fills, unless a block of the drive is larger. A row that needs more gets a summary of its own.
const SIZE: u64 = 4096;

/// Occasion for which summaries are written.
#[derive(Clone, Copy)]
pub(crate) enum Why {
    /// Rows wait that fill a summary.
    Enough,
    /// All rows that wait now are to be written, however few.
    All,
    /// A zone with this many bytes of summaries is about to be reset: all rows that wait now are to be written.
    Reset(u64),
}

/// What became of a summary.
enum Appended {
    There,
    /// There is no place for it now.
    NoPlace,
    /// It has come to the end of a zone twice, the second time in an empty one unless others append beside it.
    TooLarge,
}

impl Inner {
    /// Appends waiting rows to `stream`. An error is only logged: a missing copy is no reason to fail a commit.
    pub(crate) fn write_summaries(&self, stream: &Stream, why: Why) {
        if let Err(error) = self.try_to_write(stream, why) {
            tracing::warn!(%error, "no segment summary could be written");
        }
    }

    fn try_to_write(&self, stream: &Stream, mut why: Why) -> Result<()> {
        let size = self.device.geometry().round_up(SIZE) as usize;
        loop {
            let all = !matches!(why, Why::Enough) || self.summaries.describe_much();
            if !self.summaries.is_due(size, all) {
                return Ok(());
            }
            let kv = self.kv()?;
            // A commit waits for no other thread's write: that thread takes these rows too.
            let alone = match why {
                Why::Enough => self.summaries.writing.try_lock(),
                Why::All | Why::Reset(_) => Some(self.summaries.writing.lock()),
            };
            let Some(_alone) = alone else {
                return Ok(());
            };
            let number = || self.take_number();
            let Some(taken) = self.summaries.take((size, all), self.uuid, number)? else {
                return Ok(());
            };
            let is_rest = taken.is_rest;
            match self.append_summary(&kv, stream, &taken.bytes, why) {
                Ok(Appended::There) => self.summaries.try_again(),
                // A row that fits in no zone, or in no append, gets no copy. Others have only met the ends of two zones.
                Ok(Appended::TooLarge) if taken.bytes.len() as u64 > self.most_in_summary() => {}
                not_written => {
                    self.summaries.put_back(taken, size);
                    return not_written.map(drop);
                }
            }
            if is_rest {
                // What others have committed since may wait for more.
                why = Why::Enough;
            }
        }
    }

    /// Before an unmount: writes waiting rows to a summary if they are worth one, and notes the others for the next
    /// mount.
    pub(crate) fn settle_summaries(&self) -> Result<()> {
        // Another thread may be between the keys of the last unmount and their rows: these stay noted.
        let Some(_alone) = self.scrubber.working.try_lock() else {
            self.write_summaries(self.data.of(0), Why::All);
            return Ok(());
        };
        // The log, from which the rows are copied, is gone after the unmount.
        if let Err(error) = self.copy_logged(&mut |_| true) {
            tracing::warn!(%error, "rows that a crash has left without a copy still have none");
        }
        let size = self.device.geometry().round_up(SIZE);
        let is_worth = self.spares_summary(size, self.summaries.describes());
        let why = match is_worth || !self.summaries.can_be_noted() {
            true => Why::All,
            false => Why::Enough,
        };
        self.write_summaries(self.data.of(0), why);
        self.tell_all_copied()
    }

    /// Records the keys of the rows that wait, and, if it is so, that all others are in summaries, so that the next mount
    /// need not search for them. The scrub's lock is held.
    pub(crate) fn tell_all_copied(&self) -> Result<()> {
        // Under these locks, no thread has taken rows that are not written yet, and no commit is between its number and
        // its rows.
        let _written = self.summaries.writing.lock();
        let _alone = self.mutators.write();
        let Some((keys, record)) = self.summaries.to_note() else {
            return Ok(());
        };
        // A power cut must not leave this without the summaries that it counts.
        self.fs.flush()?;
        let mut batch = Batch::default();
        if let Some(record) = record {
            batch.put(key::SUPER_SUMMARIES, &record.encode());
        }
        match keys.is_empty() {
            true => batch.delete(key::SUPER_WAITING),
            false => batch.put(key::SUPER_WAITING, &waiting::encode(&keys)),
        }
        // The log has it after the places of these summaries.
        self.write_rows(&batch, Durability::Buffered)?;
        self.summaries.are_noted(keys);
        Ok(())
    }

    /// Appends a summary to `stream`.
    fn append_summary(&self, kv: &Kv, stream: &Stream, bytes: &[u8], why: Why) -> Result<Appended> {
        /// A summary lies in one zone: after a zone's end, the second try has an empty one.
        const TRIES: u32 = 2;
        let padded = appender::padded(bytes, self.device.geometry().block_size);
        let length = padded.len() as u64;
        let freed = match why {
            Why::Reset(freed) => freed,
            Why::Enough | Why::All => 0,
        };
        for _ in 0..TRIES {
            if !self.has_place_for_summary(length, freed) {
                return Ok(Appended::NoPlace);
            }
            let Placed { at, length: there } = match stream.append(&padded) {
                Ok(placed) => placed,
                Err(AppendError::NeedsZone) => return Ok(Appended::NoPlace),
                Err(AppendError::Drive(error)) => return Err(error.into()),
            };
            // The zone stays pinned until its summary is in the index.
            let entered = (there == length).then(|| self.enter_summary(kv, at, bytes.len(), why));
            // No object shows these bytes, so no commit will take them: they are given up at once.
            self.freelist.unpin(at.zone);
            if let Some(entered) = entered {
                return entered.map(|()| Appended::There);
            }
        }
        Ok(Appended::TooLarge)
    }

    /// Bytes of the largest summary that each zone and each append has room for.
    fn most_in_summary(&self) -> u64 {
        let geometry = self.device.geometry();
        let append = match geometry.max_append_bytes {
            0 => u64::MAX,
            most => most.into(),
        };
        geometry.least_capacity().min(append)
    }

    fn enter_summary(&self, kv: &Kv, at: ZoneAddress, bytes: usize, why: Why) -> Result<()> {
        let geometry = self.device.geometry();
        let block_size = u64::from(geometry.block_size);
        let mut places = read_places(kv, at.zone)?;
        places.push(((at.offset / block_size) as u32, bytes as u32));
        let mut batch = Batch::default();
        batch.put(&key::summaries(at.zone), &summary::encode_places(&places));
        batch.put(key::SUPER_SUMMARIES, &self.summaries.copied().encode());
        // Not synced: in the log, any reset of the zone follows it.
        match why {
            // Behind a commit, which has been carried out and is not to wait. The next one tries again.
            Why::Enough => kv.write(&batch, Durability::Buffered)?,
            Why::All | Why::Reset(_) => self.write_rows(&batch, Durability::Buffered)?,
        }
        let padded = geometry.round_up(bytes as u64);
        self.freelist.add_summary(at.zone, padded);
        self.summaries.says_not_all();
        Ok(())
    }

    /// The readable summaries in `zone`, and the number of unreadable ones.
    pub(crate) fn summaries_in(&self, kv: &Kv, zone: ZoneId) -> Result<(Vec<Summary>, usize)> {
        let (mut found, mut unreadable) = (Vec::new(), 0);
        // The zone is not reset while its summaries are read.
        let _reading = self.gate.enter_in([zone]);
        for place in read_places(kv, zone)? {
            match self.read_summary(zone, place)? {
                Some(summary) => found.push(summary),
                None => unreadable += 1,
            }
        }
        Ok((found, unreadable))
    }

    /// The summary at a place of a zone; `None` if it cannot be read.
    pub(crate) fn read_summary(
        &self,
        zone: ZoneId,
        (block, bytes): (u32, u32),
    ) -> Result<Option<Summary>> {
        let geometry = self.device.geometry();
        let mut buffer = vec![0; geometry.round_up(bytes.into()) as usize];
        let offset = u64::from(block) * u64::from(geometry.block_size);
        let end = offset + buffer.len() as u64;
        let at = geometry.absolute(ZoneAddress::new(zone, offset));
        let mut is_there = end <= geometry.capacity(zone);
        if is_there && let Err(error) = self.device.read(at, &mut buffer) {
            if matches!(error, ZoneError::PowerLost { .. }) {
                return Err(error.into());
            }
            judge(&*self.device, &self.freelist, zone, &error);
            is_there = false;
        }
        Ok(summary::decode(&buffer, self.uuid).filter(|_| is_there))
    }

    /// Before the reset of `zone`: copies the rows in its summaries that the database still has to other summaries, if
    /// there is a place. Rows that cannot be read are skipped, because they are only copies. Returns whether there were
    /// any, which a flush has to make durable.
    pub(crate) fn keep_summaries_of(&self, zone: ZoneId) -> Result<bool> {
        let (found, _) = self.summaries_in(&*self.kv()?, zone)?;
        let mut any = false;
        for summary in found {
            // A commit that changes one of the rows has ended, or comes after this.
            let _alone = self.mutators.write();
            let kv = self.kv()?;
            for (key, value) in summary.rows {
                if let Some(value) = value
                    && kv.get(&key)?.as_ref() == Some(&value)
                {
                    self.summaries.keep(&key, Some(&value));
                    any = true;
                }
            }
        }
        if any {
            let freed = self.freelist.summary_bytes_in(zone);
            self.summaries.try_again();
            self.write_summaries(self.moved.of(0), Why::Reset(freed));
        }
        Ok(any)
    }
}

/// Where the summaries of a zone begin, in blocks, and their bytes without padding.
pub(crate) fn read_places(kv: &Kv, zone: ZoneId) -> Result<Vec<(u32, u32)>> {
    let key = key::summaries(zone);
    let Some(value) = kv.get(&key)? else {
        return Ok(Vec::new());
    };
    summary::decode_places(&value)
        .ok_or_else(|| corrupt(&key, "no places of summaries", value.len()))
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
