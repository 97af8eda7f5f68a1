//! The program `gustav`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gustav_cli::run(std::env::args_os()).into()
}
