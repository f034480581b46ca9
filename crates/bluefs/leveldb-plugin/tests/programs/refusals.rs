use super::*;

/// LevelDB promises of a put that failed that no later one succeeds, and not that it is gone: its record
/// may have reached the log before there was no space for something else, or find space later. To open a
/// full database it needs room for a table of its log, which something else makes here.
#[test]
fn a_full_drive_is_an_error_and_can_be_emptied() {
    let number = |text: String| text.trim().parse::<u64>().unwrap();
    for drive in both(36 << 20) {
        drive.create("/other", &vec![1; 4 << 20]);
        let full = drive.client(&["full"]);
        assert!(full.status.success(), "{}", words(&full));
        // What was not synced and finds no space in the end is said.
        let said = String::from_utf8_lossy(&full.stderr);
        assert!(said.is_empty() || said.contains("no space left"), "{said}");
        let stored = number(String::from_utf8(full.stdout).unwrap());
        drive.is_whole();
        drive.delete("/other");
        let found = number(drive.ok(&["prefix"]));
        assert!(
            (stored..=stored + 1).contains(&found),
            "{found} of {stored}"
        );
        drive.ok(&["drain"]);
        assert_eq!(drive.ok(&["prefix"]), "200\n");
        drive.is_whole();
    }
}

#[test]
fn a_log_that_was_not_written_out_lets_no_later_one_be_synced() {
    for drive in both(256 << 20) {
        drive.ok(&["torn"]);
        drive.is_whole();
    }
}

#[test]
fn no_log_is_begun_beside_one_that_could_not_be_read() {
    // BlueFS compares the checksums of a log at the mount.
    let drive = Drive::with_zeafs(256 << 20);
    drive.ok(&["unread"]);
    drive.is_whole();
}

/// Runs both programs on what they cannot use; each must end by itself with an error and one line
/// that says all of `expected`.
fn refused(drive: &Drive, expected: &[&str]) {
    let import = "import plyvel; plyvel.DB('/db', create_if_missing=True)";
    let programs = [
        drive.command(client(), &["work"]),
        drive.command(PYTHON, &["-c", import]),
    ];
    for mut command in programs {
        let output = output(&mut command);
        let said = words(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let found = said
            .lines()
            .filter(|line| expected.iter().all(|words| line.contains(words)));
        assert_eq!(found.count(), 1, "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_drive_that_cannot_be_used_is_one_clear_line_and_no_crash() {
    let drive = Drive::formatted();
    let name = drive.path.to_str().unwrap().to_owned();
    let held = FileDrive::open(&drive.path).unwrap();
    refused(&drive, &["IO error", &name, "another process"]);
    drop(held);

    refused(
        &Drive::unformatted(64 << 20),
        &["not formatted", "zonestore fs mkfs"],
    );

    let mut damaged = std::fs::read(&drive.path).unwrap();
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
fn an_address_that_is_none_is_said() {
    let drive = Drive::formatted();
    let mut command = drive.command(client(), &["work"]);
    let output = output(command.env("ZONESTORE_URI", "/some/drive"));
    assert_eq!(output.status.code(), Some(1));
    let said = words(&output);
    assert!(said.contains("zonestore:///path/of/drive"), "{said}");
}

#[test]
fn without_a_drive_programs_run_as_always() {
    let directory = TempDir::new().unwrap();
    let database = directory.path().join("db");
    let environment = directory.path().join("environment");
    for command in [
        Command::new("true").arg("x"),
        Command::new(client()).arg("work").arg(&database),
        Command::new(client()).arg("environment").arg(&environment),
    ] {
        preloaded(command);
        succeeded(&output(command.env_remove("ZONESTORE_URI")));
    }
    assert!(database.join("CURRENT").is_file());
    // One that inherits all of it, and needs no database, does not touch the drive.
    let drive = Drive::formatted();
    let _held = FileDrive::open(&drive.path).unwrap();
    let import = "import plyvel, subprocess; subprocess.run(['true'], check=True)";
    succeeded(&output(&mut drive.command(PYTHON, &["-c", import])));
}
