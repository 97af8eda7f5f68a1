//! Bounds of the cost model beside measured times: what its parameters are fitted to.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use gustav_core::{CsrView, DType, Error, Operation, Problem, Result};
use gustav_cuda::{spmm, spmv};
use gustav_plan::cost::{Bounds, HostFacts};
use gustav_plan::heuristics::cpu_spmm;
use gustav_plan::{Algorithm, DeviceProfile, RowStats};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BenchArgs, listing, schedule};

// Algorithms whose configurations the model chooses among, of SpMM and of SpMV.
const OF_SPMM: [Algorithm; 4] =
    [Algorithm::Segmented, Algorithm::RowBlock, Algorithm::BStationary, Algorithm::Tensor];
const OF_SPMV: [Algorithm; 2] = [Algorithm::Segmented, Algorithm::EvenShares];

// Types of values that are measured.
pub(super) const TYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::Bf16];

/// What is read of a measurement, a line of a record.
#[derive(Deserialize)]
pub(super) struct Measured {
    pub(super) matrix: String,
    operation: String,
    pub(super) columns: usize,
    pub(super) dtype: String,
    /// Ends with the configuration.
    reason: Option<String>,
    algorithm: String,
    execute_ms: Option<f64>,
    gpu: Option<Gpu>,
    /// The CPU and the threads of a product there; absent where only GPUs were measured.
    machine: Option<Machine>,
    threads: Option<usize>,
}

/// The CPU of a measurement.
#[derive(Deserialize)]
struct Machine {
    cpu: String,
    l2_bytes: usize,
    llc_bytes: usize,
}

/// The GPU of a measurement.
#[derive(Deserialize)]
struct Gpu {
    name: String,
    multiprocessors: usize,
    l2_bytes: usize,
    /// Shared memory that a CTA may have; absent in records, which are then of devices with 227 KiB.
    #[serde(default = "shared_bytes")]
    shared_bytes: usize,
}

fn shared_bytes() -> usize {
    227 << 10
}

/// A measured configuration with its bounds.
#[derive(Serialize)]
struct Bounded<'a> {
    matrix: &'a str,
    /// `cpu-spmm`, or `spmm` and `spmv` of a GPU.
    product: &'static str,
    columns: usize,
    dtype: &'a str,
    /// The configuration.
    reason: &'a str,
    execute_ms: f64,
    device: &'a str,
    algorithm: &'static str,
    class: Value,
    /// Microseconds by name.
    bounds: serde_json::Map<String, Value>,
}

/// Reads measurements of SpMM and SpMV on a GPU, or of SpMM on a CPU, from the record file of `args`, and writes those
/// whose configuration is among today's candidates to `output` with their bounds, computed from the matrices of the
/// suite. The number of both.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`] for lines that are no measurements; those of the suite and of its matrices.
pub fn write_bounds(args: &BenchArgs, output: &Path) -> Result<(usize, usize)> {
    let (mut written, mut text) = (0, Vec::new());
    let read = each(args, |m, found| {
        let named = found.bounds.terms.iter().map(|(b, us)| (b.name().to_owned(), (*us).into()));
        let line = Bounded {
            matrix: &m.matrix,
            product: found.product,
            columns: m.columns,
            dtype: &m.dtype,
            reason: tail(found.reason),
            execute_ms: found.execute_ms,
            device: found.device,
            algorithm: found.algorithm.name(),
            class: serde_json::to_value(found.bounds.class).unwrap_or_default(),
            bounds: named.collect(),
        };
        text.extend(serde_json::to_vec(&line).unwrap_or_default());
        text.push(b'\n');
        written += 1;
    })?;
    let mut file = std::fs::File::create(output).map_err(|e| io(output, "create", e))?;
    file.write_all(&text).map_err(|e| io(output, "write", e))?;
    Ok((read, written))
}

/// The bounds of a measured configuration.
pub(super) struct Found<'a> {
    pub(super) product: &'static str,
    pub(super) device: &'a str,
    reason: &'a str,
    pub(super) algorithm: Algorithm,
    pub(super) bounds: Bounds,
    pub(super) execute_ms: f64,
}

