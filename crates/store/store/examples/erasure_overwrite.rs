//! Overwrites of erasure-coded data without copies, and without the write hole: a stripe of two data chunks
//! and their parity on three stores, each on a drive of its own.
//!
//!     cargo run -p store --example erasure_overwrite
//!
//! An overwrite has two phases, each one transaction a shard:
//!
//! | phase | the shard's transaction |
//! |---|---|
//! | prepare | clones the old range to a rollback object, writes the new bytes, raises the version |
//! | finish, when all are prepared | drops the rollback object |
//!
//! After a stop, the shards' versions tell what to do: if one has not been prepared, the others go back to
//! what their rollback objects show; otherwise all finish. A clone copies no data, so keeping the old bytes
//! costs metadata only (the main document, 4.5.2).

use store::{Attributes, Condition, Error, Result, Store, Transaction};

const COLLECTION: &str = "shards";
const OBJECT: &str = "object";
/// What an overwrite has replaced, until all shards have it.
const ROLLBACK: &str = "object.rollback";
/// Attribute: how many overwrites the shard has taken.
const VERSION: &str = "version";
/// Attribute of the rollback object: where its bytes belong.
const OFFSET: &str = "offset";

/// Two data chunks and their parity.
pub struct Stripe(pub [Store; 3]);

fn number(attributes: &Attributes, name: &str) -> u64 {
    let value = attributes
        .get(name)
        .and_then(|value| value.as_slice().try_into().ok());
    u64::from_le_bytes(value.unwrap_or_default())
}

fn one(name: &str, value: u64) -> Attributes {
    Attributes::from([(name.to_owned(), value.to_le_bytes().to_vec())])
}

/// What each shard gets of these bytes.
pub fn encode(data: &[u8]) -> [Vec<u8>; 3] {
    let (first, second) = data.split_at(data.len() / 2);
    let parity = first.iter().zip(second).map(|(a, b)| a ^ b).collect();
    [first.to_vec(), second.to_vec(), parity]
}

impl Stripe {
    /// Stores an object of two chunks of the same length.
    pub fn create(&self, data: &[u8]) -> Result<()> {
        for (shard, chunk) in self.0.iter().zip(encode(data)) {
            let mut writer = shard.writer(Some(chunk.len() as u64))?;
            writer.write(&chunk)?;
            let mut transaction = Transaction::new();
            transaction.create_collection(COLLECTION, Attributes::new());
            transaction.put(COLLECTION, OBJECT, writer.finish()?, one(VERSION, 0));
            shard.commit(transaction)?;
        }
        Ok(())
    }

    /// Overwrites the bytes from `offset` on in both data chunks; `data` has those of the first, then those of
    /// the second.
    pub fn overwrite(&self, offset: u64, data: &[u8]) -> Result<()> {
        for (shard, chunk) in self.0.iter().zip(encode(data)) {
            prepare(shard, offset, &chunk)?;
        }
        self.0.iter().try_for_each(finish)
    }

    /// After a stop: all shards have the new bytes, or all have the old ones.
    pub fn recover(&self) -> Result<()> {
        let versions = self.0.iter().map(version).collect::<Result<Vec<_>>>()?;
        let lowest = versions.iter().min().copied().unwrap_or_default();
        for (shard, version) in self.0.iter().zip(versions) {
            if version > lowest {
                roll_back(shard)?;
            } else {
                finish(shard)?;
            }
        }
        Ok(())
    }

    /// Both data chunks, the one on shard `lost` from the others.
    pub fn read(&self, lost: Option<usize>) -> Result<Vec<u8>> {
        let mut chunks = Vec::new();
        for shard in &self.0 {
            let reader = shard.open(COLLECTION, OBJECT)?;
            let mut chunk = vec![0; reader.info().size as usize];
            reader.read_at(0, &mut chunk)?;
            chunks.push(chunk);
        }
        if let Some(lost) = lost {
            let others = [(lost + 1) % 3, (lost + 2) % 3].map(|index| chunks[index].clone());
            let pairs = others[0].iter().zip(&others[1]);
            chunks[lost] = pairs.map(|(a, b)| a ^ b).collect();
        }
        Ok([&chunks[0][..], &chunks[1]].concat())
    }
}

