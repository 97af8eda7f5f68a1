//! `gustav report`: records as a page of tables and figures.

use std::path::PathBuf;

use gustav_report::{
    Beside, Report, Written, read_counters, read_feature_times, read_ranks, read_records,
    read_regrets, read_tuning,
};
use serde::Serialize;

use crate::args::Printing;
use crate::failure::{Outcome, Result};
use crate::output;

/// Turn records into a page of tables and figures
///
/// The page is self-contained and without scripts. A folder next to it, named after it, has every
/// table as CSV and every figure as SVG and PNG. The page lists the figures for which the records
/// lack data.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files of records, as gustav bench writes them
    #[arg(required = true, value_name = "RECORDS.jsonl")]
    records: Vec<PathBuf>,
    /// Output of gustav tune --json, to draw the figures of its predictors
    #[arg(long, value_name = "TUNING.json", num_args = 1..)]
    tuning: Vec<PathBuf>,
    /// Hardware counters, as bench/paper_a_ncu.py writes them, to draw occupancy, warp efficiency
    /// and instructions per cycle
    #[arg(long, value_name = "COUNTERS.csv", num_args = 1..)]
    counters: Vec<PathBuf>,
    /// Products over ranks, as bench/mpi_volumes.py and bench/mpi_speed.py write them, to draw what
    /// ranks send and how fast they are beside PETSc
    #[arg(long, value_name = "RANKS.csv", num_args = 1..)]
    ranks: Vec<PathBuf>,
    /// What choices of configurations lose, as bench/fit_cost_model.py writes it
    #[arg(long, value_name = "REGRETS.csv", num_args = 1..)]
    regrets: Vec<PathBuf>,
    /// How long features take beside passes that do less, as example orders of gustav-bench writes it
    #[arg(long, value_name = "FEATURES.csv")]
    features: Option<PathBuf>,
    /// The page
    #[arg(short, long, value_name = "REPORT.html", default_value = "report.html")]
    output: PathBuf,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Serialize)]
struct Absent {
    figure: &'static str,
    needs: &'static str,
}

#[derive(Serialize)]
struct Summary {
    records: usize,
    output: String,
    folder: String,
    tables: usize,
    figures: usize,
    absent: Vec<Absent>,
}

/// Writes the report.
pub fn run(args: &Args) -> Result {
    output::writable(&args.output)?;
    let mut records = Vec::new();
    for path in &args.records {
        records.extend(read_records(path)?);
    }
    let mut beside = Beside::default();
    for path in &args.tuning {
        beside.tunings.push(read_tuning(path)?);
    }
    for path in &args.counters {
        beside.counters.extend(read_counters(path)?);
    }
    for path in &args.ranks {
        beside.ranks.extend(read_ranks(path)?);
    }
    for path in &args.regrets {
        beside.regrets.extend(read_regrets(path)?);
    }
    if let Some(path) = &args.features {
        beside.features = read_feature_times(path)?;
    }
    let spinner = output::spinner(args.printing, "drawing");
    let written = Report::of(&records, &beside)?.write(&args.output);
    spinner.finish_and_clear();
    let Written { page, folder, tables, figures, absent } = written?;
    let summary = Summary {
        records: records.len(),
        output: page.display().to_string(),
        folder: folder.display().to_string(),
        tables,
        figures,
        absent: absent.into_iter().map(|(figure, needs)| Absent { figure, needs }).collect(),
    };
    let mut text = format!(
        "{}: {tables} tables and {figures} figures of {} records; their files are in {}\n",
        summary.output, summary.records, summary.folder
    );
    for Absent { figure, needs } in &summary.absent {
        text += &format!("not drawn: {figure} (needs {needs})\n");
    }
    output::print(args.printing, &summary, &text)?;
    Ok(Outcome::Done)
}
