//! Conversions of pointers that cross the ABI.

use crate::failure::{Answer, Failure};
use crate::forks;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) fn null() -> Failure {
    Failure::invalid("a null pointer, or more bytes than there can be behind one".to_owned())
}

/// What a handle points to.
///
/// # Safety
/// `handle` is null or points to a value that lives for `'a`.
pub(crate) unsafe fn at<'a, T>(handle: *const T) -> Answer<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(null)
}

/// `out`, if it is not null.
pub(crate) fn writable<T>(out: *mut T) -> Answer<*mut T> {
    if out.is_null() { Err(null()) } else { Ok(out) }
}

/// Whether there can be `length` bytes behind a pointer.
fn can_be(is_null: bool, length: usize) -> Answer {
    match is_null || isize::try_from(length).is_err() {
        true => Err(null()),
        false => Ok(()),
    }
}

/// # Safety
/// `data` is null or points to `length` bytes that live for `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const c_char, length: usize) -> Answer<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    can_be(data.is_null(), length)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) })
}

/// # Safety
/// As [`bytes`]; nothing else uses the bytes meanwhile.
pub(crate) unsafe fn buffer<'a>(data: *mut c_char, length: usize) -> Answer<&'a mut [u8]> {
    if length == 0 {
        return Ok(&mut []);
    }
    can_be(data.is_null(), length)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), length) })
}

/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn text<'a>(data: *const c_char, length: usize) -> Answer<&'a str> {
    // SAFETY: as the caller promises.
    let raw = unsafe { bytes(data, length) }?;
    std::str::from_utf8(raw).map_err(|_| {
        let path = String::from_utf8_lossy(raw).into_owned();
        Failure::from(bluefs::Error::BadPath { path })
    })
}

/// # Safety
/// `out` may be written to.
pub(crate) unsafe fn give<T>(out: *mut *mut T, value: T) {
    // SAFETY: as the caller promises.
    unsafe { *out = Box::into_raw(Box::new(value)) };
}

/// # Safety
/// `handle` is null or came from [`give`] and is not used again.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    // In a forked child the parent's locks may stay held for ever, and nothing may be written.
    if !handle.is_null() && !forks::is_cut_off() {
        // SAFETY: as the caller promises.
        let value = unsafe { Box::from_raw(handle) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}
