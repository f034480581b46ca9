//! Debian's unmodified RocksDB programs on a drive, by preloading the library.
//!
//! They come with `rocksdb-tools`; without them these tests fail rather than pass silently.

#![allow(clippy::unwrap_used)]

use bluefs::{BlueFs, FormatOptions, MountOptions, Role};
use device::{FileDrive, ZonedDevice, profile};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;
use zone::ZoneId;
use zone_alloc::ZonePool;

const SIZE: u64 = 512 << 20;

/// A drive file in a directory of its own.
struct Drive {
    _directory: TempDir,
    path: PathBuf,
}

impl Drive {
    fn unformatted() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("a drive.zoned");
        let geometry = profile::by_name("test-small")
            .unwrap()
            .geometry(SIZE, None)
            .unwrap();
        FileDrive::create(&path, &geometry, "test-small").unwrap();
        Self {
            _directory: directory,
            path,
        }
    }

    fn formatted() -> Self {
        let drive = Self::unformatted();
        let options = FormatOptions {
            uuid: [9; 16],
            role: Role::Alone,
            force: false,
        };
        BlueFs::format(&FileDrive::open(&drive.path).unwrap(), &options).unwrap();
        drive
    }

    fn uri(&self) -> String {
        format!("--fs_uri=zonestore://{}", self.path.display())
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .arg(self.uri())
            .args(arguments)
            .env("LD_PRELOAD", library());
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        output(&mut self.command(program, arguments))
    }

    /// What a run that has to succeed prints.
    fn ok(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}",
            words(&output)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The keys of `/db`, as hexadecimal digits.
    fn keys(&self) -> Vec<String> {
        let scan = self.ok("ldb", &["--db=/db", "scan", "--hex"]);
        scan.lines()
            .map(|line| line.split(" : ").next().unwrap().to_owned())
            .collect()
    }

    /// The file system must be whole when nobody uses it.
    fn check(&self) {
        let device: Arc<dyn ZonedDevice> = Arc::new(FileDrive::open(&self.path).unwrap());
        let g = device.geometry().clone();
        let report = device.report(ZoneId(0), g.zone_count).unwrap();
        let pool = Arc::new(ZonePool::new(g, &report));
        let fs = BlueFs::mount(device, pool, MountOptions::default()).unwrap();
        let report = fs.check(true).unwrap();
        assert!(report.errors.is_empty(), "{report:?}");
        fs.unmount().unwrap();
    }
}

/// The library as it was built for this test.
fn library() -> PathBuf {
    built("libzonestore_rocksdb.so")
}

fn built(file: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.with_file_name(file);
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!(
            "{:?}: {error}; apt-get install rocksdb-tools",
            command.get_program()
        )
    })
}

fn words(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}: {}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Key `n` of db_bench as `ldb --hex` prints it: eight bytes big-endian, filled up with `0`.
fn bench_key(n: u64) -> String {
    format!("0x{n:016X}{}", "30".repeat(8))
}

#[test]
fn db_bench_writes_reads_and_comes_back() {
    let drive = Drive::formatted();
    let sizes = [
        "--db=/db",
        "--num=50000",
        "--value_size=400",
        "--write_buffer_size=4194304",
    ];
    let bench = |more: &[&str]| drive.ok("db_bench", &[&sizes[..], more].concat());
    bench(&[
        "--benchmarks=fillseq,readrandom,readseq",
        "--compression_type=none",
    ]);
    drive.check();
    let read = bench(&["--benchmarks=readrandom", "--use_existing_db=1"]);
    assert!(read.contains("(50000 of 50000 found)"), "{read}");
    bench(&[
        "--benchmarks=overwrite,compact",
        "--use_existing_db=1",
        "--compression_type=none",
    ]);
    let read = bench(&["--benchmarks=readrandom", "--use_existing_db=1"]);
    assert!(read.contains("(50000 of 50000 found)"), "{read}");
    drive.check();
    let verify = drive.ok("sst_dump", &["--file=/db", "--command=verify"]);
    assert!(verify.contains("The file is ok"), "{verify}");
    assert!(!verify.contains("corrupt"), "{verify}");
}

