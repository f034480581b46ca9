//! `zonestore rocksdb …`

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `zonestore rocksdb`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  zonestore rocksdb d.zoned -- db_bench --benchmarks=fillrandom,readrandom --num=1000000
  zonestore rocksdb d.zoned -- ldb scan --max_keys=10
  zonestore rocksdb d.zoned -- sst_dump --file=/db --command=verify

The plug-in library is preloaded into PROGRAM. db_bench, ldb, sst_dump and db_stress are told to use
it by --fs_uri, and db_bench and ldb to keep their database in /db on the drive, unless the command
line says otherwise. Any other program gets the drive as rocksdb::FileSystem::Default(), and with that
in Env::Default(): its databases lie on the drive. It has to be linked with librocksdb.so; one that
contains RocksDB itself is not reached. Exit code 1 says that nobody opened the drive until its end. A program that hands
the address in ZONESTORE_URI to rocksdb::Env::CreateFromUri or FileSystem::CreateFromString by itself may
be started with ZONESTORE_DEFAULT_FILE_SYSTEM=0.

What is written without sync survives PROGRAM's being killed: on a drive in a file it is kept in
DRIVE.unsynced until the next mount, on a device once it is a second old (ZONESTORE_LOG_AGE_MS).

SSTs of two zones or more (target_file_size_base) keep a nearly full drive from moving them.
ZONESTORE_CACHE_BYTES=N is memory for what is read (64 MiB on a device, none on a drive in a file);
with ZONESTORE_CACHE_WRITES=1 it also has what is written to young SSTs.

The exit code is PROGRAM's otherwise. ZONESTORE_ROCKSDB_LIB names the library if it is not beside this program
or in ../lib.")]
pub struct RocksdbArguments {
    /// A drive made by `zonestore fs mkfs`
    pub drive: PathBuf,
    /// The program
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
