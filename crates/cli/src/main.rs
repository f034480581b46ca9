//! `zonestore`: the one program. This file only connects the command line to its commands; the module of a command's
//! name implements it.

#![deny(clippy::print_stderr)] // It ends the process where standard error cannot be written.

mod age;
mod args;
mod bench;
mod config;
mod conformance;
mod drive;
mod drive_daemon;
mod drive_file;
mod errors;
mod experiment;
mod fs_commands;
mod live_lines;
mod local_file;
mod manual;
mod model;
mod occupant;
mod output;
mod plan;
mod power_test;
mod program;
mod qualify;
mod question;
mod serve;
mod sim;
mod skylight;
mod smrfs;
mod store_commands;
mod top;
mod zea_commands;

use args::{Arguments, Command, Format};
use clap::FromArgMatches;
use clap::error::ErrorKind;
use errors::{CommandError, CommandResult, Exit};
use output::Output;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use terminal::{Logging, OutputError};

/// One thread fills the caches and another one empties them. The host's allocator keeps the peak memory of each
/// thread: 1.5 GB where 0.8 GB were in use. This one returns memory that has been free for some ten seconds. Its
/// large allocations begin at pages (`disable_cache_oblivious`), so that direct I/O to a device takes them as they
/// are.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // A write beyond a limit on the size of files has to fail, and not to end the process. A program that is started
    // inherits no handler, as it would an ignored signal.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let parsed = Arguments::described()
        .try_get_matches()
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    REPORTS_JSON.store(arguments.json, Ordering::Relaxed);
    let mut out = Output::new(arguments.json);
    match run(arguments.command, arguments.log_format, &mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The result found before the error is part of the output.
            let _ = out.flush();
            report(&error)
        }
    }
}

/// Whether errors are printed for programs (`--json`); set once the command line is parsed.
static REPORTS_JSON: AtomicBool = AtomicBool::new(false);

fn run(command: Command, log_format: Option<Format>, out: &mut Output) -> CommandResult {
    // For a server, the configuration sets up the log.
    if !matches!(command, Command::Serve(_)) {
        let json = log_format == Some(Format::Json);
        let is_daemon = matches!(command, Command::Daemon(_));
        let logging = Logging {
            json,
            usual: if is_daemon { "info" } else { "warn" },
            kept_out: "s3s",
            ..Logging::default()
        };
        terminal::log(logging, None).map_err(|error| CommandError::host(&error, &error))?;
    }
    let wanted = occupant::wanted(&command);
    carry_out(command, log_format, out).map_err(|error| match drive_file::last() {
        Some(drive) => occupant::explain(error, wanted, &drive),
        None => error,
    })
}

fn carry_out(command: Command, log_format: Option<Format>, out: &mut Output) -> CommandResult {
    match command {
        Command::Drive(command) => drive::run(command, out),
        Command::Store(command) => store_commands::run(command, out),
        Command::Serve(arguments) => serve::run(&arguments, log_format, out),
        Command::Daemon(arguments) => drive_daemon::run(&arguments, out),
        Command::Config(command) => config::run(&command, out),
        Command::Fs(command) => fs_commands::run(command, out),
        Command::Age(arguments) => age::run(&arguments, out),
        Command::Smrfs(command) => smrfs::run(command, out),
        Command::Rocksdb(arguments) => program::rocksdb(&arguments),
        Command::Leveldb(arguments) => program::leveldb(&arguments),
        Command::Zea(command) => zea_commands::run(command, out),
        Command::Model(command) => model::run(command, out),
        Command::Sim(command) => sim::run(command, out),
        Command::Experiment(command) => experiment::run(command, out),
        Command::Skylight(arguments) => skylight::run(&arguments, out),
        Command::Bench(command) => bench::run(command, out),
        Command::Completions { shell } => manual::completions(shell, out),
        Command::Man { directory } => manual::pages(&directory, out),
    }
}

/// Prints help and version to standard output; usage errors to standard error, in our format.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let done = error.print().and_then(|()| std::io::stdout().flush());
        return match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&OutputError(error).into()),
        };
    }
    let is_bare = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    // The command line could not be parsed, so it is searched for `--json`.
    let mut words = std::env::args_os().skip(1).take_while(|word| word != "--");
    if words.any(|word| word == "--json") {
        REPORTS_JSON.store(true, Ordering::Relaxed);
        let text = if is_bare {
            "a command or an argument is missing".to_owned()
        } else {
            plain(error)
        };
        // The rest is the usage, which --help prints too.
        let ends = ["\n\nUsage:", "\n\nFor more information"];
        let end = ends.iter().filter_map(|end| text.find(end)).min();
        let text = &text[..end.unwrap_or(text.len())];
        let text = text.strip_prefix("error: ").unwrap_or(text);
        let line: Vec<&str> = text.split_whitespace().collect();
        return report(&CommandError::new(Exit::Usage, line.join(" ")).hint("--help explains"));
    }
    if is_bare {
        let _ = error.print();
        return ExitCode::from(Exit::Usage as u8);
    }
    let text = plain(error);
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let text = text.replace(
        "\nFor more information, try '--help'.\n",
        "\nhint: --help explains\n",
    );
    _ = write!(std::io::stderr(), "zonestore: {text}");
    ExitCode::from(Exit::Usage as u8)
}

/// Replaces the library's technical terms by plain words.
fn plain(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.replace("invalid digit found in string", "write a whole number");
    let text = text.replace(
        "cannot parse integer from empty string",
        "write a whole number",
    );
    text.replace(
        "number too large to fit in target type",
        "that number is too large",
    )
}

/// Ends the process with an error, even while its threads block.
fn leave(error: &CommandError) -> ! {
    report(error);
    std::process::exit(error.exit as i32)
}

fn report(error: &CommandError) -> ExitCode {
    if error.exit != Exit::ReaderGone {
        if REPORTS_JSON.load(Ordering::Relaxed) {
            _ = writeln!(std::io::stderr(), "{}", error.json());
        } else {
            _ = writeln!(std::io::stderr(), "{}", error.text());
        }
    }
    ExitCode::from(error.exit as u8)
}
