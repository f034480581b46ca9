//! A model's state as the bytes of a file: a header, then the model in postcard encoding. The format is in
//! docs/format/model-state.md.
//!
//! The checksum detects damage, not manipulation: the state of a model is as trusted as the program.

use crate::model::Model;
use crate::profile::AnyProfile;
pub use crate::saved::{StateError, VERSION};
use crate::time::Time;
use crc_fast::{CrcAlgorithm, Digest};

/// The first bytes of the file.
pub const MAGIC: [u8; 8] = *b"ZSMODEL\0";
/// Bytes of the header, before the model.
pub const HEADER_BYTES: usize = 48;
/// Bytes of the header that the checksum covers, together with the model.
const CHECKED_BYTES: usize = 40;

fn checksum(head: &[u8], payload: &[u8]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(head);
    digest.update(payload);
    digest.finalize()
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

/// Encodes the state of a profile's drive at time `now`.
///
/// # Errors
/// [`StateError::NoState`].
pub fn save(profile: &AnyProfile, model: &dyn Model, now: Time) -> Result<Vec<u8>, StateError> {
    let payload = model.saved().ok_or(StateError::NoState)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(profile.fingerprint().to_le_bytes());
    bytes.extend(now.nanos().to_le_bytes());
    bytes.extend((payload.len() as u64).to_le_bytes());
    bytes.extend(checksum(&bytes, &payload).to_le_bytes());
    bytes.extend(payload);
    Ok(bytes)
}

/// Decodes the drive of a profile, and the time at which it was saved.
///
/// # Errors
/// [`StateError`]: the bytes are not a state of this profile's drive.
pub fn load(profile: &AnyProfile, bytes: &[u8]) -> Result<(Box<dyn Model>, Time), StateError> {
    if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
        return Err(StateError::NotAState);
    }
    let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(StateError::Damaged { what: "length" });
    };
    let found = number(header, 8) as u32;
    if found != VERSION {
        return Err(StateError::UnsupportedVersion { found });
    }
    if number(header, 32) != payload.len() as u64 {
        return Err(StateError::Damaged { what: "length" });
    }
    if number(header, CHECKED_BYTES) != checksum(&header[..CHECKED_BYTES], payload) {
        return Err(StateError::Damaged { what: "checksum" });
    }
    if number(header, 16) != profile.fingerprint() {
        return Err(StateError::OtherProfile);
    }
    let model = profile.restored(payload)?;
    Ok((model, Time::from_nanos(number(header, 24))))
}
