//! Objects made of rows, on a drive that is a vector of bytes, beside the plain bytes that they should
//! hold. Executes what the algebra plans, as a store does.

use fastrand::Rng;
use object::{
    Blob, BlobId, BlobName, ChecksumBlock, ChecksumKind, Codec, Content, Copy, Delta, Extent,
    Fragment, References, Rows, Segment, SharedBlob, Span, Staged,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneId};

pub const BLOCK: u32 = 4096;
/// What the codec of these tests adds.
const CODEC_TAIL: [u8; 7] = [7; 7];

#[derive(Default)]
pub struct Table {
    extents: BTreeMap<(u64, u64), Extent>,
    blobs: BTreeMap<BlobId, SharedBlob>,
    next: Cell<u64>,
}

impl Rows for &Table {
    type Error = String;

    fn extents(&self, map: u64, from: u64, to: u64) -> Result<Vec<(u64, Extent)>, String> {
        let rows = self.extents.range((map, from + 1)..=(map, u64::MAX));
        let rows = rows.map(|((_, end), extent)| (end - extent.length, extent.clone()));
        Ok(rows.take_while(|(start, _)| *start < to).collect())
    }

    fn blob(&self, id: BlobId) -> Result<SharedBlob, String> {
        self.blobs.get(&id).cloned().ok_or(format!("no {id:?}"))
    }

    fn number(&self) -> Result<u64, String> {
        self.next.set(self.next.get() + 1);
        Ok(self.next.get())
    }

    fn miscounted(&self, id: BlobId) -> String {
        format!("miscounted {id:?}")
    }

    fn broken(&self, map: u64, at: u64) -> String {
        format!("broken {map} at {at}")
    }
}

type Stage<'a> = Staged<&'a Table>;

/// Rows to put and delete, taken out of a [`Staged`].
struct Batch {
    extents: Vec<((u64, u64), Option<Extent>)>,
    blobs: Vec<(BlobId, Option<SharedBlob>)>,
    index: Vec<(ZoneAddress, Option<BlobName>)>,
    deltas: BTreeMap<ZoneId, Delta>,
    inline: i64,
}

#[derive(Default)]
pub struct World {
    table: Table,
    index: BTreeMap<ZoneAddress, BlobName>,
    counters: BTreeMap<ZoneId, Delta>,
    inline: i64,
    zones: Vec<Vec<u8>>,
    objects: BTreeMap<u8, Vec<Segment>>,
    pub model: BTreeMap<u8, Vec<u8>>,
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum: u32, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

impl World {
    /// Places a run of bytes in one or more pieces, in zones that take turns.
    fn place(&mut self, random: &mut Rng, mut bytes: &[u8]) -> Vec<Fragment> {
        self.zones.resize(3, Vec::new());
        let mut fragments = Vec::new();
        while !bytes.is_empty() {
            let blocks = bytes.len().div_ceil(BLOCK as usize);
            let take = match random.u8(0..3) {
                0 => random.usize(1..=blocks),
                _ => blocks,
            };
            let (head, tail) = bytes.split_at(bytes.len().min(take * BLOCK as usize));
            bytes = tail;
            let zone = random.usize(0..3);
            let data = &mut self.zones[zone];
            let at = ZoneAddress::new(ZoneId(zone as u32), data.len() as u64);
            data.extend_from_slice(head);
            data.resize(data.len().next_multiple_of(BLOCK as usize), 0);
            fragments.push(Fragment {
                at: Some(at),
                length: head.len() as u32,
            });
        }
        fragments
    }

    fn fetch(&self, fragments: &[Fragment]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for fragment in fragments {
            let length = fragment.length as usize;
            match fragment.at {
                Some(at) => {
                    let from = at.offset as usize;
                    bytes.extend_from_slice(&self.zones[at.zone.index()][from..from + length]);
                }
                None => bytes.resize(bytes.len() + length, 0xee),
            }
        }
        bytes
    }

    /// Raw bytes of a blob, compared with the checksums of all blocks that they need.
    fn read(&self, blob: &Blob, from: u32, to: u32) -> Vec<u8> {
        let stored = self.fetch(&blob.fragments);
        let needed = blob.needed(from, to, BLOCK);
        let block = blob.checksum_block.bytes();
        if blob.checksum_kind != ChecksumKind::None {
            assert_eq!(blob.checksums.len() as u32, blob.stored().div_ceil(block));
            for index in needed.start / block..needed.end.div_ceil(block) {
                let end = ((index + 1) * block).min(blob.stored());
                let found = sum(&stored[(index * block) as usize..end as usize]);
                assert_eq!(
                    blob.checksums[index as usize], found,
                    "checksum of block {index}"
                );
            }
        }
        let raw = match blob.codec {
            Codec::None => stored,
            _ => {
                let (bytes, tail) = stored.split_at(blob.raw as usize);
                assert_eq!(tail, CODEC_TAIL);
                bytes.iter().rev().copied().collect()
            }
        };
        raw[from as usize..to as usize].to_vec()
    }