/// Calls `of_measured` with each measurement of the record file of `args` whose configuration is among today's
/// candidates, and its bounds; the number of all measurements.
pub(super) fn each(
    args: &BenchArgs,
    mut of_measured: impl FnMut(&Measured, Found<'_>),
) -> Result<usize> {
    let suite = schedule::suite(args)?;
    let (workloads, _) = listing::list(&suite)?;
    let mut of_matrix: HashMap<String, Vec<Measured>> = HashMap::new();
    let mut read = 0;
    for (number, line) in lines(&args.record)?.enumerate() {
        let line = line.map_err(|source| io(&args.record, "read", source))?;
        let measured: Measured = serde_json::from_str(&line).map_err(|e| Error::Format {
            path: Some(args.record.clone()),
            format: "measurements",
            reason: format!("line {}: {e}", number + 1),
        })?;
        read += 1;
        of_matrix.entry(measured.matrix.clone()).or_default().push(measured);
    }
    for workload in &workloads {
        let Some(measured) = of_matrix.remove(&workload.name) else { continue };
        let a = workload.load(args.seed)?;
        let a = a.view();
        let facts = HostFacts::new(a.pattern());
        let stats = RowStats::new(&a.pattern());
        for m in &measured {
            let (Some(reason), Some(execute_ms)) = (&m.reason, m.execute_ms) else { continue };
            let (found, product, device) = match (&m.gpu, &m.machine) {
                (Some(gpu), _) => {
                    let product =
                        if m.operation == Operation::Spmv.name() { "spmv" } else { "spmm" };
                    (on_gpu(&a, &facts, m, gpu)?, product, &gpu.name)
                }
                (None, Some(machine)) => (on_cpu(&a, &stats, m, machine), "cpu-spmm", &machine.cpu),
                _ => continue,
            };
            let Some((algorithm, bounds)) = found else { continue };
            of_measured(m, Found { product, device, reason, algorithm, bounds, execute_ms });
        }
    }
    Ok(read)
}

/// The configuration at the end of a reason.
fn tail(reason: &str) -> &str {
    let names = ["Segmented(", "RowBlock(", "BStationary(", "Tensor(", "EvenShares("];
    names.iter().find_map(|name| reason.rfind(name)).map_or(reason, |at| &reason[at..])
}

/// The same without a field that older records lack, if it has the only value that there was then.
fn as_in_all_records(reason: &str) -> String {
    tail(reason).replace(" warps: 1, chunk:", " chunk:")
}

/// The algorithm and the bounds of a measured SpMM on a CPU, if it is a candidate.
fn on_cpu(
    a: &CsrView<'_, f64>,
    stats: &RowStats,
    measured: &Measured,
    machine: &Machine,
) -> Option<(Algorithm, Bounds)> {
    if measured.operation != Operation::Spmm.name() {
        return None;
    }
    let dtype = TYPES.into_iter().find(|dtype| dtype.name() == measured.dtype)?;
    let problem = Problem { dtype, ..Problem::spmm(a) }.columns(measured.columns);
    let profile = DeviceProfile {
        name: machine.cpu.clone(),
        units: measured.threads?,
        lanes: 16,
        l2_bytes: machine.l2_bytes,
        llc_bytes: machine.llc_bytes,
    };
    let algorithm = cpu_spmm::CANDIDATES.into_iter().find(|a| a.name() == measured.algorithm)?;
    Some((algorithm, cpu_spmm::work(stats, &problem, &profile).bounds(algorithm)?))
}

/// The algorithm and the bounds of a configuration measured on a GPU, if it is a candidate.
fn on_gpu(
    a: &CsrView<'_, f64>,
    facts: &HostFacts<'_, u32, u32>,
    measured: &Measured,
    gpu: &Gpu,
) -> Result<Option<(Algorithm, Bounds)>> {
    let Some(reason) = &measured.reason else { return Ok(None) };
    let dtype = TYPES.into_iter().find(|dtype| dtype.name() == measured.dtype);
    let Some(dtype) = dtype else { return Ok(None) };
    let profile = DeviceProfile {
        name: gpu.name.clone(),
        units: gpu.multiprocessors,
        lanes: 32,
        l2_bytes: gpu.l2_bytes,
        llc_bytes: gpu.l2_bytes,
    };
    let wanted = as_in_all_records(reason);
    // The first candidate that was measured so.
    macro_rules! find {
        ($problem:expr, $product:ident, $algorithms:expr, $bounds:expr) => {{
            let problem = Problem { dtype, ..$problem }.calls(1000);
            for algorithm in $algorithms {
                for config in $product::Config::candidates(algorithm, &problem) {
                    if as_in_all_records(&format!("{config:?}")) == wanted {
                        let bounds = $bounds(&problem, &config)?;
                        return Ok(bounds.map(|bounds: Bounds| (algorithm, bounds)));
                    }
                }
            }
        }};
    }
    if measured.operation == Operation::Spmm.name() {
        let bounds = |problem: &Problem, config: &_| {
            spmm::bounds(problem, facts, &profile, gpu.shared_bytes, config)
        };
        find!(Problem::spmm(a).columns(measured.columns), spmm, OF_SPMM, bounds);
    } else if measured.operation == Operation::Spmv.name() {
        let bounds = |problem: &Problem, config: &_| spmv::bounds(problem, facts, &profile, config);
        find!(Problem::spmv(a), spmv, OF_SPMV, bounds);
    }
    Ok(None)
}

fn lines(path: &Path) -> Result<impl Iterator<Item = std::io::Result<String>>> {
    let file = std::fs::File::open(path).map_err(|e| io(path, "open", e))?;
    Ok(BufReader::new(file).lines())
}

fn io(path: &Path, action: &'static str, source: std::io::Error) -> Error {
    Error::Io { path: path.to_path_buf(), action, source }
}
