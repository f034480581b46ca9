//! `zonestore rocksdb …` and `zonestore leveldb …`

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct ProgramArguments {
    /// A drive with a file system
    pub drive: PathBuf,
    /// The program
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// What a LevelDB program's files are on.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum ProgramFiles {
    /// BlueFS, made by `zonestore fs mkfs`
    Bluefs,
    /// ZEAFS, made by `zonestore zea mkfs --fs`
    Zeafs,
}

#[derive(Args, Debug)]
pub struct LeveldbArguments {
    /// The file system that has to be on the drive; whichever it is, if none is named
    #[arg(long, value_name = "NAME")]
    pub fs: Option<ProgramFiles>,
    #[command(flatten)]
    pub program: ProgramArguments,
}

pub const ROCKSDB: &str = "\
Examples:
  zonestore rocksdb d.zoned -- db_bench --benchmarks=fillrandom,readrandom --num=1000000
  zonestore rocksdb d.zoned -- ldb scan --max_keys=10
  zonestore rocksdb d.zoned -- sst_dump --file=/db --command=verify

The plug-in library is preloaded into PROGRAM. db_bench, ldb, sst_dump and db_stress are told to use
it by --fs_uri, and db_bench and ldb to keep their database in /db on the drive, unless the command
line says otherwise. Any other program gets the drive as rocksdb::FileSystem::Default(), and with that
in Env::Default(): its databases lie on the drive. It has to be linked with librocksdb.so; one that
contains RocksDB itself is not reached. Exit code 1: the program ended without error, and nothing had opened the drive. A program that hands
the address in ZONESTORE_URI to rocksdb::Env::CreateFromUri or FileSystem::CreateFromString by itself may
be started with ZONESTORE_DEFAULT_FILE_SYSTEM=0.

What is written without sync survives PROGRAM's being killed: on a drive in a file it is kept in
DRIVE.unsynced until the next mount, on a device once it is a second old (ZONESTORE_LOG_AGE_MS).

SSTs of two zones or more (target_file_size_base) keep a nearly full drive from moving them.
ZONESTORE_CACHE_BYTES=SIZE is memory for what is read (an eighth of the machine's on a device, none on a drive in a file);
with ZONESTORE_CACHE_WRITES=1 it also has what is written to young SSTs.

The exit code is PROGRAM's otherwise. ZONESTORE_ROCKSDB_LIB names the library if it is not beside this program
or in ../lib/zonestore.";

pub const LEVELDB: &str = "\
Examples:
  zonestore leveldb d.zoned -- /usr/bin/python3 -c \\
    'import plyvel; plyvel.DB(\"/db\", create_if_missing=True).put(b\"k\", b\"v\", sync=True)'
  zonestore leveldb d.zoned -- ./program-with-leveldb
  zonestore zea mkfs --fs z.zoned && zonestore leveldb z.zoned -- ./program-with-leveldb

A library is preloaded into PROGRAM that answers leveldb::Env::Default() by the plug-in, so that all its
databases lie on the drive; their paths are paths on the drive. PROGRAM has to be linked with
libleveldb.so: one that contains LevelDB itself (as plyvel from PyPI does) is not reached, and keeps
its databases where it always did.

Writes without sync survive PROGRAM's being killed: on a drive in a file they are kept in DRIVE.unsynced
until the next mount, on a device and on ZEAFS once they are a second old (ZONESTORE_LOG_AGE_MS). The exit code is
PROGRAM's, but 1 if it ends without error and nobody opened the drive. ZONESTORE_LEVELDB_LIB names the
plug-in if it is not beside this program or in ../lib/zonestore.";