    /// Extents for new bytes, as a writer makes them.
    fn fresh(&mut self, random: &mut Rng, data: &[u8]) -> Vec<Extent> {
        if data.is_empty() {
            return Vec::new();
        }
        if data.len() <= 4096 && random.bool() {
            return vec![Extent::inline(data.to_vec())];
        }
        let blocks: Vec<_> = ChecksumBlock::all().collect();
        let checksum_block = blocks[random.usize(0..blocks.len())];
        let checksum_kind =
            [ChecksumKind::Crc32c, ChecksumKind::Xxh3, ChecksumKind::None][random.usize(0..3)];
        let codec = [Codec::None, Codec::None, Codec::Zstd][random.usize(0..3)];
        let stored = match codec {
            Codec::None => data.to_vec(),
            _ => data.iter().rev().copied().chain(CODEC_TAIL).collect(),
        };
        let checksums = match checksum_kind {
            ChecksumKind::None => Vec::new(),
            _ => stored
                .chunks(checksum_block.bytes() as usize)
                .map(sum)
                .collect(),
        };
        vec![Extent::own(Blob {
            codec,
            raw: data.len() as u32,
            fragments: self.place(random, &stored),
            checksum_kind,
            checksum_block,
            checksums,
        })]
    }

    /// Stages one operation, executes the copies that it asks for, and carries out the batch.
    fn commit(&mut self, stage: impl FnOnce(&Self, &mut Stage<'_>) -> Result<(), String>) {
        let mut staged = Staged::new(&self.table, BLOCK);
        stage(self, &mut staged).unwrap();
        let batch = Batch {
            extents: staged
                .changed_extents()
                .map(|(m, e, x)| ((m, e), x.cloned()))
                .collect(),
            blobs: staged
                .changed_blobs()
                .map(|(id, b)| (id, b.cloned()))
                .collect(),
            index: staged.accounts.changed_index().collect(),
            deltas: staged.accounts.deltas.clone(),
            inline: staged.accounts.inline.growth(),
        };
        for (key, extent) in batch.extents {
            match extent {
                Some(extent) => self.table.extents.insert(key, extent),
                None => self.table.extents.remove(&key),
            };
        }
        for (id, blob) in batch.blobs {
            match blob {
                Some(blob) => self.table.blobs.insert(id, blob),
                None => self.table.blobs.remove(&id),
            };
        }
        for (at, name) in batch.index {
            match name {
                Some(name) => self.index.insert(at, name),
                None => self.index.remove(&at),
            };
        }
        for (zone, delta) in batch.deltas {
            let counters = self.counters.entry(zone).or_default();
            counters.written += delta.written;
            counters.dead += delta.dead;
        }
        self.inline += batch.inline;
    }

    fn execute(&self, staged: &mut Stage<'_>, copies: Vec<Copy>) {
        for copy in copies {
            let bytes = self.read(&copy.blob, copy.raw.start, copy.raw.end);
            assert!(bytes.len() as u64 <= object::MAX_INLINE);
            staged.copied(&copy, bytes);
        }
    }

    fn cut(&self, staged: &mut Stage<'_>, span: Span) -> Result<(), String> {
        let copies = staged.cut(span.map, span.from, span.to)?;
        self.execute(staged, copies);
        Ok(())
    }

    fn drop_maps(&mut self, segments: Vec<Segment>) {
        self.commit(|_, staged| {
            for segment in segments {
                for (offset, extent) in staged.extents(segment.map, 0, u64::MAX)? {
                    staged.remove(segment.map, offset, &extent)?;
                }
            }
            Ok(())
        });
    }

    pub fn remove(&mut self, name: u8) {
        let segments = self.objects.remove(&name).unwrap_or_default();
        self.drop_maps(segments);
        self.model.remove(&name);
    }

    pub fn rename(&mut self, from: u8, to: u8) {
        if from != to
            && let Some(segments) = self.objects.remove(&from)
        {
            let data = self.model.remove(&from).unwrap();
            self.remove(to);
            self.objects.insert(to, segments);
            self.model.insert(to, data);
        }
    }

    /// The parts become one object, without a row being touched.
    pub fn assemble(&mut self, first: u8, second: u8, to: u8) {
        if first == second
            || !self.objects.contains_key(&first)
            || !self.objects.contains_key(&second)
        {
            return;
        }
        let mut segments = self.objects.remove(&first).unwrap();
        segments.extend(self.objects.remove(&second).unwrap());
        let mut data = self.model.remove(&first).unwrap();
        data.extend(self.model.remove(&second).unwrap());
        self.remove(to);
        self.objects.insert(to, segments);
        self.model.insert(to, data);
    }

    /// Writes at `offset`, at most the object's size; an append if it is the size.
    pub fn write(&mut self, random: &mut Rng, name: u8, offset: u64, data: &[u8]) {
        let extents = self.fresh(random, data);
        let model = self.model.entry(name).or_default();
        let end = offset as usize + data.len();
        model.resize(model.len().max(end), 0);
        model[offset as usize..end].copy_from_slice(data);
        self.replace(name, offset, data.len() as u64, &[], |staged, at, _| {
            let mut next = at.from;
            for extent in extents {
                let length = extent.length;
                staged.write(at.map, next, extent);
                next += length;
            }
        });
    }

    /// Takes `offset..offset + length` out of an object, which may grow by that, and has it filled with
    /// what `source` shows, or with something else.
    fn replace(
        &mut self,
        name: u8,
        offset: u64,
        length: u64,
        source: &[Span],
        fill: impl FnOnce(&mut Stage<'_>, Span, Vec<Extent>),
    ) {
        let mut segments = self.objects.remove(&name).unwrap_or_default();
        if length > 0 {
            let spans = object::spans(&segments, offset, offset + length);
            let at = match segments.last_mut() {
                _ if !spans.is_empty() => {
                    object::overwrite(&mut segments, offset, offset + length).unwrap()
                }
                Some(last) => {
                    last.length += length;
                    let to = last.start + last.length;
                    Span {
                        map: last.map,
                        from: to - length,
                        to,
                    }
                }
                None => {
                    let map = (&self.table).number().unwrap();
                    segments.push(Segment {
                        map,
                        start: 0,
                        length,
                    });
                    Span {
                        map,
                        from: 0,
                        to: length,
                    }
                }
            };
            self.commit(|world, staged| {
                let mut clip = Vec::new();
                for span in source {
                    clip.extend(staged.copy(span.map, span.from, span.to)?);
                }
                spans
                    .into_iter()
                    .try_for_each(|span| world.cut(staged, span))?;
                fill(staged, at, clip);
                Ok(())
            });
        }
        self.objects.insert(name, segments);
    }

    pub fn truncate(&mut self, name: u8, size: u64) {
        let Some(segments) = self.objects.get_mut(&name) else {
            return;
        };
        let (gone, cut) = object::shorten(segments, size);
        self.drop_maps(gone);
        self.commit(|world, staged| cut.into_iter().try_for_each(|span| world.cut(staged, span)));
        self.model.get_mut(&name).unwrap().truncate(size as usize);
    }

    pub fn punch(&mut self, name: u8, from: u64, to: u64) {
        let Some(segments) = self.objects.get(&name).cloned() else {
            return;
        };
        self.commit(|world, staged| {
            for span in object::spans(&segments, from, to) {
                let copies = staged.punch(span.map, span.from, span.to)?;
                world.execute(staged, copies);
            }
            Ok(())
        });
        self.model.get_mut(&name).unwrap()[from as usize..to as usize].fill(0);
    }

    /// Shows `from..to` of one object at `offset` of another or the same one.
    pub fn clone_range(&mut self, source: u8, from: u64, to: u64, name: u8, offset: u64) {
        let Some(segments) = self.objects.get(&source) else {
            return;
        };
        let spans = object::spans(segments, from, to);
        let clip = self.model[&source][from as usize..to as usize].to_vec();
        self.replace(name, offset, to - from, &spans, |staged, at, extents| {
            staged.paste(at.map, at.from, extents).unwrap();
        });
        let model = self.model.entry(name).or_default();
        let end = offset as usize + clip.len();
        model.resize(model.len().max(end), 0);
        model[offset as usize..end].copy_from_slice(&clip);
    }

    /// Moves some of the fragments of a blob, found by the cleaning index.
    pub fn relocate(&mut self, random: &mut Rng) {
        if self.index.is_empty() {
            return;
        }
        let name = *self
            .index
            .values()
            .nth(random.usize(0..self.index.len()))
            .unwrap();
        let (blob, old) = match name {
            BlobName::Own { map, end } => {
                let extent = self.table.extents[&(map, end)].clone();
                let Content::Own { blob, .. } = &extent.content else {
                    panic!("{extent:?}")
                };
                (blob.clone(), Some((map, end, extent)))
            }
            BlobName::Shared(id) => (self.table.blobs[&id].blob.clone(), None),
        };
        let mut fresh = Vec::new();
        let moved = blob.relocated(|index| {
            let fragment = blob.fragments[index];
            if fragment.at.is_none() || random.u8(0..3) == 0 {
                return None;
            }
            let bytes = self.fetch(&[fragment]);
            let placed = self.place(random, &bytes);
            fresh.extend_from_slice(&placed);
            Some(placed)
        });
        self.commit(|_, staged| match (name, old) {
            (BlobName::Shared(id), _) => staged.move_shared(id, moved, &fresh),
            (_, Some((map, end, extent))) => {
                staged.move_own(map, end, &extent, moved, &fresh);
                Ok(())
            }
            _ => unreachable!(),
        });
    }

    /// Every object reads as its model, and rows, index, references and counters agree.
    pub fn check(&self) {
        assert_eq!(
            self.objects.keys().collect::<Vec<_>>(),
            self.model.keys().collect::<Vec<_>>()
        );
        let mut references: BTreeMap<BlobId, References> = BTreeMap::new();
        let mut rows = 0;
        for (name, segments) in &self.objects {
            let mut bytes = Vec::new();
            for segment in segments {
                let mut next = segment.start;
                for (offset, extent) in (&&self.table).extents(segment.map, 0, u64::MAX).unwrap() {
                    assert_eq!(offset, next, "a gap or an overlap in {name}");
                    next += extent.length;
                    rows += 1;
                    match &extent.content {
                        Content::Hole => bytes.resize(bytes.len() + extent.length as usize, 0),
                        Content::Inline(data) => bytes.extend_from_slice(data),
                        Content::Own { blob, skip } => {
                            bytes.extend(self.read(blob, *skip, skip + extent.length as u32));
                        }
                        Content::Shared { blob, skip } => {
                            let shown = *skip..skip + extent.length as u32;
                            let shared = &self.table.blobs[blob];
                            assert!(shared.map.is_none_or(|only| only == segment.map));
                            bytes.extend(self.read(&shared.blob, shown.start, shown.end));
                            assert!(references.entry(*blob).or_default().add(shown));
                        }
                    }
                }
                assert_eq!(next, segment.start + segment.length, "the end of {name}");
            }
            assert!(bytes == self.model[name], "object {name}");
        }
        assert_eq!(rows, self.table.extents.len(), "rows of no object");
        self.check_blobs(&references);
    }

    fn check_blobs(&self, references: &BTreeMap<BlobId, References>) {
        let counted = self
            .table
            .blobs
            .iter()
            .map(|(id, shared)| (*id, shared.references.clone()));
        assert_eq!(&counted.collect::<BTreeMap<_, _>>(), references);
        let mut index = BTreeMap::new();
        let mut live: BTreeMap<ZoneId, i64> = BTreeMap::new();
        let mut inline = 0;
        let mut enter = |blob: &Blob, name: BlobName| {
            for fragment in &blob.fragments {
                let Some(at) = fragment.at else { continue };
                assert!(index.insert(at, (name, fragment.padded(BLOCK))).is_none());
                *live.entry(at.zone).or_default() += fragment.padded(BLOCK) as i64;
            }
        };
        for ((map, end), extent) in &self.table.extents {
            match &extent.content {
                Content::Own { blob, .. } => enter(
                    blob,
                    BlobName::Own {
                        map: *map,
                        end: *end,
                    },
                ),
                Content::Inline(bytes) => inline += bytes.len() as i64,
                _ => {}
            }
        }
        for (id, shared) in &self.table.blobs {
            enter(&shared.blob, BlobName::Shared(*id));
        }
        assert_eq!(inline, self.inline);
        for ((a, (_, bytes)), (b, _)) in index.iter().zip(index.iter().skip(1)) {
            assert!(
                a.zone != b.zone || a.offset + bytes <= b.offset,
                "overlap at {b}"
            );
        }
        let names: BTreeMap<_, _> = index
            .into_iter()
            .map(|(at, (name, _))| (at, name))
            .collect();
        assert_eq!(names, self.index);
        for (zone, counters) in &self.counters {
            let found = live.get(zone).copied().unwrap_or(0);
            assert_eq!(counters.written - counters.dead, found, "zone {zone}");
        }
    }
}
