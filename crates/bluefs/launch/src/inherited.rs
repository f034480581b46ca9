//! Signals that were ignored when this process began, and that this process and its runtime use for themselves. The program
//! gets them as they were.

use crate::watched::is_ignored;
use libc::{SIGPIPE, SIGXFSZ};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rust's runtime ignores the first one before `main`, and resets it in every program that it starts. `zonestore` handles
/// the second one.
const SIGNALS: [i32; 2] = [SIGPIPE, SIGXFSZ];

static IGNORED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The C library calls this before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (signal, ignored) in SIGNALS.into_iter().zip(&IGNORED) {
        ignored.store(is_ignored(signal), Ordering::Relaxed);
    }
}

/// Has a program ignore them as well.
pub(crate) fn pass_on(command: &mut Command) {
    let ignore = || {
        for (signal, ignored) in SIGNALS.into_iter().zip(&IGNORED) {
            if ignored.load(Ordering::Relaxed) {
                // SAFETY: a plain call, allowed between fork and exec.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
        }
        Ok(())
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(ignore) };
}
