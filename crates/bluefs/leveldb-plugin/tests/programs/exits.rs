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

/// What its other threads would do with an error at the end is no more of use to anybody.
#[test]
fn a_program_whose_threads_go_on_to_its_end_ends_as_it_does_on_the_host() {
    for drive in both(256 << 20) {
        for _ in 0..3 {
            drive.ok(&["busy"]);
            drive.is_whole();
        }
    }
}

/// A child that goes on has a copy of all that its parent had open.
#[test]
fn a_forked_child_does_not_keep_the_drive_from_others() {
    let script = "import os, sys, plyvel
db = plyvel.DB('/db', create_if_missing=True)
ready, child_is = os.pipe()
if os.fork() == 0:
    os.write(child_is, b'1')
    sys.stdin.read()
    os._exit(0)
os.read(ready, 1)";
    for drive in both(256 << 20) {
        let mut command = drive.command(PYTHON, &["-c", script]);
        let mut parent = command.stdin(Stdio::piped()).spawn().unwrap();
        let child_goes_on = parent.stdin.take();
        assert!(parent.wait().unwrap().success());
        drive.is_whole();
        drop(child_goes_on);
    }
}

#[test]
fn a_forked_child_cannot_write_to_its_parents_drive() {
    for drive in both(256 << 20) {
        drive.python("fork.py");
        drive.is_whole();
    }
}
