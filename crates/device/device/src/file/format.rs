//! The on-disk format of a drive file: header block, zone table, layout. Encoding and decoding, no I/O.
//!
//! Little-endian, fixed offsets, reserved bytes zero. The decoders accept any bytes: they return an error for
//! invalid ones and never panic. Documented in `docs/format/file-drive.md`; a test compares its table with the
//! constants here.

use crate::rules::RestedZone;
use std::fmt;
use zone::{Geometry, GeometryError, ZoneCondition, ZoneId, ZoneKind};

/// First bytes of every drive file.
pub const MAGIC: [u8; 8] = *b"ZoneDrv\0";
/// The format version of new files.
pub const VERSION: u32 = 2;
/// The previous version, in which every entry holds the write pointer itself.
pub const FIRST_VERSION: u32 = 1;
/// Bytes of the header block, at the start of the file.
pub const HEADER_BYTES: usize = 4096;
/// Offset of the zone table in the file.
pub const TABLE_OFFSET: u64 = HEADER_BYTES as u64;
/// Bytes of a zone table entry: a 512-byte sector holds eight, and no entry crosses sectors.
pub const ENTRY_BYTES: usize = 64;
/// The offset of the data area is a multiple of this.
pub const DATA_ALIGNMENT: u64 = 1 << 20;
/// Most zones of a drive file.
pub const MAX_ZONES: u32 = 1 << 24;
/// Most bytes of the profile's name.
pub const PROFILE_NAME_BYTES: usize = 63;
/// Most bytes of the label.
pub const LABEL_BYTES: usize = 127;

/// Offsets of the header's fields.
pub mod header_at {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// u32 format version.
    pub const VERSION: usize = 8;
    /// u32 crc32c of the header block with this field zero.
    pub const CHECKSUM: usize = 12;
    /// 16 random bytes.
    pub const UUID: usize = 16;
    /// u32 bytes of a block.
    pub const BLOCK_SIZE: usize = 32;
    /// u32 number of zones.
    pub const ZONE_COUNT: usize = 36;
    /// u64 bytes from zone start to zone start.
    pub const ZONE_SIZE: usize = 40;
    /// u64 writable bytes of a sequential zone.
    pub const ZONE_CAPACITY: usize = 48;
    /// u32 number of conventional zones.
    pub const CONVENTIONAL_ZONES: usize = 56;
    /// u8 kind of the other zones.
    pub const SEQUENTIAL_KIND: usize = 60;
    /// u32 most open zones.
    pub const MAX_OPEN_ZONES: usize = 64;
    /// u32 most active zones.
    pub const MAX_ACTIVE_ZONES: usize = 68;
    /// u32 most bytes of a zone append.
    pub const MAX_APPEND_BYTES: usize = 72;
    /// u64 where the zone table begins.
    pub const TABLE_OFFSET: usize = 80;
    /// u64 where zone 0 begins.
    pub const DATA_OFFSET: usize = 88;
    /// u8 length, then the profile's name in UTF-8.
    pub const PROFILE_NAME: usize = 96;
    /// u8 length, then the label in UTF-8.
    pub const LABEL: usize = 160;
    /// From here to the end of the block: reserved.
    pub const RESERVED: usize = 288;
}

/// Offsets of a zone table entry's fields.
pub mod entry_at {
    /// u32 the zone's number.
    pub const ZONE: usize = 0;
    /// u8 the zone's kind.
    pub const KIND: usize = 4;
    /// u8 the zone's condition.
    pub const CONDITION: usize = 5;
    /// u64 bytes from the zone's start.
    pub const WRITE_POINTER: usize = 8;
    /// u64 bytes from the zone's start, or 0.
    pub const PREPARED_END: usize = 16;
    /// From here to the checksum: reserved.
    pub const RESERVED: usize = 24;
    /// u32 crc32c of the bytes before it.
    pub const CHECKSUM: usize = 60;
}

