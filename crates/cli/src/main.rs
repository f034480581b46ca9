//! `zonestore`: the one program. This file only connects the command line to its commands; what each
//! does is in the room of its name.

mod args;
mod bench;
mod conformance;
mod door;
mod drive;
mod drive_file;
mod drive_view;
mod errors;
mod fs_commands;
mod interrupt;
mod keys;
mod leveldb;
mod local_file;
mod model;
mod occupant;
mod output;
mod preload;
mod progress;
mod question;
mod rocksdb;
mod serve;
mod size;
mod skylight;
mod store_commands;
mod time;
mod top;

use args::{Arguments, Command};
use clap::Parser;
use errors::{CommandError, CommandResult, Exit};
use output::Output;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    log_to_stderr();
    let mut out = Output::new(arguments.json);
    match run(arguments.command, &mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // What was found before the error is part of the answer.
            let _ = out.flush();
            report(&error)
        }
    }
}

fn run(command: Command, out: &mut Output) -> CommandResult {
    match command {
        Command::Drive(command) => drive::run(command, out),
        Command::Store(command) => store_commands::run(command, out),
        Command::Serve(arguments) => serve::run(&arguments, out),
        Command::Fs(command) => fs_commands::run(command, out),
        Command::Rocksdb(arguments) => rocksdb::run(&arguments),
        Command::Leveldb(arguments) => leveldb::run(&arguments),
        Command::Model(command) => model::run(command, out),
        Command::Skylight(arguments) => skylight::run(&arguments, out),
        Command::Bench(command) => bench::run(command, out),
    }
}

/// Help and version go to standard output; mistakes to standard error, in our form.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr()
        || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() {
            Exit::Usage as u8
        } else {
            0
        });
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let text = text.replace(
        "\nFor more information, try '--help'.\n",
        "\nhint: --help explains\n",
    );
    eprint!("zonestore: {text}");
    ExitCode::from(Exit::Usage as u8)
}

/// Ends the process with an error, whatever its threads are waiting for.
fn leave(error: &CommandError) -> ! {
    report(error);
    std::process::exit(error.exit as i32)
}

fn report(error: &CommandError) -> ExitCode {
    if error.exit != Exit::ReaderGone {
        eprintln!("zonestore: {}", error.message);
        if let Some(hint) = &error.hint {
            eprintln!("hint: {hint}");
        }
    }
    ExitCode::from(error.exit as u8)
}

/// Logs of the libraries: warnings, or what RUST_LOG asks for.
fn log_to_stderr() {
    // s3s logs every refused request as an error of its own.
    let usual = || EnvFilter::new("warn,s3s=off");
    // Neither into a file nor for somebody who does not want them.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = !plain && std::io::stderr().is_terminal();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| usual());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .init();
}
