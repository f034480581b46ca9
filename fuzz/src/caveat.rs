//! Every decoder of an emulated Caveat-Scriptor drive (docs/format/caveat.md).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| caveat::fuzz(input));
