//! The suite of a run with the changes by arguments, its cases, and an estimate of their time.

use std::path::PathBuf;

use gustav_core::{DType, Error, Operation, Result};
use gustav_plan::{Algorithm, Chooser};
use gustav_report::{
    Case, Layouts, Mask, MeasurementId, RecordIndex, UNFUSED, WHOLE, read_records,
};

use crate::listing;
use crate::peers::is_host_peer;
use crate::workload::Workload;
use crate::{BenchArgs, Forecast, Suite, cuda, programs, study};

/// The suite of `args` with the engines, device and folder that `args` sets. Of the suite's own
/// peers, those for the device stay.
///
/// # Errors
/// As [`Suite::of_targets`].
pub(crate) fn suite(args: &BenchArgs) -> Result<Suite> {
    let mut suite = Suite::of_targets(&args.targets)?;
    if let Some(ours) = &args.ours {
        suite.engines.ours.clone_from(ours);
        suite.matrices.iter_mut().for_each(|source| source.ours = None);
    }
    // A study has implementations that are no algorithms of the library.
    let of_study = |names: &[String]| suite.study && study::is_dense_alone(names);
    if !of_study(&suite.engines.ours) {
        known(&suite.engines.ours)?;
    }
    suite.matrices.iter().filter_map(|source| source.ours.as_ref()).try_for_each(|o| known(o))?;
    if let Some(device) = &args.device {
        suite.device = (device != "cpu").then(|| device.clone());
    }
    let on_gpu = suite.device.is_some();
    // A peer of another name is a program, which multiplies where the suite does.
    let there = |peer: &String| !if on_gpu { is_host_peer(peer) } else { cuda::is_peer(peer) };
    suite.engines.peers.retain(there);
    for peers in suite.matrices.iter_mut().filter_map(|source| source.peers.as_mut()) {
        peers.retain(there);
    }
    if let Some(peers) = &args.peers {
        suite.engines.peers.clone_from(peers);
        suite.matrices.iter_mut().for_each(|source| source.peers = None);
    }
    let folder = args.corpus.clone();
    if let Some(folder) = folder.or_else(|| std::env::var_os("GUSTAV_CORPUS").map(PathBuf::from)) {
        suite.use_corpus(&folder);
    }
    Ok(suite)
}

/// Rejects unknown algorithm names before anything is measured.
///
/// # Errors
/// [`Error::Argument`] with the names that exist.
fn known(names: &[String]) -> Result<()> {
    if names.is_empty() {
        return Err(Error::Argument {
            name: "algorithms",
            found: "none of ours".into(),
            expected: "auto, all, or names".into(),
        });
    }
    // `NAME#K` is a configuration, `NAME@ORDER` a row order.
    let plain = |name: &String| name.split(['#', '@']).next().unwrap_or_default().to_owned();
    for name in names.iter().map(plain) {
        if !["once", WHOLE, UNFUSED, "all"].contains(&name.as_str()) {
            name.parse::<Chooser>()?;
        }
    }
    Ok(())
}

/// A case with its types and engines.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub case: Case,
    pub layouts: Layouts,
    pub operation: Operation,
    pub dtype: DType,
    pub mask: Option<Mask>,
    /// Whether its gradients are computed.
    pub gradients: bool,
    /// Our algorithms.
    pub ours: Vec<String>,
    /// Requested peers, available or not.
    pub peers: Vec<String>,
}

impl Typed {
    /// The id of the measurement of this case with `threads` and `seed` on `gpu`, to look up in a
    /// record file.
    pub fn asked(
        &self,
        workload: &Workload,
        threads: usize,
        seed: u64,
        gpu: Option<&str>,
    ) -> MeasurementId {
        let (case, shape) = (self.case.clone(), workload.shape);
        MeasurementId { case, shape, threads, seed, gpu: gpu.map(str::to_owned) }
    }

    /// Names of the engines, as in records: Gustav's algorithms, and those of `peers` that were
    /// requested.
    pub fn engines(&self, peers: impl Iterator<Item = String>) -> Vec<String> {
        let peers = peers.filter(|peer| self.peers.contains(peer));
        self.ours.iter().map(|a| format!("gustav:{a}")).chain(peers).collect()
    }
}

