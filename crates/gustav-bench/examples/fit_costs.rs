//! `fit_costs RECORD [MATRICES]`: fits the costs of simulated candidates (docs/predictor.md) to the times of suite
//! `tune` in a record file, on some matrices of each training source, and prints them with their errors.

use std::process::ExitCode;

use gustav_bench::{BenchArgs, CostSample, CostSamples, cost_samples};
use gustav_core::{Error, Result};
use gustav_plan::predictor::{Candidate, CtaCosts, Simulation};
use rayon::prelude::*;

// Matrices of a source, where no number is given.
const MATRICES: usize = 12;
// Larger ones among them are left out: they would take most of the time.
const MOST_NNZ: usize = 500_000;
// Lines that fit into the 256 KiB of a multiprocessor.
const MOST_LINES: usize = 2048;
// The largest factor by which the descent changes a parameter, and the one below which it ends.
const FIRST_FACTOR: f64 = 1.5;
const LAST_FACTOR: f64 = 1.01;
// Sweeps over the parameters after which it ends in any case.
const SWEEPS: usize = 25;

// Round numbers at which the descent begins: what is fitted depends on the training sources alone.
const START: CtaCosts = CtaCosts {
    l1_latency: 30.0,
    l2_latency: 300.0,
    memory_latency: 800.0,
    l1_lines: 1024,
    row: 200.0,
    step: 100.0,
    line: 4.0,
    slot: 20.0,
    warp_stagger: 4.0,
    launch: 5000.0,
};

/// A parameter of the simulation.
enum Parameter {
    /// Cycles.
    Time(fn(&mut CtaCosts) -> &mut f64),
    L1Lines,
}

impl Parameter {
    fn scale(&self, costs: &mut CtaCosts, factor: f64) {
        match self {
            Parameter::Time(time) => *time(costs) *= factor,
            Parameter::L1Lines => {
                costs.l1_lines = (costs.l1_lines as f64 * factor).round() as usize;
            }
        }
    }
}

const PARAMETERS: [Parameter; 10] = [
    Parameter::Time(|c| &mut c.l1_latency),
    Parameter::Time(|c| &mut c.l2_latency),
    Parameter::Time(|c| &mut c.memory_latency),
    Parameter::L1Lines,
    Parameter::Time(|c| &mut c.row),
    Parameter::Time(|c| &mut c.step),
    Parameter::Time(|c| &mut c.line),
    Parameter::Time(|c| &mut c.slot),
    Parameter::Time(|c| &mut c.warp_stagger),
    Parameter::Time(|c| &mut c.launch),
];

/// A matrix, its simulation, and the measured times.
struct Case<'a> {
    simulation: Simulation<'a, u32, u32>,
    ms: &'a [f64],
}

/// A case by certain costs.
struct Simulated {
    /// By candidate but the first: ln of the simulated time ÷ that of the first, less the same of measured times.
    errors: Vec<f64>,
    /// ln of the cycles of the first candidate for each measured cycle.
    scale: f64,
    /// Whether the candidate of the least cycles is the fastest, and 1 − the fastest's time ÷ its time.
    is_right: bool,
    loss: f64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = words.get(1).map_or(Some(MATRICES), |word| word.parse().ok());
    let ([record] | [record, _], Some(most)) = (&words[..], number) else {
        eprintln!("usage: fit_costs RECORD [MATRICES]");
        return ExitCode::from(2);
    };
    match fit(&BenchArgs::new("tune", record), most) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

fn fit(args: &BenchArgs, most: usize) -> Result<()> {
    let CostSamples { gpu, columns, candidates, learn, test, left_out } = cost_samples(args, most)?;
    println!("{}, {columns} columns of B; {} matrices without all times", gpu.name, left_out.len());
    let (learn, test) = (cases(&learn, &candidates)?, cases(&test, &candidates)?);
    if learn.is_empty() || test.is_empty() || gpu.clock_mhz == 0 {
        return Err(Error::Argument {
            name: "record to fit to",
            found: format!(
                "{} and {} matrices, a clock of {} MHz",
                learn.len(),
                test.len(),
                gpu.clock_mhz
            ),
            expected: "times of training and of test sources, on a GPU".into(),
        });
    }
    let errors_of = |name: &str, costs: &CtaCosts| {
        print_errors(&format!("{name}, training sources"), &simulated(&learn, costs)?);
        print_errors(&format!("{name}, test sources"), &simulated(&test, costs)?);
        Ok(())
    };
    errors_of("start", &START)?;
    errors_of("installed", &CtaCosts::H200)?;
    let fitted = descent(&learn)?;
    let scales = simulated(&learn, &fitted)?.into_iter().map(|s| s.scale).collect();
    // Relative times are the same under a common factor, so cycles are made those of the GPU's clock last.
    let factor = gpu.clock_mhz as f64 * 1e3 / quantile(scales, 0.5).exp();
    let fitted = with_times(&fitted, |time| rounded(time * factor));
    println!("{fitted:#?}");
    errors_of("fitted", &fitted)
}

fn print_errors(name: &str, found: &[Simulated]) {
    let count = found.len() as f64;
    let errors: Vec<f64> = found.iter().flat_map(|s| &s.errors).map(|error| error.abs()).collect();
    let right = found.iter().filter(|s| s.is_right).count() as f64 / count;
    let loss = found.iter().map(|s| s.loss).sum::<f64>() / count;
    println!(
        "{name}, {count} matrices: errors of relative times {:.4} in the mean, {:.4} median, {:.4} at 90 %; fastest \
         chosen {right:.3}, mean loss {loss:.4}",
        mean_error(found),
        quantile(errors.clone(), 0.5),
        quantile(errors, 0.9),
    );
}

fn cases<'a>(samples: &'a [CostSample], candidates: &[Candidate]) -> Result<Vec<Case<'a>>> {
    let case = |sample: &'a CostSample| {
        let simulation = Simulation::new(sample.a.pattern().view(), candidates)?;
        let simulation = simulation.ok_or_else(|| Error::Argument {
            name: "suite to fit with",
            found: "candidates that cannot be simulated".into(),
            expected: "those of suite tune".into(),
        })?;
        Ok(Case { simulation, ms: &sample.ms })
    };
    samples.par_iter().filter(|sample| sample.a.nnz() <= MOST_NNZ).map(case).collect()
}

