use super::*;

/// Key `n` of db_bench as `ldb --hex` prints it: eight bytes big-endian, filled up with `0`.
fn bench_key(n: u64) -> String {
    format!("0x{n:016X}{}", "30".repeat(8))
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