const _: () = assert!(header_at::PROFILE_NAME + 1 + PROFILE_NAME_BYTES == header_at::LABEL);
const _: () = assert!(header_at::LABEL + 1 + LABEL_BYTES == header_at::RESERVED);
const _: () = assert!(entry_at::CHECKSUM + 4 == ENTRY_BYTES);
const _: () = assert!(512 % ENTRY_BYTES == 0 && TABLE_OFFSET.is_multiple_of(512));

/// The 16 bytes that identify a drive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriveUuid(pub [u8; 16]);

impl fmt::Display for DriveUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for DriveUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The fields of the header block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// From [`FIRST_VERSION`] to [`VERSION`].
    pub version: u32,
    /// The drive's identity for programs.
    pub uuid: DriveUuid,
    /// Geometry of the drive.
    pub geometry: Geometry,
    /// Name of the profile that the drive was made from; at most [`PROFILE_NAME_BYTES`].
    pub profile_name: String,
    /// A name for people; at most [`LABEL_BYTES`].
    pub label: String,
}

/// The fields of a zone table entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The zone's condition and write pointer.
    pub rested: RestedZone,
    /// If not 0: the entry's write pointer is a lower bound. From there up to this end (bytes from the zone's
    /// start) the zone held durable zeros when the entry was written, and the real write pointer is at the end
    /// of the last block in between that is not all zeros.
    pub prepared_end: u64,
}

impl From<RestedZone> for Entry {
    fn from(rested: RestedZone) -> Self {
        Self {
            rested,
            prepared_end: 0,
        }
    }
}

/// Why bytes are not a header or a zone table entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormatError {
    /// They do not begin with [`MAGIC`].
    Magic,
    /// The format version is not supported.
    Version(u32),
    /// The value of a field is invalid.
    Field {
        /// The name of the field.
        what: &'static str,
        /// Its offset in the header or entry.
        at: usize,
        /// The expected value or bound.
        expected: u64,
        /// The value found.
        found: u64,
    },
}

/// Offset of zone 0 in the file.
pub const fn data_offset(zone_count: u32) -> u64 {
    (TABLE_OFFSET + zone_count as u64 * ENTRY_BYTES as u64).next_multiple_of(DATA_ALIGNMENT)
}

/// Offset of the entry of `zone` in the file.
pub const fn entry_offset(zone: ZoneId) -> u64 {
    TABLE_OFFSET + zone.0 as u64 * ENTRY_BYTES as u64
}

/// Length of a drive file in bytes; `None` if it exceeds the length that a file can have.
pub fn file_bytes(geometry: &Geometry) -> Option<u64> {
    let data = geometry
        .zone_size
        .checked_mul(u64::from(geometry.zone_count))?;
    data.checked_add(data_offset(geometry.zone_count))
        .filter(|bytes| *bytes <= i64::MAX as u64)
}

/// Encodes the header block. The names must fit.
pub fn encode_header(header: &Header) -> [u8; HEADER_BYTES] {
    let geometry = &header.geometry;
    let mut block = [0; HEADER_BYTES];
    put(&mut block, header_at::MAGIC, &MAGIC);
    put(
        &mut block,
        header_at::VERSION,
        &header.version.to_le_bytes(),
    );
    put(&mut block, header_at::UUID, &header.uuid.0);
    put(
        &mut block,
        header_at::BLOCK_SIZE,
        &geometry.block_size.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::ZONE_COUNT,
        &geometry.zone_count.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::ZONE_SIZE,
        &geometry.zone_size.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::ZONE_CAPACITY,
        &geometry.zone_capacity.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::CONVENTIONAL_ZONES,
        &geometry.conventional_zones.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::SEQUENTIAL_KIND,
        &[encode_kind(geometry.sequential_kind)],
    );
    put(
        &mut block,
        header_at::MAX_OPEN_ZONES,
        &geometry.max_open_zones.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::MAX_ACTIVE_ZONES,
        &geometry.max_active_zones.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::MAX_APPEND_BYTES,
        &geometry.max_append_bytes.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::TABLE_OFFSET,
        &TABLE_OFFSET.to_le_bytes(),
    );
    put(
        &mut block,
        header_at::DATA_OFFSET,
        &data_offset(geometry.zone_count).to_le_bytes(),
    );
    put_name(
        &mut block,
        header_at::PROFILE_NAME,
        &header.profile_name,
        PROFILE_NAME_BYTES,
    );
    put_name(&mut block, header_at::LABEL, &header.label, LABEL_BYTES);
    let checksum = header_checksum(&block);
    put(&mut block, header_at::CHECKSUM, &checksum.to_le_bytes());
    block
}

