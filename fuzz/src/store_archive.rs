//! Every decoder of a store's archive (docs/format/store-archive.md).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| archive::fuzz(input));
