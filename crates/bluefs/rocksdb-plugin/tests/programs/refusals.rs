use super::*;

#[test]
fn a_drive_that_cannot_be_used_is_one_clear_line_and_no_crash() {
    let drive = Drive::formatted();
    let name = drive.path.to_str().unwrap().to_owned();
    let held = FileDrive::open(&drive.path).unwrap();
    refused(&drive, &[&name, "another process"]);
    drop(held);

    refused(
        &Drive::unformatted(SIZE),
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

/// RocksDB puts the file in front of what the file system says, which may begin with it too.
#[test]
fn an_error_names_its_file_once() {
    let drive = Drive::formatted();
    drive.ok(
        "db_bench",
        &["--db=/db", "--benchmarks=fillseq,flush", "--num=1000"],
    );
    let zone = drive.mounted(|fs| {
        let names = fs.list("/db").unwrap();
        let table = names.iter().find(|name| name.ends_with(".sst")).unwrap();
        fs.extents(&format!("/db/{table}")).unwrap()[0].at.zone
    });
    let device = FileDrive::open(&drive.path).unwrap();
    device.set_condition(zone, ZoneCondition::Offline).unwrap();
    drop(device);
    let said = words(&drive.run("ldb", &["--db=/db", "scan"]));
    let (lost, _) = said.split_once(": its bytes in zone").unwrap();
    let file = &lost[lost.rfind("/db/").unwrap()..];
    assert!(!lost.ends_with(&format!("{file}: {file}")), "{said}");
}