/// Names the field of a header that contradicts the others, with its bound.
fn impossible(error: GeometryError) -> FormatError {
    use GeometryError as E;
    let (what, at, expected, found) = match error {
        E::BlockSize(found) => ("block size", header_at::BLOCK_SIZE, 4096, found.into()),
        E::ZoneSize {
            size,
            capacity,
            block_size,
        } => {
            let block = u64::from(block_size);
            if size < block || !size.is_multiple_of(block) {
                ("zone size", header_at::ZONE_SIZE, block, size)
            } else {
                ("zone capacity", header_at::ZONE_CAPACITY, size, capacity)
            }
        }
        E::ZoneCount {
            zone_count,
            conventional_zones,
        } if conventional_zones > zone_count && zone_count > 0 => (
            "number of conventional zones",
            header_at::CONVENTIONAL_ZONES,
            zone_count.into(),
            conventional_zones.into(),
        ),
        E::ZoneCount { zone_count, .. } => (
            "number of zones",
            header_at::ZONE_COUNT,
            MAX_ZONES.into(),
            zone_count.into(),
        ),
        // No field of the header is about parts.
        E::Parts(parts) => (
            "parts of a zone",
            header_at::CONVENTIONAL_ZONES,
            1,
            parts.into(),
        ),
        E::SequentialKind => (
            "kind of sequential zones",
            header_at::SEQUENTIAL_KIND,
            encode_kind(ZoneKind::SequentialWriteRequired).into(),
            encode_kind(ZoneKind::Conventional).into(),
        ),
        E::Limits { open, active } => (
            "limit of active zones",
            header_at::MAX_ACTIVE_ZONES,
            open.into(),
            active.into(),
        ),
        E::Append(found) => (
            "bytes of an append",
            header_at::MAX_APPEND_BYTES,
            0,
            found.into(),
        ),
    };
    field(what, at, expected, found)
}

