use super::*;

#[test]
fn a_program_that_closes_nothing_loses_nothing() {
    for drive in both(256 << 20) {
        drive.ok(&["leak"]);
        drive.is_whole();
        assert_eq!(drive.ok(&["prefix"]), "1\n");
        assert_eq!(drive.ok(&["prefix", "/some/db2"]), "1\n");
    }
}

#[test]
fn a_forked_child_cannot_write_to_its_parents_drive() {
    for drive in both(256 << 20) {
        drive.python("fork.py");
        drive.is_whole();
    }
}
