#![allow(clippy::unwrap_used)]

use super::*;
use crate::inherited;
use bluefs::{BlueFs, FormatOptions, Role};
use device::{FileDrive, profile};
use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// Set in the process that watches over a program.
const DRIVE: &str = "ZONESTORE_WATCHED_DRIVE";

/// From Linux's `asm-generic/fcntl.h`: the signal that tells the owner of a lease that somebody waits.
const F_SETSIG: i32 = 10;

/// Set in the process that watches over another program, with its words on a line each.
const WORDS: &str = "ZONESTORE_WATCHED_WORDS";

/// A process that runs a test again.
fn again(test: &str) -> Command {
    let mut us = Command::new(env::current_exe().unwrap());
    us.args(["--nocapture", "--exact"])
        .arg(format!("watched::tests::{test}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    us
}

/// In the process that watches over another program: runs it, and ends as it did.
fn watched() {
    if let Ok(words) = env::var(WORDS) {
        let mut words = words.lines();
        let mut program = Command::new(words.next().unwrap());
        inherited::pass_on(program.args(words));
        watch(&mut program).unwrap().repeat();
    }
}

/// The code that a program ends with if the process that watches over it began with a signal ignored.
fn code_of(test: &str, ignored: i32, words: &[&str]) -> Option<i32> {
    let mut us = again(test);
    us.env(WORDS, words.join("\n"));
    let ignore = move || {
        // SAFETY: a plain call, allowed between fork and exec.
        unsafe { libc::signal(ignored, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: as above.
    unsafe { us.pre_exec(ignore) };
    us.output().unwrap().status.code()
}

#[test]
fn a_signal_that_the_parent_ignores_is_ignored_by_the_program() {
    watched();
    let test = "a_signal_that_the_parent_ignores_is_ignored_by_the_program";
    let of_our_own = [libc::SIGPIPE, libc::SIGXFSZ];
    for signal in SIGNALS.into_iter().chain(of_our_own) {
        let script = format!("kill -{signal} $$; exit 7");
        let code = code_of(test, signal, &["sh", "-c", &script]);
        assert_eq!(code, Some(7), "{signal}");
    }
}

#[test]
fn the_programs_end_is_found_if_the_parent_ignores_ends_of_children() {
    watched();
    let test = "the_programs_end_is_found_if_the_parent_ignores_ends_of_children";
    let code = |words: &[&str]| code_of(test, libc::SIGCHLD, words);
    assert_eq!(code(&["sh", "-c", "exit 3"]), Some(3));
    // proc(5): a hexadecimal digit for four signals, and SIGCHLD is the 17th.
    let ignored = [
        "grep",
        "-q",
        "SigIgn:.*[13579bdf]....$",
        "/proc/self/status",
    ];
    assert_eq!(code(&ignored), Some(0));
}

/// Processes whose parent has a number, those that have ended too.
fn children(parent: u32) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let states = processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok())
        .filter_map(|state| {
            let (_, behind_name) = state.rsplit_once(") ")?;
            behind_name.split(' ').nth(1)?.parse().ok()
        });
    states.filter(|found: &u32| *found == parent).count()
}

#[test]
fn processes_that_the_program_has_left_are_taken_up_at_their_end() {
    watched();
    let mut us = again("processes_that_the_program_has_left_are_taken_up_at_their_end")
        .env(
            WORDS,
            "sh\n-c\nfor n in 1 2 3 4 5; do (true &); done; echo program $$; read _",
        )
        .spawn()
        .unwrap();
    let lines = BufReader::new(us.stdout.take().unwrap()).lines();
    let mut said = lines.map_while(Result::ok);
    assert!(said.any(|line| line.contains("program ")));
    // Only what hangs takes longer, also on a machine with much else to do.
    for _ in 0..6000 {
        if children(us.id()) == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(children(us.id()), 1);
    drop(us.stdin.take());
    us.wait().unwrap();
}

/// The drive hangs when the program has ended: a signal is no longer for the program, and ends us.
#[test]
fn a_signal_after_the_programs_end_ends_us() {
    if let Some(drive) = env::var_os(DRIVE) {
        let mut program = Command::new("sh");
        program.args(["-c", "echo program $$; read _; exit 0"]);
        let ended = run(&mut program, drive.as_ref(), FileSystem::BlueFs);
        panic!("not by the signal: {}", ended.is_ok());
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.zoned");
    let small = profile::by_name("test-small").unwrap();
    let geometry = small.geometry(64 << 20, None).unwrap();
    let drive = FileDrive::create(&path, &geometry, "test-small").unwrap();
    drop(drive);
    let options = FormatOptions {
        uuid: [9; 16],
        role: Role::Alone,
        copies: 1,
        force: false,
    };
    BlueFs::format(&FileDrive::open(&path).unwrap(), &options).unwrap();
    let mut us = again("a_signal_after_the_programs_end_ends_us")
        .env(DRIVE, &path)
        .spawn()
        .unwrap();
    let lines = BufReader::new(us.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok);
    let program: i32 = said
        .filter_map(|line| Some(line.split_once("program ")?.1.parse().unwrap()))
        .next()
        .unwrap();
    // Whoever opens the drive now waits for the lease.
    let lease = File::open(&path).unwrap();
    // SAFETY: plain calls.
    unsafe {
        let no_end = libc::SIGURG;
        assert_eq!(libc::fcntl(lease.as_raw_fd(), F_SETSIG, no_end), 0);
        // Another test's process has what is open here until its program begins, and a lease waits for nobody.
        let begun = Instant::now();
        while libc::fcntl(lease.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) != 0 {
            let error = io::Error::last_os_error();
            assert!(begun.elapsed() < Duration::from_mins(2), "{error}");
            thread::sleep(Duration::from_millis(10));
        }
    }
    drop(us.stdin.take());
    // SAFETY: a plain call that sends nothing.
    while unsafe { libc::kill(program, 0) } == 0 {
        thread::yield_now();
    }
    // SAFETY: a plain call.
    unsafe { libc::kill(us.id().cast_signed(), SIGTERM) };
    assert_eq!(us.wait().unwrap().signal(), Some(SIGTERM));
}
