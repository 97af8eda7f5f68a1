//! `gustav tune`: measure candidates on this GPU; calibrate the cost model, or train a predictor; install it.

use std::fmt::Display;
use std::path::PathBuf;

use gustav::predictor::{Model, Training};
use gustav_bench::{BenchArgs, Calibrated, Outcome as Measured, TuneArgs};
use gustav_report::{Filter, Folded, TuneReport};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::args::{Printing, at_least_one};
use crate::failure::{Failure, Outcome, Result};
use crate::output;

/// Measure candidates on this GPU; calibrate the cost model, or train a predictor and evaluate it
///
/// An existing record file is continued: cases that it has are not measured again. With --calibrate
/// the cost model of the chooser auto is fitted to this GPU in some minutes. Otherwise a predictor is
/// trained: matrices of one source are either trained on or tested on. Training needs a build with
/// --features train; other builds only measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A suite (its name or .toml file) whose engines are the candidates; tune, or with --calibrate
    /// calibrate, unless it is given
    #[arg(value_name = "SUITE")]
    suite: Option<String>,
    /// Append records to this file, one JSON object a line
    #[arg(long, value_name = "OUT.jsonl")]
    record: PathBuf,
    /// Calibrate the cost model by which the chooser auto ranks configurations of SpMM and SpMV: how
    /// long memory, L2, instructions, latencies and launches take on this GPU, by all measurements of
    /// the record file
    #[arg(long, conflicts_with_all = ["topologies", "folds", "passes"])]
    calibrate: bool,
    /// Write the calibration or model to this file
    #[arg(long, short, value_name = "MODEL.json")]
    output: Option<PathBuf>,
    /// Install the calibration or model for this GPU: plans take it from then on
    #[arg(long)]
    install: bool,
    /// Train on existing records, or calibrate by them, and measure nothing
    #[arg(long)]
    train_only: bool,
    /// Measure nothing: write the bounds of the cost model beside the times of the record file, for
    /// bench/fit_cost_model.py
    #[arg(long, value_name = "OUT.jsonl", conflicts_with_all = ["calibrate", "output", "install", "train_only"])]
    bounds: Option<PathBuf>,
    /// Measure only cases that match, such as matrix=rmat*; of a suite with several numbers of
    /// columns select one, as n=64
    #[arg(long, value_name = "FILTER", default_value = "")]
    only: Filter,
    /// The folder of matrix files in place of the suite's
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Train networks of other sizes too, and print the loss of each
    #[arg(long)]
    topologies: bool,
    /// Also do a five-fold cross-validation over the sources, and print the loss of each rival
    #[arg(long)]
    folds: bool,
    /// Epochs of training
    #[arg(long, value_name = "K", default_value_t = Training::default().passes)]
    passes: usize,
    /// Seed of matrices, values and training
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    printing: Printing,
}

impl Args {
    /// What is measured, or was.
    fn bench(&self) -> BenchArgs {
        let suite =
            self.suite.as_deref().unwrap_or(if self.calibrate { "calibrate" } else { "tune" });
        BenchArgs {
            only: self.only.clone(),
            peers: Some(Vec::new()),
            corpus: self.corpus.clone(),
            seed: self.seed,
            quiet: self.printing.quiet,
            ..BenchArgs::new(suite, &self.record)
        }
    }

    /// Whether the options require training.
    fn needs_training(&self) -> bool {
        let Args { train_only, install, topologies, folds, ref output, .. } = *self;
        train_only || install || topologies || folds || output.is_some()
    }
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    counts: Counts,
    model: Option<String>,
    installed: Option<String>,
    #[serde(flatten)]
    training: TuneReport,
}

/// Counts of a measurement.
#[derive(Serialize)]
struct Counts {
    record: String,
    measured: usize,
    resumed: usize,
    wrong: usize,
    failed: usize,
}

impl Counts {
    fn new(record: &std::path::Path, outcome: &Measured) -> Self {
        let Measured { measured, resumed, wrong, failed, .. } = *outcome;
        Counts { record: record.display().to_string(), measured, resumed, wrong, failed }
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { record, measured, resumed, wrong, failed } = self;
        write!(
            f,
            "{measured} cases measured, {resumed} resumed, {wrong} wrong results, {failed} failed \
             engines; records in {record}"
        )
    }
}

