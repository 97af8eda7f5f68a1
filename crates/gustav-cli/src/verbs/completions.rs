//! `gustav completions`: what a shell needs to complete gustav's options.

use std::io::Write;

use clap_complete::Shell;

use crate::failure::{Outcome, Result};

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &Args) -> Result {
    // In memory first: the generator panics when its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "gustav", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Outcome::Done)
}