/// Decodes a header block.
///
/// The magic is checked before the checksum, to tell foreign files from damaged ones, and the checksum before
/// the version, so that a damaged version is reported as damage. Every version has these three fields at the
/// same offsets.
pub fn decode_header(block: &[u8; HEADER_BYTES]) -> Result<Header, FormatError> {
    if block[..MAGIC.len()] != MAGIC {
        return Err(FormatError::Magic);
    }
    let stored = get_u32(block, header_at::CHECKSUM);
    expect(
        "header checksum",
        header_at::CHECKSUM,
        header_checksum(block).into(),
        stored.into(),
    )?;
    let version = get_u32(block, header_at::VERSION);
    if !(FIRST_VERSION..=VERSION).contains(&version) {
        return Err(FormatError::Version(version));
    }
    let sequential_kind = decode_kind(block[header_at::SEQUENTIAL_KIND]);
    let geometry = Geometry {
        block_size: get_u32(block, header_at::BLOCK_SIZE),
        zone_size: get_u64(block, header_at::ZONE_SIZE),
        zone_capacity: get_u64(block, header_at::ZONE_CAPACITY),
        zone_count: get_u32(block, header_at::ZONE_COUNT),
        conventional_zones: get_u32(block, header_at::CONVENTIONAL_ZONES),
        conventional_parts: 1,
        sequential_kind: sequential_kind.ok_or(FormatError::Field {
            what: "kind of sequential zones",
            at: header_at::SEQUENTIAL_KIND,
            expected: encode_kind(ZoneKind::SequentialWriteRequired).into(),
            found: block[header_at::SEQUENTIAL_KIND].into(),
        })?,
        max_open_zones: get_u32(block, header_at::MAX_OPEN_ZONES),
        max_active_zones: get_u32(block, header_at::MAX_ACTIVE_ZONES),
        max_append_bytes: get_u32(block, header_at::MAX_APPEND_BYTES),
    };
    geometry.validate().map_err(impossible)?;
    let count = geometry.zone_count;
    if count > MAX_ZONES || file_bytes(&geometry).is_none() {
        return Err(field(
            "number of zones",
            header_at::ZONE_COUNT,
            MAX_ZONES.into(),
            count.into(),
        ));
    }
    let table = get_u64(block, header_at::TABLE_OFFSET);
    expect(
        "zone table offset",
        header_at::TABLE_OFFSET,
        TABLE_OFFSET,
        table,
    )?;
    let data = get_u64(block, header_at::DATA_OFFSET);
    expect(
        "data offset",
        header_at::DATA_OFFSET,
        data_offset(count),
        data,
    )?;
    let header = Header {
        version,
        uuid: DriveUuid(get(block, header_at::UUID)),
        geometry,
        profile_name: get_name(block, header_at::PROFILE_NAME, PROFILE_NAME_BYTES)?,
        label: get_name(block, header_at::LABEL, LABEL_BYTES)?,
    };
    expect_canonical(block, &encode_header(&header), header_at::CHECKSUM)?;
    Ok(header)
}

/// Encodes the entry of `zone`.
pub fn encode_entry(zone: ZoneId, kind: ZoneKind, content: Entry) -> [u8; ENTRY_BYTES] {
    let rested = content.rested;
    let mut entry = [0; ENTRY_BYTES];
    put(&mut entry, entry_at::ZONE, &zone.0.to_le_bytes());
    put(&mut entry, entry_at::KIND, &[encode_kind(kind)]);
    put(
        &mut entry,
        entry_at::CONDITION,
        &[encode_condition(rested.condition)],
    );
    put(
        &mut entry,
        entry_at::WRITE_POINTER,
        &rested.write_pointer.to_le_bytes(),
    );
    put(
        &mut entry,
        entry_at::PREPARED_END,
        &content.prepared_end.to_le_bytes(),
    );
    let checksum = crc32c(&entry[..entry_at::CHECKSUM]);
    put(&mut entry, entry_at::CHECKSUM, &checksum.to_le_bytes());
    entry
}

/// Decodes the entry of `zone`, which is of `kind`. Does not check its write pointer and prepared end against
/// the zone.
pub fn decode_entry(
    zone: ZoneId,
    kind: ZoneKind,
    entry: &[u8; ENTRY_BYTES],
) -> Result<Entry, FormatError> {
    let stored = get_u32(entry, entry_at::CHECKSUM);
    let computed = crc32c(&entry[..entry_at::CHECKSUM]);
    expect(
        "zone entry checksum",
        entry_at::CHECKSUM,
        computed.into(),
        stored.into(),
    )?;
    let number = get_u32(entry, entry_at::ZONE);
    expect(
        "zone entry number",
        entry_at::ZONE,
        zone.0.into(),
        number.into(),
    )?;
    let found = entry[entry_at::KIND];
    expect(
        "zone entry kind",
        entry_at::KIND,
        encode_kind(kind).into(),
        found.into(),
    )?;
    let code = entry[entry_at::CONDITION];
    let condition = decode_condition(code).ok_or(field(
        "zone entry condition",
        entry_at::CONDITION,
        1,
        code.into(),
    ))?;
    let write_pointer = get_u64(entry, entry_at::WRITE_POINTER);
    let content = Entry {
        rested: RestedZone {
            condition,
            write_pointer,
        },
        prepared_end: get_u64(entry, entry_at::PREPARED_END),
    };
    let expected = encode_entry(zone, kind, content);
    expect_canonical(entry, &expected, entry_at::CHECKSUM)?;
    Ok(content)
}

