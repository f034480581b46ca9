//! A program that knows no drive, and its end: if nobody has opened the drive by then, its databases lie
//! elsewhere, and it must not end as if all were well. Only another process can tell: the program may be a
//! script, may end without another word, or may load nothing (linked statically).
//!
//! Signals that are sent to us are for the program, which ends with us if we are killed.

use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use bluefs::BlueFs;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Grows whenever the drive is mounted for writing, which needs no lock to be seen.
fn generation(drive: &Path) -> CommandResult<u64> {
    Ok(BlueFs::probe(&drive_file::observe(drive)?)?.generation)
}

/// Runs it to its end and ends as it did. Comes back if it cannot be started, or has not opened the drive.
pub(super) fn run(command: &mut Command, drive: &Path) -> io::Result<CommandResult> {
    let before = match generation(drive) {
        Ok(before) => before,
        Err(error) => return Ok(Err(error)),
    };
    let program = Arc::new(AtomicI32::new(0));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] {
        let program = program.clone();
        let pass_on = move |info: &libc::siginfo_t| {
            let program = program.load(Ordering::Relaxed);
            // What comes from the terminal, the program gets as well.
            if program != 0 && info.si_code <= libc::SI_USER {
                // SAFETY: a plain call, allowed in a handler.
                unsafe { libc::kill(program, signal) };
            }
        };
        // SAFETY: nothing in it allocates, locks or panics.
        unsafe { signal_hook_registry::register_sigaction(signal, pass_on) }?;
    }
    let us = std::process::id();
    let ends_with_us = move || {
        // SAFETY: plain calls, allowed between fork and exec.
        let orphaned = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::getppid().cast_unsigned() != us
        };
        match orphaned {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    };
    // SAFETY: as above. Whoever goes on in the background becomes a child of ours.
    unsafe {
        command.pre_exec(ends_with_us);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    let mut child = command.spawn()?;
    program.store(child.id().cast_signed(), Ordering::Relaxed);
    let status = child.wait()?;
    if let Some(signal) = status.signal() {
        // No second image of a process that did nothing wrong.
        let no_core = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: a plain call.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &no_core) };
        _ = emulate_default_handler(signal);
        exit(128 + signal);
    }
    if !status.success() || goes_on() || generation(drive).ok() != Some(before) {
        exit(status.code().unwrap_or(Exit::Failed as i32));
    }
    Ok(Err(CommandError::new(
        Exit::Failed,
        format_args!(
            "the program ended without opening {}; if it has a database, that lies elsewhere",
            drive.display()
        ),
    )
    .hint("docs/programs.md says which programs can be reached")))
}

/// Whether something that the program started is there still, such as the daemon that it has become.
fn goes_on() -> bool {
    loop {
        // SAFETY: a plain call that asks for no status.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            found if found > 0 => {}
            _ => return false,
        }
    }
}