/// The cases of the suite that `args` selects, matrix by matrix.
pub(crate) fn cases<'w>(
    args: &BenchArgs,
    suite: &Suite,
    workloads: &'w [Workload],
) -> Vec<(&'w Workload, Vec<Typed>)> {
    let admitted = workloads.iter().filter(|w| args.only.admits_matrix(&w.name));
    let own = admitted.enumerate().filter(|(k, _)| args.part.is_none_or(|p| p.holds(*k)));
    let cases = |(_, workload): (usize, &'w Workload)| {
        let mut cases = of_matrix(suite, workload);
        cases.retain(|c| args.only.matches(&c.case));
        (workload, cases)
    };
    own.map(cases).collect()
}

// Estimates: fractions of its budget that an engine uses on a small and on a large matrix, and
// seconds of planning, checking and loading.
const QUICK: f64 = 0.1;
const SLOW: f64 = 1.2;
const BESIDE_S: f64 = 0.1;

/// Estimates `run` with the same arguments, without measuring. All peers are assumed to be
/// available.
///
/// # Errors
/// For a suite, a matrix folder or a record file that cannot be read.
pub fn forecast(args: &BenchArgs) -> Result<Forecast> {
    let suite = suite(args)?;
    let (workloads, notes) = listing::list(&suite)?;
    let records = if args.record.exists() { read_records(&args.record)? } else { Vec::new() };
    let index = RecordIndex::new(&records);
    let threads = args.threads();
    let gpu = suite.device.as_ref().map(|_| "");
    let (mut all, mut timings) = (Forecast { notes, ..Forecast::default() }, 0);
    for (workload, cases) in cases(args, &suite, &workloads) {
        all.matrices += usize::from(!cases.is_empty());
        all.cases += cases.len();
        for case in cases {
            let engines = case.engines(case.peers.iter().cloned());
            let asked = case.asked(workload, threads, args.seed, gpu);
            match index.holds(&asked, &engines) {
                true => all.held += 1,
                false => timings += engines.len(),
            }
        }
    }
    let (solves, more) = programs::cases(args, &suite)?;
    all.notes.extend(more);
    for (solve, workload) in solves {
        let engines = programs::engines(solve, &suite.engines.peers);
        (all.matrices, all.cases) = (all.matrices + 1, all.cases + 1);
        match index.holds(&solve.asked(&workload, threads, args.seed, gpu), &engines) {
            true => all.held += 1,
            false => timings += engines.len(),
        }
    }
    // On a CPU there are rounds with hot and with cold caches.
    let times = if suite.device.is_none() && suite.programs.is_empty() { 2.0 } else { 1.0 };
    let seconds =
        |fraction: f64| timings as f64 * (fraction * (times * suite.timing.budget_s + BESIDE_S));
    (all.least_s, all.most_s) = (seconds(QUICK), seconds(SLOW));
    Ok(all)
}

/// The CPU's algorithms for an operation.
fn on_cpu(operation: Operation) -> Vec<Algorithm> {
    let entries = match operation {
        Operation::Spmm => gustav_cpu::spmm::catalog(),
        Operation::Spmv => gustav_cpu::spmv::catalog(),
        Operation::Spgemm => gustav_cpu::spgemm::catalog(),
        Operation::Sddmm => gustav_cpu::sddmm::catalog(),
        Operation::Softmax | Operation::Attention => &[],
    };
    entries.iter().map(|e| e.algorithm).collect()
}

/// Gustav's algorithms for an operation: `named`, with `all` expanded, and `NAME#*` to the configurations of
/// an algorithm that autotuning on a GPU tries.
fn algorithms(
    named: &[String],
    on_gpu: bool,
    operation: Operation,
    configurations: impl Fn(Algorithm) -> usize,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in named {
        if name == "all" {
            let own = match on_gpu {
                true => cuda::algorithms(operation),
                false => on_cpu(operation),
            };
            names.push("auto".into());
            names.extend(own.iter().map(|a| a.name().to_owned()));
        } else if let Some(Ok(own)) = name.strip_suffix("#*").map(str::parse) {
            names.extend((0..configurations(own)).map(|k| format!("{own}#{k}")));
        } else {
            names.push(name.clone());
        }
    }
    // `NAME#K` is configuration K of an algorithm.
    let fits = |name: &String| {
        let algorithm = name.split('#').next().unwrap_or_default().parse::<Algorithm>();
        // Three products in place of an attention.
        let has = name != UNFUSED || operation == Operation::Attention;
        has && algorithm.map_or(true, |a| a.operations().contains(&operation))
    };
    names.retain(fits);
    names
}

