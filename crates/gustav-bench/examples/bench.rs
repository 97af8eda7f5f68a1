//! `bench TARGET OUT.jsonl [ONLY]`: measures a suite and prints its summary;
//! `bench summary OUT.jsonl` prints the summary of what was measured before.

use std::process::ExitCode;

use gustav_bench::{BenchArgs, run, with_huge_pages};
use gustav_core::Result;
use gustav_core::buffer::{reuse_blocks, total_memory};
use gustav_report::{read_records, summary};

fn main() -> ExitCode {
    with_huge_pages();
    // As the command does.
    reuse_blocks(total_memory().map_or(0, |bytes| bytes / 2));
    match bench(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

fn bench(words: &[String]) -> Result<()> {
    let (target, record, only) = match words {
        [target, record] => (target, record, ""),
        [target, record, only] => (target, record, only.as_str()),
        _ => {
            eprintln!("usage: bench SUITE|MATRIX OUT.jsonl [op=spmm,n=32,dtype=f32,matrix=...]");
            return Ok(());
        }
    };
    if target != "summary" {
        let list = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.split(',').filter(|w| !w.is_empty()).map(str::to_owned).collect())
        };
        let args = BenchArgs {
            only: only.parse()?,
            ours: list("GUSTAV_OURS"),
            peers: list("GUSTAV_PEERS"),
            ..BenchArgs::new(target, record)
        };
        let outcome = run(&args)?;
        for note in &outcome.notes {
            eprintln!("{note}");
        }
        eprintln!("{} cases measured, {} held already", outcome.measured, outcome.resumed);
    }
    print!("{}", summary(&read_records(record.as_ref())?));
    Ok(())
}
