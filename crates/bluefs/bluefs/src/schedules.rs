//! Tests of BlueFS's own code under schedules that shuttle makes (`runtime::schedules`): at every lock, and in the
//! middle of every command to the drive, it chooses the thread that runs next.
//!
//!     cargo test -p bluefs --features schedules --lib schedules

#![allow(clippy::unwrap_used)]

mod background;
mod drive;
mod flushes;
mod unmounts;
mod zones;
