//! `zonestore leveldb …`

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `zonestore leveldb`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore leveldb d.zoned -- /usr/bin/python3 -c \\
    'import plyvel; plyvel.DB(\"/db\", create_if_missing=True).put(b\"k\", b\"v\", sync=True)'
  zonestore leveldb d.zoned -- ./program-with-leveldb

A library is preloaded into PROGRAM that answers leveldb::Env::Default() by the plug-in, so that all its
databases lie on the drive; their paths are paths on the drive. PROGRAM has to be linked with
libleveldb.so: one that contains LevelDB itself (as plyvel from PyPI does) is not reached, and keeps
its databases where it always did.

Writes without sync survive PROGRAM's being killed: on a drive in a file they are kept in DRIVE.unsynced
until the next mount, on a device once they are a second old (ZONESTORE_LOG_AGE_MS). The exit code is
PROGRAM's, but 1 if it ends without error and nobody opened the drive. ZONESTORE_LEVELDB_LIB names the
plug-in if it is not beside this program or in ../lib.")]
pub struct LeveldbArguments {
    /// A drive made by `zonestore fs mkfs`
    pub drive: PathBuf,
    /// The program
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