#[test]
fn db_bench_with_direct_writes_stores_the_same() {
    let drive = Drive::formatted();
    let direct = [
        "--use_direct_io_for_flush_and_compaction=1",
        "--use_direct_reads=1",
    ];
    let sizes = [
        "--db=/db",
        "--num=20000",
        "--value_size=400",
        "--write_buffer_size=2097152",
    ];
    let fill = ["--benchmarks=fillseq,overwrite,compact"];
    drive.ok("db_bench", &[&sizes[..], &direct, &fill].concat());
    let read = ["--benchmarks=readrandom", "--use_existing_db=1"];
    for more in [&direct[..], &[]] {
        let read = drive.ok("db_bench", &[&sizes[..], &read, more].concat());
        assert!(read.contains("(20000 of 20000 found)"), "{read}");
    }
    drive.check();
}

/// Reads that RocksDB begins, and asks about later, by `ReadAsync` and `Poll`. Half of the seeks end with
/// reads that nobody waits for any more.
#[test]
fn what_db_bench_reads_ahead_comes_while_it_does_something_else() {
    let drive = Drive::formatted();
    let sizes = ["--db=/db", "--num=40000", "--value_size=400"];
    let fill = [
        "--benchmarks=fillseq,overwrite",
        "--write_buffer_size=2097152",
        "--compression_type=none",
    ];
    drive.ok("db_bench", &[&sizes[..], &fill].concat());
    let statistics = drive.path.with_extension("json");
    let read = [
        "--benchmarks=readseq,seekrandom,readseq",
        "--use_existing_db=1",
        "--seek_nexts=200",
        "--reads=3000",
        "--verify_checksum=1",
        "--cache_size=1048576",
    ];
    for (later, cache_writes, more) in [
        (true, "0", ["--async_io=1", "--use_direct_reads=1"]),
        (true, "1", ["--async_io=1", "--use_direct_reads=1"]),
        (false, "0", ["--async_io=0", "--use_direct_reads=1"]),
    ] {
        let mut command = drive.command("db_bench", &[&sizes[..], &read, &more].concat());
        command.env("ZONESTORE_STATS", &statistics);
        command.env("ZONESTORE_CACHE_WRITES", cache_writes);
        let output = output(&mut command);
        assert!(output.status.success(), "{}", words(&output));
        let read = words(&output);
        assert!(read.contains("(3000 of 3000 found)"), "{read}");
        let told = std::fs::read_to_string(&statistics).unwrap();
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let begun = told["reads_later"].as_u64().unwrap();
        assert_eq!(begun > 100, later, "{told}");
    }
    drive.check();
}

#[test]
fn ldb_puts_gets_scans_and_deletes() {
    let drive = Drive::formatted();
    let ldb = |arguments: &[&str]| drive.ok("ldb", &[&["--db=/some/where"], arguments].concat());
    assert_eq!(ldb(&["--create_if_missing", "put", "b", "2"]), "OK\n");
    assert_eq!(ldb(&["put", "a", "1"]), "OK\n");
    assert_eq!(ldb(&["batchput", "c", "3", "d", "4"]), "OK\n");
    assert_eq!(ldb(&["get", "a"]), "1\n");
    assert_eq!(ldb(&["delete", "b"]), "OK\n");
    assert_eq!(ldb(&["scan"]), "a : 1\nc : 3\nd : 4\n");
    assert_eq!(ldb(&["scan", "--from=b", "--to=d"]), "c : 3\n");
    ldb(&["compact"]);
    ldb(&["checkconsistency"]);
    assert_eq!(ldb(&["scan"]), "a : 1\nc : 3\nd : 4\n");
    assert!(ldb(&["manifest_dump"]).contains("next_file_number"));
    drive.check();
}

/// RocksDB asks whether the two directories are one. Told that they are, it deletes the log's files
/// from the wrong one, and the next database does not begin.
#[test]
fn a_log_in_a_directory_of_its_own_goes_with_its_database() {
    let drive = Drive::formatted();
    for _ in 0..2 {
        drive.ok(
            "db_bench",
            &[
                "--db=/db",
                "--wal_dir=/log",
                "--benchmarks=fillseq",
                "--num=1000",
            ],
        );
    }
    drive.check();
}

