//! Runs a program that takes no address, and checks at its end whether it opened the drive: if not, its databases lie
//! elsewhere, and it must not seem to have succeeded. Only another process can check that: the program may be a script,
//! may end abruptly, or may load no library (if it is linked statically).
//!
//! Signals sent to this process are passed on to the program, which is killed if this process is. Before the program
//! starts and after its end, they do to this process what they do by default. Signals that this process's parent has
//! ignored, as `nohup` does, stay ignored, here and in the program.

use crate::check::FileSystem;
use crate::error::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, exit};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

#[cfg(test)]
mod tests;

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
}

impl End {
    /// Ends this process in the same way.
    pub fn repeat(self) -> ! {
        match self {
            Self::Code(code) => exit(code),
            Self::Signal(signal) => {
                // No second core dump, of a process that did nothing wrong.
                let no_core = libc::rlimit {
                    rlim_cur: 0,
                    rlim_max: 0,
                };
                // SAFETY: a plain call.
                unsafe { libc::setrlimit(libc::RLIMIT_CORE, &no_core) };
                _ = emulate_default_handler(signal);
                exit(128 + signal)
            }
        }
    }
}

/// Runs the program to its end. The inner error is that of starting it.
pub(crate) fn run(
    command: &mut Command,
    drive: &Path,
    file_system: FileSystem,
) -> Result<io::Result<End>, Error> {
    let before = file_system.generation(drive)?;
    let end = match watch(command) {
        Ok(End::Code(0)) => End::Code(0),
        ended => return Ok(ended),
    };
    if goes_on() || file_system.generation(drive).ok() != Some(before) {
        return Ok(Ok(end));
    }
    let drive = drive.to_owned();
    Err(Error::NotReached { drive })
}

/// Signals that are passed on.
const SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Runs the program to its end and passes signals on to it.
fn watch(command: &mut Command) -> io::Result<End> {
    // SAFETY: a plain call. Where SIGCHLD is ignored, nobody can wait for a child's end.
    let of_children = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let program = Arc::new(AtomicI32::new(0));
    let ignored = SIGNALS.map(is_ignored);
    for (signal, is_ignored) in SIGNALS.into_iter().zip(ignored) {
        let program = program.clone();
        let pass_on = move |info: &libc::siginfo_t| {
            match program.load(Ordering::Relaxed) {
                0 if is_ignored => {}
                0 => _ = emulate_default_handler(signal),
                // Signals from the terminal reach the program as well, so they are not passed on.
                program if info.si_code <= libc::SI_USER => {
                    // SAFETY: a plain call, allowed in a handler.
                    unsafe { libc::kill(program, signal) };
                }
                _ => {}
            }
        };
        // SAFETY: nothing in it allocates, locks or panics.
        unsafe { signal_hook_registry::register_sigaction(signal, pass_on) }?;
    }
    let us = std::process::id();
    let ends_with_us = move || {
        // SAFETY: plain calls, allowed between fork and exec.
        let orphaned = unsafe {
            if of_children == libc::SIG_IGN {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            // Our handler would become the default in the program.
            for (signal, is_ignored) in SIGNALS.into_iter().zip(ignored) {
                if is_ignored {
                    libc::signal(signal, libc::SIG_IGN);
                }
            }
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
    wait_for(child.id().cast_signed());
    program.store(0, Ordering::Relaxed);
    let status = child.wait()?;
    Ok(match status.signal() {
        Some(signal) => End::Signal(signal),
        None => End::Code(status.code().unwrap_or(1)),
    })
}

/// Whether a signal is ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut found = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a plain call that changes nothing; all zeros is a value too.
    unsafe {
        libc::sigaction(signal, null(), found.as_mut_ptr());
        found.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Waits for the program's end, and meanwhile takes up what others that have become our children leave. The program's
/// own end is left to be taken up: after that, its number may be another's.
fn wait_for(program: i32) {
    loop {
        let mut ended = MaybeUninit::<libc::siginfo_t>::zeroed();
        let found = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: plain calls; all zeros is a value too, and the number is there if `waitid` has found a child.
        unsafe {
            if libc::waitid(libc::P_ALL, 0, ended.as_mut_ptr(), found) == 0 {
                match ended.assume_init().si_pid() {
                    ended if ended == program => return,
                    other => _ = libc::waitpid(other, null_mut(), libc::WNOHANG),
                }
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
    }
}

/// Whether a process that the program started still runs, such as a daemon.
fn goes_on() -> bool {
    loop {
        // SAFETY: a plain call that asks for no status.
        match unsafe { libc::waitpid(-1, null_mut(), libc::WNOHANG) } {
            0 => return true,
            found if found > 0 => {}
            _ => return false,
        }
    }
}
