use super::*;

#[test]
fn a_program_that_closes_nothing_loses_nothing() {
    let drive = Drive::formatted();
    drive.ok(&["leak"]);
    drive.check();
    assert_eq!(drive.ok(&["prefix"]), "1\n");
    assert_eq!(drive.ok(&["prefix", "/some/db2"]), "1\n");
}

#[test]
fn a_forked_child_cannot_write_to_its_parents_drive() {
    let drive = Drive::formatted();
    drive.python("fork.py");
    drive.check();
}