fn simulated(cases: &[Case<'_>], costs: &CtaCosts) -> Result<Vec<Simulated>> {
    let of = |case: &Case<'_>| {
        let (cycles, ms) = (case.simulation.cycles(costs)?, case.ms);
        let relative = |times: &[f64], k: usize| (times[k] / times[0]).ln();
        let errors = (1..ms.len()).map(|k| relative(&cycles, k) - relative(ms, k)).collect();
        let (chosen, fastest) = (least(&cycles), least(ms));
        let scale = (cycles[0] / ms[0]).ln();
        Ok(Simulated {
            errors,
            scale,
            is_right: chosen == fastest,
            loss: 1.0 - ms[fastest] / ms[chosen],
        })
    };
    cases.par_iter().map(of).collect()
}

/// Index of the least of `times`.
fn least(times: &[f64]) -> usize {
    (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0)
}

/// What is minimised: the mean absolute error, which no single matrix decides.
fn mean_error(found: &[Simulated]) -> f64 {
    let errors = || found.iter().flat_map(|s| &s.errors).map(|error| error.abs());
    errors().sum::<f64>() / errors().count() as f64
}

/// The value that the fraction `at` of `values` is below.
fn quantile(mut values: Vec<f64>, at: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(at * (values.len() - 1) as f64) as usize]
}

/// `costs` with all times changed by `change`.
fn with_times(costs: &CtaCosts, change: impl Fn(f64) -> f64) -> CtaCosts {
    let mut costs = *costs;
    for parameter in &PARAMETERS {
        if let Parameter::Time(time) = parameter {
            let time = time(&mut costs);
            *time = change(*time);
        }
    }
    costs
}

/// Three digits of a time.
fn rounded(time: f64) -> f64 {
    format!("{time:.2e}").parse().unwrap_or(time)
}

/// Coordinate descent: one parameter after another is multiplied or divided by a factor of its own, which grows where
/// that helps and shrinks where it does not.
fn descent(cases: &[Case<'_>]) -> Result<CtaCosts> {
    let error_of = |costs: &CtaCosts| {
        let CtaCosts { l1_latency, l2_latency, memory_latency, l1_lines, .. } = *costs;
        // No cache answers earlier than one that is nearer.
        let in_order = l1_latency <= l2_latency && l2_latency <= memory_latency;
        if !in_order || l1_lines > MOST_LINES {
            return Ok(f64::INFINITY);
        }
        simulated(cases, costs).map(|found| mean_error(&found))
    };
    let mut factors = [FIRST_FACTOR; PARAMETERS.len()];
    let (mut best, mut least) = (START, error_of(&START)?);
    for sweep in 0..SWEEPS {
        for (parameter, factor) in PARAMETERS.iter().zip(&mut factors) {
            let mut helps = false;
            for scale in [*factor, 1.0 / *factor] {
                let mut costs = best;
                parameter.scale(&mut costs, scale);
                let error = error_of(&costs)?;
                if error < least {
                    (best, least, helps) = (costs, error, true);
                    break;
                }
            }
            *factor = if helps { factor.powf(1.2).min(FIRST_FACTOR) } else { factor.sqrt() };
        }
        let largest = factors.into_iter().fold(1.0, f64::max);
        eprintln!("sweep {sweep}: error {least:.5}, factors up to {largest:.3}, {best:?}");
        if largest < LAST_FACTOR {
            break;
        }
    }
    Ok(best)
}
