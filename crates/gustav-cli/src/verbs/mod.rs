//! The verbs, one per file, and the command line.

mod bench;
mod compare;
mod completions;
mod convert;
mod devices;
mod features;
mod fetch;
mod generate;
mod info;
mod plan;
mod report;
mod sddmm;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
mod tune;

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use gustav::Operation;

use crate::args;
use crate::failure::Result;

/// Multiply sparse matrices straight from CSR
///
/// FILE is a matrix in Matrix Market (.mtx), SciPy .npz, NumPy .npy or .smtx form, plain or
/// compressed with gzip or zstd, recognised by its content; or gen: and the description of a
/// generated matrix, such as gen:grid5:1000x1000 (see gustav generate --help).
///
/// Exit status: 0 done, 1 a check or a comparison failed, 2 error, 130 stopped by Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "gustav", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Info(info::Args),
    Spmm(Box<spmm::Args>),
    Spmv(Box<spmv::Args>),
    Spgemm(Box<spgemm::Args>),
    Sddmm(Box<sddmm::Args>),
    Plan(Box<plan::Args>),
    Convert(convert::Args),
    Generate(generate::Args),
    Fetch(fetch::Args),
    Devices(devices::Args),
    Bench(bench::Args),
    Compare(compare::Args),
    Report(report::Args),
    Tune(tune::Args),
    Completions(completions::Args),
}

/// The command line with every verb's own options.
pub fn command() -> Command {
    let verbs = [Operation::Spmm, Operation::Spmv, Operation::Spgemm, Operation::Sddmm];
    verbs.into_iter().fold(Cli::command(), |command, operation| {
        command.mut_subcommand(operation.name(), |verb| args::of_operation(verb, operation))
    })
}

/// Parses a command line, including the name of the program.
///
/// # Errors
/// Help, version, and invalid arguments.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> clap::error::Result<Cli> {
    let mut matches = command().try_get_matches_from(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut command()))
}

/// Runs a parsed command line.
///
/// # Errors
/// The errors of the verb.
pub fn run(cli: Cli) -> Result {
    match cli.verb {
        Verb::Info(args) => info::run(&args),
        Verb::Spmm(args) => spmm::run(&args),
        Verb::Spmv(args) => spmv::run(&args),
        Verb::Spgemm(args) => spgemm::run(&args),
        Verb::Sddmm(args) => sddmm::run(&args),
        Verb::Plan(args) => plan::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Generate(args) => generate::run(&args),
        Verb::Fetch(args) => fetch::run(&args),
        Verb::Devices(args) => devices::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Tune(args) => tune::run(&args),
        Verb::Completions(args) => completions::run(&args),
    }
}
