//! `study OUT.jsonl [PART]`: measures the study of Chen et al. (2025) on matrices whose names hold
//! PART, and prints its tables; `study tables OUT.jsonl` prints those of what was measured before.

use std::process::ExitCode;

use gustav_bench::{Suite, read_records, study, tables};
use gustav_core::Result;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let run = |words: &[String]| -> Result<()> {
        let path = match words {
            [verb, path] if verb == "tables" => path,
            [path, part @ ..] => {
                let part = part.first().map_or("", String::as_str);
                study(&Suite::find("paper-b")?, part, path.as_ref())?;
                path
            }
            [] => {
                eprintln!("usage: study OUT.jsonl [PART] | study tables OUT.jsonl");
                return Ok(());
            }
        };
        print!("{}", tables(&read_records(path.as_ref())?));
        Ok(())
    };
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
