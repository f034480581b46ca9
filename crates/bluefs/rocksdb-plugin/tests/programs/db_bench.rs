use super::*;

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
        // On a drive in a file there is none.
        assert_eq!(told["cache"]["budget_bytes"], 0, "{told}");
    }
    drive.check();
}
