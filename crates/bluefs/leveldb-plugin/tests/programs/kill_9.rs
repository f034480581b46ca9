use super::*;

#[test]
fn plyvel_does_everything_on_a_drive() {
    for drive in both(256 << 20) {
        drive.python("everything.py");
        drive.is_whole();
        drive.python("everything.py");
        drive.is_whole();
    }
}

#[test]
fn what_plyvel_synced_survives_kill_9() {
    for drive in both(256 << 20) {
        what_plyvel_synced_survives(&drive);
    }
}

fn what_plyvel_synced_survives(drive: &Drive) {
    let script = source("acknowledge.py");
    let mut least = 0;
    for more in [100, 2_000, 15_000] {
        let mut command = drive.command(PYTHON, &[script.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = least + more;
        while least < wanted {
            least = said.next().unwrap().unwrap().parse().unwrap();
        }
        child.kill().unwrap();
        let last = said.map_while(Result::ok).last();
        least = last.map_or(least, |line| line.parse().unwrap());
        child.wait().unwrap();
        drive.is_whole();
        let list =
            "import plyvel\nfor k, v in plyvel.DB('/db'): print(int(k), int(v[:len(v)//20]))";
        let found = succeeded(&output(&mut drive.command(PYTHON, &["-c", list])));
        let count = found.lines().count() as u64;
        for (number, line) in found.lines().enumerate() {
            assert_eq!(line, format!("{number} {number}"));
        }
        assert!(count >= least, "{count} keys of {least}");
    }
}

/// LevelDB says that a write without sync survives the process: the host has it.
#[test]
fn what_plyvel_did_not_sync_survives_kill_9_too() {
    let drive = Drive::formatted();
    let put = "import plyvel, sys, signal
db = plyvel.DB('/db', create_if_missing=True, write_buffer_size=300000)
first, end = int(sys.argv[1]), int(sys.argv[2])
for n in range(first, end): db.put(b'%06d' % n, b'v' * 400)
signal.raise_signal(signal.SIGKILL)";
    let list =
        "import plyvel\nprint(*[int(k) for k in plyvel.DB('/db').iterator(include_value=False)])";
    // Less than a block of the drive, several memtables, and one more after another process's look.
    for (first, end) in [(0, 1), (1, 384), (384, 5000), (5000, 5001)] {
        let arguments = ["-c", put, &first.to_string(), &end.to_string()];
        let killed = output(&mut drive.command(PYTHON, &arguments));
        assert_eq!(killed.status.signal(), Some(9), "{}", words(&killed));
        if first == 384 {
            drive.check();
        }
        let found = succeeded(&output(&mut drive.command(PYTHON, &["-c", list])));
        let numbers: Vec<u64> = found
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        assert!(
            numbers == (0..end).collect::<Vec<_>>(),
            "{} of {end}",
            numbers.len()
        );
    }
    drive.check();
}

/// Where nothing is kept beside the drive, what was put a second ago survives all the same.
#[test]
fn what_has_an_age_survives_kill_9_without_the_hosts_memory() {
    for drive in both(256 << 20) {
        what_has_an_age_survives(&drive);
    }
}

fn what_has_an_age_survives(drive: &Drive) {
    // Nothing can be made there.
    let mut beside = drive.path.clone().into_os_string();
    beside.push(".unsynced");
    std::fs::create_dir(&beside).unwrap();
    // Less than what is written out for its size.
    let put = "import plyvel, time
db = plyvel.DB('/db', create_if_missing=True)
for n in range(1000): db.put(b'%08d' % n, b'v' * 400)
while True: time.sleep(1)";
    let mut command = drive.command(PYTHON, &["-c", put]);
    command.env("ZONESTORE_LOG_AGE_MS", "50");
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    // However long that takes here.
    let mut search = Command::new("grep");
    search.args(["-qaF", "00000999"]).arg(&drive.path);
    while !output(&mut search).status.success() {
        assert!(child.try_wait().unwrap().is_none());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_dir(&beside).unwrap();
    drive.is_whole();
    let list = "import plyvel\nprint(sum(1 for _ in plyvel.DB('/db')))";
    let found = succeeded(&output(&mut drive.command(PYTHON, &["-c", list])));
    assert_eq!(found.trim(), "1000");
}

#[test]
fn a_synced_put_makes_the_log_before_its_own_durable() {
    for drive in both(256 << 20) {
        let killed = drive.client(&["hole"]);
        assert_eq!(killed.status.signal(), Some(9), "{}", words(&killed));
        let acknowledged = String::from_utf8(killed.stdout).unwrap();
        // After a restart of the host, what is noted beside the drive does not count.
        let _ = std::fs::remove_file(drive.path.with_extension("zoned.unsynced"));
        assert_eq!(drive.ok(&["prefix"]), acknowledged);
        drive.is_whole();
    }
}
