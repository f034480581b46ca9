//! Every decoder of the store's records (docs/format/store.md).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| store::fuzz(input));
