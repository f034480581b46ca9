use super::*;

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
    // What nobody has closed is on the drive when the program has ended: a device has no `DRIVE.unsynced`.
    for (way, first, end) in [("fs", "500", "550"), ("env", "550", "600")] {
        run(&[way, "leak", first, end]);
        assert!(!drive.path.with_extension("zoned.unsynced").exists());
        run(&["fs", "get", "0", end]);
    }
    drive.check();
    // And unmodified tools find the same database.
    let keys = drive.ok("ldb", &["--db=/client", "scan", "--no_value"]);
    assert_eq!(keys.lines().filter(|l| l.contains("key0")).count(), 600);

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

/// RocksDB goes on logging after an error, and Debian's ends the process then.
#[test]
fn a_log_of_messages_that_finds_no_space_ends_no_program() {
    let drive = Drive::of_size(128 << 20);
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(linked_client(folder.path()));
    let done = output(command.arg("fs").arg(&drive.path).arg("messages"));
    assert!(done.status.success(), "{}", words(&done));
    drive.check();
}
