//! `gustav completions`: completion scripts of shells.

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
    // To memory first, as the generator panics if its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "gustav", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Outcome::Done)
}
