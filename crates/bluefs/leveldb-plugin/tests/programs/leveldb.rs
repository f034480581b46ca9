use super::*;

#[test]
fn the_environment_does_as_leveldb_says() {
    let drive = Drive::formatted();
    drive.ok(&["environment", "/an/environment"]);
    drive.ok(&["drive", "/another/one"]);
    drive.check();
    assert!(!Path::new("/an").exists());
}

#[test]
fn a_database_works_comes_back_is_repaired_and_destroyed() {
    let drive = Drive::formatted();
    drive.ok(&["work"]);
    drive.check();
    let names = drive.mounted(|fs| fs.list("/some/db").unwrap());
    assert!(names.contains(&"CURRENT".to_owned()), "{names:?}");
    drive.ok(&["verify"]);
    drive.ok(&["repair"]);
    drive.check();
    drive.ok(&["destroy"]);
    // What the repair put aside, and what the attempt to open it has made.
    let left = drive.mounted(|fs| fs.list("/some/db").unwrap());
    assert_eq!(left, ["LOCK", "LOG", "lost"]);
    drive.check();
}
