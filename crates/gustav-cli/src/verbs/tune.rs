//! `gustav tune`: measure candidates on this GPU, train a predictor, install it.

use std::path::PathBuf;

use gustav::predictor::{Model, Training};
use gustav_bench::{BenchArgs, Filter, Folded, TuneArgs, TuneReport};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::Telling;
use crate::failure::{Failure, Outcome, Result};
use crate::output;

/// Measure candidates on this GPU, train a predictor on the times, and say how good it is
///
/// Records are written as they come: a record file that exists is continued, what it holds is not
/// measured again. Matrices of one source are either trained on or tested on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A suite (its name or .toml file) whose engines are the candidates
    #[arg(default_value = "tune", value_name = "SUITE")]
    suite: String,
    /// Append records to this file, one JSON object a line
    #[arg(long, value_name = "OUT.jsonl")]
    record: PathBuf,
    /// Write the model to this file
    #[arg(long, short, value_name = "MODEL.json")]
    output: Option<PathBuf>,
    /// Install the model for this GPU
    #[arg(long)]
    install: bool,
    /// Train on the records that are there, and measure nothing
    #[arg(long)]
    train_only: bool,
    /// Measure only cases that match, such as matrix=rmat*; of a suite of several numbers of
    /// columns one must be taken, as n=64
    #[arg(long, value_name = "FILTER", default_value = "")]
    only: Filter,
    /// The folder of matrix files in place of the suite's
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Train networks of other sizes too, and tell what each loses
    #[arg(long)]
    topologies: bool,
    /// Train and test on five folds of the sources in turn as well, tell what each rival loses over all,
    /// and take the network that loses least
    #[arg(long)]
    folds: bool,
    /// Passes over the training set
    #[arg(long, value_name = "K", default_value_t = Training::default().passes)]
    passes: usize,
    /// Seed of matrices, values and training
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
    model: Option<String>,
    installed: Option<String>,
    #[serde(flatten)]
    training: TuneReport,
}

/// Measures, trains and tells.
pub fn run(args: &Args) -> Result {
    for path in [&args.record].into_iter().chain(&args.output) {
        output::writable(path)?;
    }
    let bench = BenchArgs {
        only: args.only.clone(),
        peers: Some(Vec::new()),
        corpus: args.corpus.clone(),
        seed: args.seed,
        quiet: args.telling.quiet,
        ..BenchArgs::new(&args.suite, &args.record)
    };
    let training = Training { passes: args.passes, seed: args.seed, ..Training::default() };
    let Args { train_only, topologies, folds, .. } = *args;
    let tune = TuneArgs { bench, train_only, training, topologies, folds };
    let bar = progress((tune.networks()? * args.passes) as u64, args.telling.quiet);
    let tuned = gustav_bench::tune(&tune, &mut |network, _| {
        bar.set_message(network.to_owned());
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    for note in &tuned.outcome.notes {
        output::note(args.telling, note);
    }
    let text = tuned.model.to_text()?;
    if let Some(path) = &args.output {
        gustav::io::write_bytes(path, text.as_bytes())?;
    }
    let installed = args.install.then(|| install(&tuned.model, &text)).transpose()?;
    let show = |path: &PathBuf| path.display().to_string();
    let report = Report {
        record: show(&args.record),
        measured: tuned.outcome.measured,
        resumed: tuned.outcome.resumed,
        wrong: tuned.outcome.wrong,
        failed: tuned.outcome.failed,
        model: args.output.as_ref().map(show),
        installed: installed.as_ref().map(show),
        training: tuned.report,
    };
    output::tell(args.telling, &report, &words(&report))?;
    Ok(if report.wrong == 0 { Outcome::Done } else { Outcome::Failed })
}

/// Puts a model where plans on that device look for it.
fn install(model: &Model, text: &str) -> Result<PathBuf> {
    let path = Model::place(&model.device, model.columns)
        .ok_or_else(|| Failure::Request("install: there is no home folder, use --output".into()))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::Request(format!("cannot make {}: {e}", folder.display())))?;
    }
    gustav::io::write_bytes(&path, text.as_bytes())?;
    Ok(path)
}

fn progress(total: u64, quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("training {bar:30} {pos}/{len} {msg}, {eta} left");
    ProgressBar::with_draw_target(Some(total), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn words(r: &Report) -> String {
    let t = &r.training;
    let mut text = format!(
        "{} cases measured, {} resumed, {} wrong results, {} failed engines; records in {}\n\
         {} with {} columns: trained on {} matrices, tested on {} of other sources ({}), {} left \
         out\n",
        r.measured,
        r.resumed,
        r.wrong,
        r.failed,
        r.record,
        t.device,
        t.columns,
        t.matrices.0,
        t.matrices.1,
        t.tested_sources.join(", "),
        t.left_out.len(),
    );
    for (name, evaluation) in &t.rivals {
        text += &format!("\n{name}\n{evaluation}");
    }
    if !t.folds.is_empty() {
        text += "\nmean and worst loss of every matrix, trained on other sources; the same under a guard \
                 that takes the first candidate wherever that is faster\n";
    }
    for (name, folded) in &t.folds {
        let Folded { mean_loss, worst_loss, guarded_mean_loss, guarded_worst_loss, .. } = folded;
        let losses = [mean_loss, worst_loss, guarded_mean_loss, guarded_worst_loss];
        let losses = losses.map(|loss| format!(" {:>7.1}%", 100.0 * loss));
        text += &format!("{name:<36}{}\n", losses.concat());
    }
    text += &format!("\ntaken: {}\n", t.taken);
    for (what, path) in [("written to", &r.model), ("installed as", &r.installed)] {
        if let Some(path) = path {
            text += &format!("{what} {path}\n");
        }
    }
    text
}
