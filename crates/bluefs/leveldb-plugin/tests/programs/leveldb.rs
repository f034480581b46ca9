use super::*;

#[test]
fn the_environment_does_as_leveldb_says() {
    for drive in both(256 << 20) {
        drive.ok(&["environment", "/an/environment"]);
        drive.ok(&["drive", "/another/one"]);
        drive.is_whole();
    }
    assert!(!Path::new("/an").exists());
}

#[test]
fn a_database_works_comes_back_is_repaired_and_destroyed() {
    for drive in both(256 << 20) {
        drive.ok(&["work"]);
        drive.is_whole();
        let names = drive.names("/some/db");
        assert!(names.contains(&"CURRENT".to_owned()), "{names:?}");
        drive.ok(&["verify"]);
        drive.ok(&["repair"]);
        drive.is_whole();
        drive.ok(&["destroy"]);
        // What the repair put aside, and what the attempt to open it has made.
        assert_eq!(drive.names("/some/db"), ["LOCK", "LOG", "lost"]);
        drive.is_whole();
    }
}