/// The cases of one matrix.
fn of_matrix(suite: &Suite, workload: &Workload) -> Vec<Typed> {
    let named = workload.ours.as_ref().unwrap_or(&suite.engines.ours);
    let peers = workload.peers.as_ref().unwrap_or(&suite.engines.peers);
    let mut found = Vec::new();
    for &dtype in &suite.products.dtypes {
        for &operation in
            suite.products.operations.iter().filter(|o| workload.operations.contains(o))
        {
            let shape = |columns| Case::new(&workload.name, operation, columns, dtype);
            let mut add = |case: Case, layouts: Layouts, mask| {
                let configurations =
                    |own| cuda::configurations(own, operation, case.columns, dtype, layouts);
                let ours = algorithms(named, suite.device.is_some(), operation, configurations);
                let (case, peers) = (case.layout(layouts), peers.clone());
                let gradients = false;
                found.push(Typed { case, layouts, operation, dtype, mask, gradients, ours, peers });
            };
            match operation {
                Operation::Spmm => {
                    let layouts = workload.layouts.as_ref().unwrap_or(&suite.products.layouts);
                    for &layouts in layouts {
                        let columns = &suite.products.columns;
                        let most = suite.products.as_many_columns_up_to;
                        let own = workload.shape.map(|(_, n)| n);
                        let own = own.filter(|n| *n <= most && !columns.contains(n));
                        let all = columns.iter().copied().chain(own);
                        all.for_each(|n| add(shape(n), layouts, None));
                    }
                }
                Operation::Spmv => add(shape(1), Layouts::RowMajor, None),
                Operation::Attention => {
                    for case in widths(suite, &shape) {
                        add(case, Layouts::RowMajor, None);
                    }
                }
                Operation::Sddmm | Operation::Softmax => {
                    for &depth in &suite.products.columns {
                        add(shape(depth), Layouts::RowMajor, None);
                    }
                }
                Operation::Spgemm => {
                    for &sorted in &suite.products.sorted {
                        let case = shape(0).sorted(sorted);
                        for &mask in &suite.products.masks {
                            add(case.clone().mask(mask), Layouts::RowMajor, Some(mask));
                        }
                        if suite.products.masks.is_empty() {
                            add(case, Layouts::RowMajor, None);
                        }
                    }
                }
            }
        }
        let takes = |o: &&Operation| workload.operations.contains(o);
        for &operation in suite.products.gradients.iter().filter(takes) {
            let shape = |columns| Case::new(&workload.name, operation, columns, dtype);
            let (cases, peers) = match operation {
                // No peer has its gradients without the product.
                Operation::Attention => (widths(suite, &shape), Vec::new()),
                _ => (suite.products.columns.iter().map(|n| shape(*n)).collect(), peers.clone()),
            };
            found.extend(cases.into_iter().map(|case| Typed {
                case: case.gradients(),
                layouts: Layouts::RowMajor,
                operation,
                dtype,
                mask: None,
                gradients: true,
                ours: vec!["auto".into()],
                peers: peers.clone(),
            }));
        }
    }
    found
}

