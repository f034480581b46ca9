use super::*;

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