fn version(shard: &Store) -> Result<u64> {
    let info = shard.stat(COLLECTION, OBJECT)?;
    Ok(info.map_or(0, |info| number(&info.attributes, VERSION)))
}

/// The shard has the new bytes, and can go back.
fn prepare(shard: &Store, offset: u64, bytes: &[u8]) -> Result<()> {
    let next = version(shard)? + 1;
    let mut writer = shard.writer(Some(bytes.len() as u64))?;
    writer.write(bytes)?;
    let (object, rollback) = ((COLLECTION, OBJECT), (COLLECTION, ROLLBACK));
    let range = offset..offset + bytes.len() as u64;
    let mut transaction = Transaction::new();
    transaction
        .require(COLLECTION, ROLLBACK, Condition::Absent)
        .clone_range(object, range, rollback, 0)
        .update_attributes(COLLECTION, ROLLBACK, one(OFFSET, offset), &[])
        .write(COLLECTION, OBJECT, offset, writer.finish()?)
        .update_attributes(COLLECTION, OBJECT, one(VERSION, next), &[]);
    shard.commit(transaction)
}

/// The shard cannot go back any more.
fn finish(shard: &Store) -> Result<()> {
    let mut transaction = Transaction::new();
    transaction.remove_if_present(COLLECTION, ROLLBACK);
    shard.commit(transaction)
}

/// The shard has the old bytes again.
fn roll_back(shard: &Store) -> Result<()> {
    let Some(kept) = shard.stat(COLLECTION, ROLLBACK)? else {
        return Err(Error::NoObject {
            collection: COLLECTION.to_owned(),
            object: ROLLBACK.into(),
        });
    };
    let (object, rollback) = ((COLLECTION, OBJECT), (COLLECTION, ROLLBACK));
    let offset = number(&kept.attributes, OFFSET);
    let before = version(shard)? - 1;
    let mut transaction = Transaction::new();
    transaction
        .clone_range(rollback, 0..kept.size, object, offset)
        .update_attributes(COLLECTION, OBJECT, one(VERSION, before), &[])
        .remove(COLLECTION, ROLLBACK);
    shard.commit(transaction)
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use device::{MemoryDrive, ZonedDevice};
    use kv_rocksdb::RocksDb;
    use std::sync::Arc;
    use store::{MkfsOptions, MountOptions};
    use zone::{Geometry, ZoneKind};

    let geometry = Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 96,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes: 0,
    };
    let shard = || -> Result<Store, Box<dyn std::error::Error>> {
        let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry.clone())?);
        Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb))?;
        Ok(Store::mount(drive, MountOptions::new(RocksDb))?)
    };
    let stripe = Stripe([shard()?, shard()?, shard()?]);
    let live = || {
        stripe
            .0
            .iter()
            .map(|shard| shard.statfs().live_bytes)
            .sum::<u64>()
    };
    let old: Vec<u8> = (0..2 << 20).map(|n: u32| (n % 251) as u8).collect();
    stripe.create(&old)?;
    println!("2 MiB of data and 1 MiB of parity: {} bytes live", live());

    let chunks = encode(&vec![0xee; 512 << 10]);
    prepare(&stripe.0[0], 65_536, &chunks[0])?;
    prepare(&stripe.0[1], 65_536, &chunks[1])?;
    println!(
        "two of three shards prepared: {} bytes live, the new ones and no copy",
        live()
    );
    stripe.recover()?;
    let is_old = stripe.read(None)? == old;
    println!(
        "rolled back: {} bytes live, the old bytes are there: {is_old}",
        live()
    );

    stripe.overwrite(65_536, &vec![0xee; 512 << 10])?;
    let same = stripe.read(None)? == stripe.read(Some(0))?;
    println!("overwritten: {} bytes live, parity fits: {same}", live());
    stripe.0.iter().try_for_each(Store::unmount)?;
    Ok(())
}
