//! Every decoder of the small database's log and tables (docs/format/kv-log.md).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| kv_log::fuzz(input));