/// The code of a zone kind in the format; 0 is invalid.
pub const fn encode_kind(kind: ZoneKind) -> u8 {
    match kind {
        ZoneKind::Conventional => 1,
        ZoneKind::SequentialWriteRequired => 2,
        ZoneKind::SequentialWritePreferred => 3,
    }
}

const fn decode_kind(code: u8) -> Option<ZoneKind> {
    match code {
        1 => Some(ZoneKind::Conventional),
        2 => Some(ZoneKind::SequentialWriteRequired),
        3 => Some(ZoneKind::SequentialWritePreferred),
        _ => None,
    }
}

/// The code of a zone condition in the format; 0 is invalid. Open zones are stored as closed, because no zone
/// is open after a power cycle.
pub const fn encode_condition(condition: ZoneCondition) -> u8 {
    match condition {
        ZoneCondition::NotWritePointer => 1,
        ZoneCondition::Empty => 2,
        ZoneCondition::Closed | ZoneCondition::ImplicitOpen | ZoneCondition::ExplicitOpen => 3,
        ZoneCondition::Full => 4,
        ZoneCondition::ReadOnly => 5,
        ZoneCondition::Offline => 6,
    }
}

const fn decode_condition(code: u8) -> Option<ZoneCondition> {
    match code {
        1 => Some(ZoneCondition::NotWritePointer),
        2 => Some(ZoneCondition::Empty),
        3 => Some(ZoneCondition::Closed),
        4 => Some(ZoneCondition::Full),
        5 => Some(ZoneCondition::ReadOnly),
        6 => Some(ZoneCondition::Offline),
        _ => None,
    }
}

fn crc32c(data: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, data) as u32
}

fn header_checksum(block: &[u8; HEADER_BYTES]) -> u32 {
    let mut block = *block;
    put(&mut block, header_at::CHECKSUM, &[0; 4]);
    crc32c(&block)
}

const fn field(what: &'static str, at: usize, expected: u64, found: u64) -> FormatError {
    FormatError::Field {
        what,
        at,
        expected,
        found,
    }
}

fn expect(what: &'static str, at: usize, expected: u64, found: u64) -> Result<(), FormatError> {
    if expected == found {
        Ok(())
    } else {
        Err(field(what, at, expected, found))
    }
}

/// Checks that reserved bytes are zero and all other fields are in their only encoding. The checksum is left
/// out: it was valid for the bytes found.
fn expect_canonical(found: &[u8], expected: &[u8], checksum_at: usize) -> Result<(), FormatError> {
    let differs = |at: &usize| found[*at] != expected[*at];
    let mut fields = (0..checksum_at).chain(checksum_at + 4..found.len());
    match fields.find(differs) {
        Some(at) => Err(field(
            "reserved byte",
            at,
            expected[at].into(),
            found[at].into(),
        )),
        None => Ok(()),
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn put_name(bytes: &mut [u8], at: usize, name: &str, max: usize) {
    assert!(
        name.len() <= max && max <= u8::MAX.into(),
        "a name that does not fit its field"
    );
    put(bytes, at, &[name.len() as u8]);
    put(bytes, at + 1, name.as_bytes());
}

fn get_name(bytes: &[u8], at: usize, max: usize) -> Result<String, FormatError> {
    let length = usize::from(bytes[at]);
    if length > max {
        return Err(field("length of a name", at, max as u64, length as u64));
    }
    let text = bytes[at + 1..at + 1 + length].to_vec();
    String::from_utf8(text).map_err(|error| {
        let bad = error.utf8_error().valid_up_to();
        field(
            "UTF-8 of a name",
            at + 1 + bad,
            0,
            error.as_bytes()[bad].into(),
        )
    })
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(bytes, at))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(bytes, at))
}