/// Such tables read without a buffer and expect what a mapped file would give them.
#[test]
fn tables_that_want_mapped_files_work() {
    let drive = Drive::formatted();
    let table = [
        "--db=/db",
        "--num=1000",
        "--use_plain_table",
        "--mmap_read=1",
        "--prefix_size=8",
        "--memtablerep=prefix_hash",
        "--allow_concurrent_memtable_write=false",
    ];
    let bench = |more: &[&str]| drive.ok("db_bench", &[&table[..], more].concat());
    bench(&["--benchmarks=fillseq,flush"]);
    let read = bench(&["--benchmarks=readrandom", "--use_existing_db=1"]);
    assert!(read.contains("(1000 of 1000 found)"), "{read}");
    drive.check();
}

#[test]
fn the_environment_slot_does_as_well() {
    let drive = Drive::formatted();
    drive.ok("ldb", &["--db=/db", "--create_if_missing", "put", "a", "1"]);
    let env = drive.uri().replace("fs_uri", "env_uri");
    let mut command = Command::new("ldb");
    command
        .args([env.as_str(), "--db=/db", "get", "a"])
        .env("LD_PRELOAD", library());
    let output = output(&mut command);
    assert_eq!(output.stdout, b"1\n", "{}", words(&output));
}

/// Reads from `child` until it says that so many operations are finished.
fn wait_for_operations(child: &mut Child, count: u64) -> u64 {
    let stderr = child.stderr.as_mut().unwrap();
    let (mut said, mut buffer) = (String::new(), [0; 512]);
    loop {
        let finished = said.rsplit("... finished ").find_map(|rest| {
            let (number, _) = rest.split_once(" ops")?;
            number.parse::<u64>().ok()
        });
        match finished {
            Some(finished) if finished >= count => return finished,
            _ => {}
        }
        let n = stderr.read(&mut buffer).unwrap();
        assert!(n > 0, "db_bench ended early: {said}");
        said.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
}

#[test]
fn what_was_synced_survives_kill_9() {
    let drive = Drive::formatted();
    let arguments = [
        "--db=/db",
        "--benchmarks=fillseq",
        "--sync=1",
        "--num=1000000",
        "--value_size=4000",
        "--write_buffer_size=1048576",
        "--max_background_jobs=2",
    ];
    for count in [100, 700, 2000] {
        let mut command = drive.command("db_bench", &arguments);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let finished = wait_for_operations(&mut child, count);
        child.kill().unwrap();
        child.wait().unwrap();
        drive.check();
        let keys = drive.keys();
        let expected: Vec<String> = (0..keys.len() as u64).map(bench_key).collect();
        assert!(
            keys == expected,
            "{} keys are not the first so many",
            keys.len()
        );
        assert!(
            keys.len() as u64 >= finished,
            "{} of {finished} keys",
            keys.len()
        );
    }
    let more = [
        "--db=/db",
        "--use_existing_db=1",
        "--benchmarks=overwrite",
        "--num=2000",
    ];
    drive.ok("db_bench", &more);
    assert!(drive.keys().len() >= 2000);
    drive.check();
}

/// Runs all three programs on what they cannot use; every one must end by itself with an error and
/// one line that says all of `expected`.
fn refused(drive: &Drive, expected: &[&str]) {
    let calls: [(&str, &[&str]); 3] = [
        (
            "db_bench",
            &["--db=/db", "--benchmarks=fillseq", "--num=10"],
        ),
        ("ldb", &["--db=/db", "scan"]),
        ("sst_dump", &["--file=/db"]),
    ];
    for (program, arguments) in calls {
        let output = drive.run(program, arguments);
        let said = words(&output);
        assert!(
            output.status.code().is_some_and(|code| code != 0),
            "{program}: {said}"
        );
        let found = said
            .lines()
            .any(|line| expected.iter().all(|words| line.contains(words)));
        assert!(found, "{program}: {said}");
        assert!(!said.contains("panicked"), "{program}: {said}");
    }
}

#[test]
fn a_drive_that_cannot_be_used_is_one_clear_line_and_no_crash() {
    let drive = Drive::formatted();
    let name = drive.path.to_str().unwrap().to_owned();
    let held = FileDrive::open(&drive.path).unwrap();
    refused(&drive, &[&name, "another process"]);
    drop(held);

    refused(
        &Drive::unformatted(),
        &["not formatted", "zonestore fs mkfs"],
    );

    let before = std::fs::read(&drive.path).unwrap();
    let mut damaged = before.clone();
    damaged[100] ^= 1;
    std::fs::write(&drive.path, &damaged).unwrap();
    refused(&drive, &[&name]);
    assert!(
        std::fs::read(&drive.path).unwrap() == damaged,
        "a damaged drive was written to"
    );

    std::fs::write(&drive.path, b"something else").unwrap();
    refused(&drive, &[&name, "not a drive file"]);
    std::fs::remove_file(&drive.path).unwrap();
    refused(&drive, &[&name, "No such file"]);
    std::fs::create_dir(&drive.path).unwrap();
    refused(&drive, &[&name]);
}

#[test]
fn programs_that_have_nothing_to_do_with_it_run_as_always() {
    for (program, argument) in [("true", "x"), ("ldb", "--version")] {
        let mut command = Command::new(program);
        let output = output(command.arg(argument).env("LD_PRELOAD", library()));
        assert!(output.status.success(), "{}", words(&output));
    }
    let directory = TempDir::new().unwrap();
    let db = format!("--db={}", directory.path().display());
    let mut command = Command::new("ldb");
    command
        .args([&db, "--create_if_missing", "put", "a", "1"])
        .env("LD_PRELOAD", library());
    let output = output(&mut command);
    assert!(output.status.success(), "{}", words(&output));
    assert!(Path::new(directory.path()).join("CURRENT").is_file());
}

/// A C++ program that is linked with the library, as `docs/programs.md` says; no preloading.
fn linked_client(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("client");
    let library = library();
    let beside = library.parent().unwrap();
    let mut compiler = Command::new("g++");
    compiler
        .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"])
        // The strictest of linkers: what nothing refers to is left out.
        .arg("-Wl,--as-needed")
        .arg("-I")
        .arg(root.join("../bluefs-rocksdb/include"))
        .arg(root.join("tests/programs/client.cc"))
        .arg("-L")
        .arg(beside)
        .arg(format!("-Wl,-rpath,{}", beside.display()))
        .args(["-lzonestore_rocksdb", "-lrocksdb", "-o"])
        .arg(&path);
    let built = output(&mut compiler);
    assert!(built.status.success(), "{}", words(&built));
    path
}

#[test]
fn a_cpp_program_is_linked_with_the_library() {
    let drive = Drive::formatted();
    let folder = TempDir::new().unwrap();
    let client = linked_client(folder.path());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&client);
        command.arg(arguments[0]).arg(&drive.path);
        let done = output(command.args(&arguments[1..]));
        assert!(done.status.success(), "{arguments:?}: {}", words(&done));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    // What one of the two wrote the other one reads.
    run(&["fs", "put", "0", "300"]);
    run(&["env", "get", "0", "300"]);
    run(&["env", "put", "300", "500"]);
    run(&["fs", "get", "0", "500"]);
    assert_eq!(run(&["fs", "count"]), "500");
    drive.check();
    // And unmodified tools find the same database.
    let keys = drive.ok("ldb", &["--db=/client", "scan", "--no_value"]);
    assert_eq!(keys.lines().filter(|l| l.contains("key0")).count(), 500);

    // A log is synced beside appends, in all ways to write to it.
    let mut command = Command::new(&client);
    let killed = output(command.arg("env").arg(&drive.path).arg("sync"));
    assert_eq!(killed.status.signal(), Some(9), "{}", words(&killed));
    drive.check();
    run(&["fs", "synced"]);
    drive.check();

    let mut nowhere = Command::new(&client);
    let refused = output(nowhere.args(["env", "/no/such/drive", "count"]));
    assert_eq!(refused.status.code(), Some(1), "{}", words(&refused));
    assert!(
        words(&refused).contains("zonestore drive create"),
        "{}",
        words(&refused)
    );
}

