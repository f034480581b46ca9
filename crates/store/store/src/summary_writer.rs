//! Writes segment summaries, and keeps what a zone's summaries say before the zone is reset.

use crate::Result;
use crate::format::key;
use crate::format::summary::{self, Summary};
use crate::inner::Inner;
use crate::rows::corrupt;
use crate::stream::{AppendError, Placed, Stream, judge};
use device::ZonedDevice;
use kv::{Batch, Durability, Kv};
use zone::{ZoneAddress, ZoneError, ZoneId};

/// A summary fills so many bytes, or a block of the drive if that is larger. A row that needs more gets
/// a summary of its own.
const SIZE: u64 = 4096;

/// What a summary is written for.
#[derive(Clone, Copy)]
pub(crate) enum Why {
    /// Enough rows wait.
    Enough,
    /// All rows that wait, however few.
    All,
    /// A zone with so many bytes of summaries is going to be reset: all rows.
    Reset(u64),
}

impl Inner {
    /// Appends rows that wait to `stream`. That there is a copy of them is worth no commit's failure.
    pub(crate) fn write_summaries(&self, stream: &Stream, why: Why) {
        if let Err(error) = self.try_to_write(stream, why) {
            tracing::warn!(%error, "no segment summary could be written");
        }
    }

    fn try_to_write(&self, stream: &Stream, why: Why) -> Result<()> {
        let size = self.device.geometry().round_up(SIZE) as usize;
        loop {
            let all = !matches!(why, Why::Enough) || self.summaries.describe_much();
            if !self.summaries.is_due(size, all) {
                return Ok(());
            }
            let kv = self.kv()?;
            let _alone = self.summaries.writing.lock();
            let number = || self.numbers.take(&kv);
            let Some(taken) = self.summaries.take((size, all), self.uuid, number)? else {
                return Ok(());
            };
            match self.append_summary(&kv, stream, &taken.bytes, why) {
                Ok(true) => self.summaries.try_again(),
                // A row that is larger than what can be appended at once has no copy.
                Ok(false) if taken.bytes.len() > size => {}
                not_written => {
                    self.summaries.put_back(taken, size);
                    return not_written.map(drop);
                }
            }
        }
    }

    /// Writes down that all rows are in summaries, if that is so: the next mount has nothing to look for.
    pub(crate) fn tell_all_copied(&self) -> Result<()> {
        // Nobody has rows in hand that wait no more and are not written yet; no commit is between its number and its rows.
        let _written = self.summaries.writing.lock();
        let _alone = self.mutators.write();
        let Some(record) = self.summaries.all_copied() else {
            return Ok(());
        };
        // A power cut must not leave the record without the summaries that it speaks of.
        self.device.flush()?;
        let mut batch = Batch::default();
        batch.put(key::SUPER_SUMMARIES, &record.encode());
        // Behind the summaries' places in the log.
        Ok(self.kv()?.write(&batch, Durability::Buffered)?)
    }

    /// False if there is no place for it.
    fn append_summary(&self, kv: &Kv, stream: &Stream, bytes: &[u8], why: Why) -> Result<bool> {
        /// A summary does not go on in another zone: the second one is as good as empty.
        const TRIES: u32 = 2;
        let padded = appender::padded(bytes, self.device.geometry().block_size);
        let length = padded.len() as u64;
        let freed = match why {
            Why::Reset(freed) => freed,
            Why::Enough | Why::All => 0,
        };
        for _ in 0..TRIES {
            if !self.has_place_for_summary(length, freed) {
                return Ok(false);
            }
            let Placed { at, length: there } = match stream.append(&padded) {
                Ok(placed) => placed,
                Err(AppendError::NeedsZone) => return Ok(false),
                Err(AppendError::Drive(error)) => return Err(error.into()),
            };
            // The zone is pinned until its summary is in the index.
            let entered = (there == length).then(|| self.enter_summary(kv, at, bytes.len()));
            // No object has it: it is nobody's from the beginning.
            self.hold().add(at.zone, there, |_| {});
            if let Some(entered) = entered {
                return entered.map(|()| true);
            }
        }
        Ok(false)
    }

    fn enter_summary(&self, kv: &Kv, at: ZoneAddress, bytes: usize) -> Result<()> {
        let geometry = self.device.geometry();
        let block_size = u64::from(geometry.block_size);
        let padded = geometry.round_up(bytes as u64);
        self.freelist.add_summary(at.zone, padded);
        let mut places = read_places(kv, at.zone)?;
        places.push(((at.offset / block_size) as u32, bytes as u32));
        let mut batch = Batch::default();
        batch.put(&key::summaries(at.zone), &summary::encode_places(&places));
        batch.put(key::SUPER_SUMMARIES, &self.summaries.copied().encode());
        // Not synced: whatever resets the zone comes behind it in the log.
        Ok(kv.write(&batch, Durability::Buffered)?)
    }

    /// The summaries in `zone`, those that can be read, and how many others there are.
    pub(crate) fn summaries_in(&self, kv: &Kv, zone: ZoneId) -> Result<(Vec<Summary>, usize)> {
        let (mut found, mut unreadable) = (Vec::new(), 0);
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

    /// In front of the reset of `zone`: what its summaries have and the database still has is written to
    /// others, if there is a place for them. What cannot be read of them is only a copy. Whether there was
    /// anything, which a flush has to make durable.
    pub(crate) fn keep_summaries_of(&self, zone: ZoneId) -> Result<bool> {
        let (found, _) = self.summaries_in(&*self.kv()?, zone)?;
        let mut any = false;
        for summary in found {
            // A commit that changes one of the rows is through, or comes behind this.
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

/// Where the summaries of a zone begin, in blocks, and how long they are.
pub(crate) fn read_places(kv: &Kv, zone: ZoneId) -> Result<Vec<(u32, u32)>> {
    let key = key::summaries(zone);
    let Some(value) = kv.get(&key)? else {
        return Ok(Vec::new());
    };
    summary::decode_places(&value)
        .ok_or_else(|| corrupt(&key, "no places of summaries", value.len()))
}
