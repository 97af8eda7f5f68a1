//! `gustav bench`: how fast, beside whom.

use std::path::PathBuf;

use gustav_bench::{BenchArgs, Filter};
use serde::Serialize;

use crate::args::Telling;
use crate::failure::{Outcome, Result};
use crate::output;

/// Measure algorithms and peers side by side, and record every result
///
/// Results are checked in the same run: exit status 1 when one is wrong. A record file that
/// exists is continued: what it holds is not measured again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A suite (its name or .toml file), or matrices: files, folders, gen: descriptions
    #[arg(required = true, value_name = "SUITE|FILES")]
    targets: Vec<String>,
    /// Append records to this file, one JSON object a line
    #[arg(long, value_name = "OUT.jsonl")]
    record: PathBuf,
    /// Measure only cases that match, such as op=spmm,n=8|32
    #[arg(long, value_name = "FILTER", default_value = "")]
    only: Filter,
    /// Our algorithms instead of the suite's: names, auto, or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ours: Option<Vec<String>>,
    /// Peers instead of the suite's, by name
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peers: Option<Vec<String>>,
    /// The Python interpreter that has the peers
    #[arg(long, value_name = "FILE")]
    python: Option<String>,
    /// Number of threads of every engine, one per core unless given
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The folder of matrix files in place of the suite's (GUSTAV_CORPUS does the same)
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Seed of matrices and values
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    telling: Telling,
}

#[derive(Serialize)]
struct Report {
    record: String,
    measured: usize,
    resumed: usize,
    wrong: usize,
    failed: usize,
}

/// Measures, records and sums up.
pub fn run(args: &Args) -> Result {
    output::writable(&args.record)?;
    let described = |t: &String| t.strip_prefix("gen:").unwrap_or(t).to_string();
    // `--peers=` means none.
    let names = |list: &Vec<String>| list.iter().filter(|n| !n.is_empty()).cloned().collect();
    let outcome = gustav_bench::run(&BenchArgs {
        targets: args.targets.iter().map(described).collect(),
        record: args.record.clone(),
        only: args.only.clone(),
        ours: args.ours.as_ref().map(names),
        peers: args.peers.as_ref().map(names),
        python: args.python.clone(),
        threads: args.threads,
        corpus: args.corpus.clone(),
        seed: args.seed,
        quiet: args.telling.quiet,
    })?;
    for note in &outcome.notes {
        output::note(args.telling, note);
    }
    let report = Report {
        record: args.record.display().to_string(),
        measured: outcome.measured,
        resumed: outcome.resumed,
        wrong: outcome.wrong,
        failed: outcome.failed,
    };
    let mut text = gustav_bench::summary(&gustav_bench::read_records(&args.record)?);
    let Report { record, measured, resumed, wrong, failed } = &report;
    text += &format!(
        "{measured} cases measured, {resumed} resumed, {wrong} wrong results, {failed} failed \
         engines; records in {record}\n"
    );
    output::tell(args.telling, &report, &text)?;
    Ok(if outcome.wrong == 0 { Outcome::Done } else { Outcome::Failed })
}
