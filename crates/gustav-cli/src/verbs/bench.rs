//! `gustav bench`: benchmarks of Gustav and peers.

use std::path::PathBuf;

use gustav_bench::{BenchArgs, Forecast, Part, PeerProgram};
use gustav_report::{Filter, Status};
use serde::Serialize;

use crate::args::Printing;
use crate::failure::{Outcome, Result};
use crate::output;

/// Measure algorithms and peers side by side, and record every result
///
/// Results are checked in the same run: exit status 1 when the records hold a wrong one, or a
/// matrix cannot be read. An existing record file is continued: cases that it has of the same
/// matrices, threads, seed and device are not measured again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A suite (its name or .toml file), or matrices: files, folders, gen: descriptions
    #[arg(required = true, value_name = "SUITE|FILES")]
    targets: Vec<String>,
    /// Append records to this file, one JSON object a line
    #[arg(long, value_name = "OUT.jsonl", required_unless_present = "dry_run")]
    record: Option<PathBuf>,
    /// Measure nothing; print what would be measured and how long that takes
    #[arg(long)]
    dry_run: bool,
    /// Start no case after so many minutes; the same command resumes there
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Measure only every N-th matrix, from the K-th on; report takes the files of all parts
    #[arg(long, value_name = "K/N")]
    part: Option<Part>,
    /// Where to measure instead of the suite's device: cpu or cuda:K
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
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
    /// A program, or a shared library (.so), that is a peer, to be named in --peers; bench/PROTOCOL.md
    /// says what it speaks, or exports
    #[arg(long, value_name = "NAME=FILE")]
    peer_program: Vec<PeerProgram>,
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
    printing: Printing,
}

#[derive(Serialize)]
struct Report {
    record: String,
    measured: usize,
    resumed: usize,
    wrong: usize,
    failed: usize,
    left: usize,
}

#[derive(Serialize)]
struct Summary {
    matrices: usize,
    cases: usize,
    held: usize,
    least_s: f64,
    most_s: f64,
}

/// Runs the benchmark, or estimates it with `--dry-run`.
pub fn run(args: &Args) -> Result {
    gustav_bench::with_huge_pages();
    let described = |t: &String| t.strip_prefix("gen:").unwrap_or(t).to_string();
    // `--peers=` means none.
    let names = |list: &Vec<String>| list.iter().filter(|n| !n.is_empty()).cloned().collect();
    let record = args.record.clone().unwrap_or_default();
    let request = BenchArgs {
        targets: args.targets.iter().map(described).collect(),
        record: record.clone(),
        only: args.only.clone(),
        ours: args.ours.as_ref().map(names),
        peers: args.peers.as_ref().map(names),
        python: args.python.clone(),
        programs: args.peer_program.clone(),
        threads: args.threads,
        corpus: args.corpus.clone(),
        device: args.device.clone(),
        part: args.part,
        minutes: args.minutes,
        seed: args.seed,
        quiet: args.printing.quiet,
    };
    if args.dry_run {
        return print_forecast(args.printing, &request);
    }
    output::writable(&record)?;
    let outcome = gustav_bench::run(&request)?;
    for note in &outcome.notes {
        output::note(args.printing, note);
    }
    let report = Report {
        record: record.display().to_string(),
        measured: outcome.measured,
        resumed: outcome.resumed,
        wrong: outcome.wrong,
        failed: outcome.failed,
        left: outcome.left,
    };
    let records = gustav_report::read_records(&record)?;
    let mut text = gustav_report::summary(&records);
    let Report { record, measured, resumed, wrong, failed, left } = &report;
    text += &format!(
        "{measured} cases measured, {resumed} resumed, {wrong} wrong results, {failed} failed \
         engines; records in {record}\n"
    );
    if *left > 0 {
        text += &format!("{left} cases are left: the same command goes on from there\n");
    }
    output::print(args.printing, &report, &text)?;
    // Wrong results of earlier runs count until they are measured again.
    let right = records.iter().all(|r| r.status != Status::Wrong);
    let read = outcome.unread == 0;
    Ok(if right && read { Outcome::Done } else { Outcome::Failed })
}

/// Prints an estimate of the run `request`.
fn print_forecast(printing: Printing, request: &BenchArgs) -> Result {
    let Forecast { matrices, cases, held, least_s, most_s, notes } =
        gustav_bench::forecast(request)?;
    for note in &notes {
        output::note(printing, note);
    }
    let summary = Summary { matrices, cases, held, least_s, most_s };
    let text = format!(
        "{cases} cases on {matrices} matrices, {held} of them held already; {} to {}, by the size \
         of the matrices and the peers that are there\n",
        duration(least_s),
        duration(most_s)
    );
    output::print(printing, &summary, &text)?;
    Ok(Outcome::Done)
}

/// Seconds in a suitable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} seconds"),
        s if s < 6000.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}