/// An attention of every number of heads and every width of a head.
fn widths(suite: &Suite, shape: &impl Fn(usize) -> Case) -> Vec<Case> {
    let heads = suite.products.heads.iter();
    let cases = |heads: &usize| {
        let heads = *heads;
        suite.products.columns.iter().map(move |d| shape(*d).heads(heads)).collect::<Vec<_>>()
    };
    heads.flat_map(cases).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    fn args() -> BenchArgs {
        BenchArgs { targets: vec!["diagonal:9".into(), "grid5:3x3".into()], ..args_of("quick") }
    }

    fn args_of(target: &str) -> BenchArgs {
        BenchArgs::new(target, "/no/such/file.jsonl")
    }

    #[test]
    fn a_forecast_counts_cases_and_engines() {
        let all = forecast(&args()).unwrap();
        // Two matrices, each with SpMM of two widths, SpMV and SpGEMM.
        assert_eq!((all.matrices, all.cases, all.held), (2, 8, 0));
        assert!(0.0 < all.least_s && all.least_s < all.most_s);
        let half = forecast(&BenchArgs { part: "2/2".parse().ok(), ..args() }).unwrap();
        assert_eq!((half.matrices, half.cases), (1, 4));
        assert!((half.most_s * 2.0 - all.most_s).abs() < 1e-9);
    }

    #[test]
    fn small_matrices_are_measured_with_as_many_columns_as_they_have() {
        let suite = Suite::parse(
            "name='x'\ndescription=''\ndevice='cuda:0'\n\
             [[matrices]]\ngenerate=['diagonal:9', 'diagonal:10', 'diagonal:11']\n\
             [products]\noperations=['spmm']\ndtypes=['f32']\ncolumns=[9]\n\
             as_many_columns_up_to=10\n[engines]\nours=['auto']",
        );
        let suite = suite.unwrap();
        let (workloads, _) = listing::list(&suite).unwrap();
        let columns = |w| of_matrix(&suite, w).iter().map(|c| c.case.columns).collect::<Vec<_>>();
        let all: Vec<_> = workloads.iter().map(columns).collect();
        assert_eq!(all, [vec![9], vec![9, 10], vec![9]]);
    }

    #[test]
    fn parts_hold_every_matrix_once() {
        let parts: Vec<Part> = ["1/3", "2/3", "3/3"].iter().map(|p| p.parse().unwrap()).collect();
        for k in 0..10 {
            assert_eq!(parts.iter().filter(|p| p.holds(k)).count(), 1, "{k}");
        }
        for bad in ["0/2", "3/2", "1", "a/b", "1/0"] {
            assert!(bad.parse::<Part>().unwrap_err().to_string().contains("K/N"), "{bad}");
        }
    }

    #[test]
    fn no_suite_has_a_case_twice() {
        for name in Suite::names() {
            let args = args_of(name);
            let suite = suite(&args).unwrap();
            let (workloads, _) = listing::list(&suite).unwrap();
            let mut asked = std::collections::BTreeSet::new();
            for (_, cases) in cases(&args, &suite, &workloads) {
                for case in cases {
                    let case = case.case;
                    assert!(asked.insert(case.clone()), "{name} has {case} twice");
                }
            }
        }
    }

    #[test]
    fn algorithms_that_are_none_are_refused_wherever_they_stand() {
        let refused = |ours: &[&str]| {
            let ours = Some(ours.iter().map(|name| (*name).to_owned()).collect());
            suite(&BenchArgs { ours, ..args() }).unwrap_err().to_string()
        };
        assert!(refused(&["auto", "no-such"]).contains("no-such"));
        assert!(refused(&[]).contains("none of ours"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        for (suites, own) in [("'no-such'", "'auto'"), ("'auto'", "'no-such'")] {
            let text = format!(
                "name='x'\ndescription=''\n[[matrices]]\ngenerate='diagonal:3'\nours=[{own}]\n\
                 [products]\noperations=['spmv']\ndtypes=['f32']\n[engines]\nours=[{suites}]"
            );
            std::fs::write(&path, text).unwrap();
            let error = suite(&args_of(&path.display().to_string())).unwrap_err().to_string();
            assert!(error.contains("no-such"), "{error}");
        }
        assert!(args().targets.iter().all(|t| t.contains(':')) && suite(&args()).is_ok());
    }

    #[test]
    fn a_source_has_peers_of_its_own() {
        let of = |peers: Option<Vec<String>>, device: Option<&str>| {
            let device = device.map(str::to_owned);
            suite(&BenchArgs { peers, device, ..args_of("paper-a") }).unwrap()
        };
        let beside = |suite: &Suite, matrix: &str| {
            let (workloads, _) = listing::list(suite).unwrap();
            let cases = cases(&args_of("paper-a"), suite, &workloads);
            let own = cases.into_iter().find(|(w, _)| w.name.starts_with(matrix));
            own.unwrap().1[0].engines(suite.peers().into_iter())
        };
        let whole = of(None, None);
        assert_eq!(whole.peers().last().map(String::as_str), Some("cublas"));
        assert!(beside(&whole, "uniform:100000x100000").contains(&"cublas".into()));
        assert!(!beside(&whole, "uniform:2x2097152").contains(&"cublas".into()));
        let named = of(Some(vec!["cublas".into()]), None);
        assert!(beside(&named, "uniform:2x2097152").contains(&"cublas".into()));
        assert!(of(None, Some("cpu")).peers().is_empty());
    }

    #[test]
    fn another_device_keeps_its_own_peers() {
        let on = |device: Option<&str>| {
            let device = device.map(str::to_owned);
            suite(&BenchArgs { device, ..args_of("regression") }).unwrap()
        };
        assert_eq!(on(Some("cuda:1")).engines.peers, ["cusparse-default"]);
        assert_eq!(on(Some("cuda:1")).device.as_deref(), Some("cuda:1"));
        assert_eq!(on(Some("cpu")).engines.peers, ["mkl"]);
        assert_eq!(on(None).engines.peers, ["mkl"]);
        let peers = Some(vec!["scipy".into()]);
        let named = suite(&BenchArgs { peers, ..args_of("regression") }).unwrap();
        assert_eq!(named.engines.peers, ["scipy"]);
    }
}