/// A program that is linked with RocksDB alone, as `zonestore rocksdb` starts it.
fn stranger(folder: &Path) -> PathBuf {
    let path = folder.join("stranger");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/stranger.cc");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]);
    let built = output(compiler.arg(source).args(["-lrocksdb", "-o"]).arg(&path));
    assert!(built.status.success(), "{}", words(&built));
    path
}

#[test]
fn a_program_that_knows_no_address_is_on_the_drive() {
    let drive = Drive::formatted();
    let folder = TempDir::new().unwrap();
    let program = stranger(folder.path());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).env("LC_ALL", "C");
        command.env("LD_PRELOAD", built("libzonestore_preload.so"));
        command.env("ZONESTORE_ROCKSDB_LIB", library());
        command.env("ZONESTORE_DEFAULT_FILE_SYSTEM", "1");
        let uri = format!("zonestore://{}", drive.path.display());
        output(command.env("ZONESTORE_URI", uri).stdin(Stdio::null()))
    };
    let said = |arguments: &[&str]| {
        let done = run(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", words(&done));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    // A path of the host that the host does not get to see, and that survives the end without a close.
    let database = folder.path().join("run/kvdb");
    let database = database.to_str().unwrap();
    assert_eq!(said(&["put", database]), "put");
    assert!(!Path::new(database).exists());
    drive.check();
    assert_eq!(said(&["get", database]), "123");
    assert_eq!(said(&["put", "relative"]), "put");
    let scan = drive.ok("ldb", &[&format!("--db={database}"), "scan"]);
    assert_eq!(scan, "a : 1\nb : 2\nc : 3\n");
    assert_eq!(drive.ok("ldb", &["--db=/relative", "get", "c"]), "3\n");
    drive.check();

    // What is on the host is not taken for a database on the drive.
    let host = folder.path().join("host");
    let made = output(Command::new(&program).arg("put").arg(&host));
    assert!(made.status.success() && host.join("CURRENT").is_file());
    let refused = run(&["get", host.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1), "{}", words(&refused));

    // Options that its user wrote are read from the host.
    let options = folder.path().join("options.ini");
    let text = "[Version]\nrocksdb_version=7.8.3\noptions_file_version=1.1\n[DBOptions]\n\
                max_open_files=77\n[CFOptions \"default\"]\n";
    std::fs::write(&options, text).unwrap();
    assert_eq!(said(&["options", options.to_str().unwrap()]), "77");
}

/// A module that contains RocksDB or LevelDB, as Python's packages do, is left alone: its classes may look
/// otherwise. One that is linked with librocksdb.so is reached.
#[test]
fn modules_that_contain_their_library_get_their_own_default() {
    let drive = Drive::formatted();
    let folder = TempDir::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/container.cc");
    let build = |name: &str, arguments: &[&str]| {
        let path = folder.path().join(name);
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Werror"]);
        compiler.arg(&source).args(arguments).arg("-o").arg(&path);
        let built = output(&mut compiler);
        assert!(built.status.success(), "{}", words(&built));
        path
    };
    let program = build("program", &[]);
    let module = ["-shared", "-fPIC"];
    let contains = build("contains.so", &[&module[..], &["-DCONTAINS"]].concat());
    let linked = ["-DLINKED", "-lrocksdb"];
    let linked = build("linked.so", &[&module[..], &linked].concat());
    for (modules, expected) in [
        (vec![&contains], "its own\n"),
        (vec![&linked], "zonestore\n"),
        (vec![&linked, &contains], "zonestore\nits own\n"),
    ] {
        let mut command = Command::new(&program);
        command.args(modules);
        command.env("LD_PRELOAD", built("libzonestore_preload.so"));
        command.env("ZONESTORE_ROCKSDB_LIB", library());
        command.env("ZONESTORE_DEFAULT_FILE_SYSTEM", "1");
        command.env(
            "ZONESTORE_URI",
            format!("zonestore://{}", drive.path.display()),
        );
        let done = output(&mut command);
        assert!(done.status.success(), "{}", words(&done));
        assert_eq!(String::from_utf8_lossy(&done.stdout), expected);
    }
}
