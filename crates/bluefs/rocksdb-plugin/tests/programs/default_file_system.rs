use super::*;

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

    // What its other threads would do with an error at the end is gone by then.
    for _ in 0..3 {
        said(&["busy", "/busy"]);
        drive.check();
    }

    // A directory of the host's memory is the host's, with the lock in it.
    let memory = TempDir::new_in("/dev/shm").unwrap();
    let database = memory.path().to_str().unwrap();
    assert_eq!(said(&["put", database]), "put");
    assert!(memory.path().join("CURRENT").is_file());
    assert_eq!(said(&["get", database]), "123");

    // From there to the drive, nothing is renamed or linked; RocksDB copies what it asked to be moved.
    let tables = memory.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    assert_eq!(
        said(&["ingest", "/ingesting", tables.to_str().unwrap()]),
        "4"
    );
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
