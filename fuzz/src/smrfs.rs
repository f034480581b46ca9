//! Every decoder of the metadata of smrfs (docs/format/smrfs.md).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| smrfs::fuzz(input));