/// Measures, trains and prints the evaluation.
pub fn run(args: &Args) -> Result {
    if let Some(output) = &args.bounds {
        return bounds(args, output);
    }
    if args.calibrate {
        return calibrate(args);
    }
    at_least_one("passes", args.passes as u64)?;
    let trains = match gustav_bench::can_train() {
        Err(e) if args.needs_training() => return Err(e.into()),
        Err(e) => {
            output::note(args.printing, &e.to_string());
            false
        }
        Ok(()) => true,
    };
    for path in [&args.record].into_iter().chain(&args.output) {
        output::writable(path)?;
    }
    let bench = args.bench();
    let training = Training { passes: args.passes, seed: args.seed, ..Training::default() };
    let Args { topologies, folds, .. } = *args;
    let tune = TuneArgs { bench, training, topologies, folds };
    let measured = match args.train_only {
        true => Measured::default(),
        false => gustav_bench::measure_candidates(&tune)?,
    };
    for note in &measured.notes {
        output::note(args.printing, note);
    }
    let show = |path: &PathBuf| path.display().to_string();
    let counts = Counts::new(&args.record, &measured);
    if !trains {
        output::note(args.printing, &counts.to_string());
    }
    let bar = progress(args.printing.quiet);
    let tuned = gustav_bench::train_predictor(&tune, &mut |network, done, of| {
        bar.set_message(network.to_owned());
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    let text = tuned.model.to_text()?;
    if let Some(path) = &args.output {
        gustav::io::write_bytes(path, text.as_bytes())?;
    }
    let installed = args.install.then(|| install(&tuned.model, &text)).transpose()?;
    let report = Report {
        counts,
        model: args.output.as_ref().map(show),
        installed: installed.as_ref().map(show),
        training: tuned.report,
    };
    output::print(args.printing, &report, &words(&report))?;
    Ok(if report.counts.wrong == 0 { Outcome::Done } else { Outcome::Failed })
}

/// What `--bounds` wrote.
#[derive(Serialize)]
struct BoundsReport {
    /// Measurements read.
    read: usize,
    /// Those whose configuration is a candidate.
    written: usize,
    output: String,
}

/// Writes bounds beside measured times.
fn bounds(args: &Args, output: &std::path::Path) -> Result {
    let (read, written) = gustav_bench::write_bounds(&args.bench(), output)?;
    let report = BoundsReport { read, written, output: output.display().to_string() };
    let text = format!("{written} of {read} measurements with their bounds in {}\n", report.output);
    output::print(args.printing, &report, &text)?;
    Ok(Outcome::Done)
}

/// What `--calibrate` found.
#[derive(Serialize)]
struct CalibrationReport {
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    calibrated: Calibrated,
    written: Option<String>,
    installed: Option<String>,
}

/// Measures and calibrates the cost model.
fn calibrate(args: &Args) -> Result {
    for path in [&args.record].into_iter().chain(&args.output) {
        output::writable(path)?;
    }
    let calibrated = gustav_bench::calibrate(&args.bench(), args.train_only)?;
    for note in &calibrated.outcome.notes {
        output::note(args.printing, note);
    }
    let text = calibrated.text();
    if let Some(path) = &args.output {
        gustav::io::write_bytes(path, text.as_bytes())?;
    }
    let place = || install_at(calibrated.place(), &text);
    let installed = args.install.then(place).transpose()?;
    let show = |path: &PathBuf| path.display().to_string();
    let report = CalibrationReport {
        counts: Counts::new(&args.record, &calibrated.outcome),
        written: args.output.as_ref().map(show),
        installed: installed.as_ref().map(show),
        calibrated,
    };
    output::print(args.printing, &report, &words_of_calibration(&report))?;
    Ok(if report.counts.wrong == 0 { Outcome::Done } else { Outcome::Failed })
}

fn words_of_calibration(report: &CalibrationReport) -> String {
    let Calibrated { calibration, regrets, .. } = &report.calibrated;
    let mut text = format!(
        "{}\n{}, by {} measurements: times over those on the GPUs that the model was fitted to\n",
        report.counts, calibration.device, calibration.measurements
    );
    for (resource, time) in &calibration.times {
        text += &format!("{:<10} {time:>6.2}\n", resource.name());
    }
    for (product, [without, with]) in regrets {
        let [without, with] = [without, with].map(|r| [r.mean, r.worst].map(|loss| 100.0 * loss));
        text += &format!(
            "{product}: choices lose {:.1} % in the mean and {:.0} % at most without it; {:.1} % and \
             {:.0} % with what the other half of the matrices gives\n",
            without[0], without[1], with[0], with[1]
        );
    }
    for (what, path) in [("written to", &report.written), ("installed as", &report.installed)] {
        if let Some(path) = path {
            text += &format!("{what} {path}\n");
        }
    }
    text
}

/// Installs a model for plans on its device.
fn install(model: &Model, text: &str) -> Result<PathBuf> {
    if model.device.is_empty() {
        let words = "install: the records are of no GPU, and models are used on GPUs only";
        return Err(Failure::Request(words.into()));
    }
    install_at(Model::place(&model.device, model.columns), text)
}

/// Writes a file that plans look for.
fn install_at(place: Option<PathBuf>, text: &str) -> Result<PathBuf> {
    let path = place
        .ok_or_else(|| Failure::Request("install: there is no home folder, use --output".into()))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::Request(format!("cannot make {}: {e}", folder.display())))?;
    }
    gustav::io::write_bytes(&path, text.as_bytes())?;
    Ok(path)
}

fn progress(quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("training {bar:30} {pos}/{len} {msg}, {eta} left");
    ProgressBar::with_draw_target(None, target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn words(r: &Report) -> String {
    let t = &r.training;
    let mut text = format!(
        "{}\n\
         {} with {} columns: trained on {} matrices, tested on {} of other sources ({}), {} left \
         out\n",
        r.counts,
        if t.device.is_empty() { "the CPU" } else { &t.device },
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
                 that takes the first candidate wherever that is faster; row orders chosen, and those that \
                 are slower than none by more than 2 %\n";
    }
    for (name, folded) in &t.folds {
        let Folded { mean_loss, worst_loss, guarded_mean_loss, guarded_worst_loss, .. } = folded;
        let losses = [mean_loss, worst_loss, guarded_mean_loss, guarded_worst_loss];
        let losses = losses.map(|loss| format!(" {:>7.1}%", 100.0 * loss));
        let orders = format!(" {:>5} {:>5}", folded.ordered, folded.ordered_slower);
        text += &format!("{name:<36}{}{orders}\n", losses.concat());
    }
    text += "\nmean loss of each network in the validation\n";
    for (name, loss) in &t.validation {
        text += &format!("{name:<36} {:>7.1}%\n", 100.0 * loss);
    }
    text += &format!("\ntaken: {}\n", t.taken);
    for (what, path) in [("written to", &r.model), ("installed as", &r.installed)] {
        if let Some(path) = path {
            text += &format!("{what} {path}\n");
        }
    }
    text
}
