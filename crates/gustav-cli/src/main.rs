//! The `gustav` command: one verb per file in `verbs/`.

mod args;
mod cuda;
mod failure;
mod floor;
mod measure;
mod output;
mod picture;
mod product;
mod random;
mod source;
mod table;
mod types;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match verbs::Cli::try_parse() {
        Ok(cli) => failure::finish(verbs::run(cli)),
        Err(e) => {
            // Help and version go to standard output and are no error; a closed pipe is neither.
            let _ = e.print();
            ExitCode::from(if e.use_stderr() { 2 } else { 0 })
        }
    }
}
