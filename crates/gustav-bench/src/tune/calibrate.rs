//! The cost model fitted to a device at hand: measurements of a suite, what kinds of work take there, and what choices
//! lose with and without that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gustav_core::{Error, Result};
use gustav_plan::cost::{Calibration, Fitted, Parameters, Sample};
use serde::Serialize;

use super::bounds::{TYPES, each};
use crate::{BenchArgs, Outcome, run};

/// A calibration, and what it is worth.
#[derive(Debug, Serialize)]
pub struct Calibrated {
    /// The calibration.
    pub calibration: Calibration,
    /// What choices lose against the fastest measured configuration, by product: without a calibration, and with one
    /// that the other half of the matrices gives.
    pub regrets: BTreeMap<&'static str, [Regret; 2]>,
    /// What was measured.
    #[serde(skip)]
    pub outcome: Outcome,
}

impl Calibrated {
    /// The text of the calibration's file.
    pub fn text(&self) -> String {
        // Finite numbers by names, which JSON has.
        serde_json::to_string_pretty(&self.calibration).unwrap_or_default()
    }

    /// The path at which plans look for it; `None` if the system has no configuration folder.
    pub fn place(&self) -> Option<PathBuf> {
        Calibration::place(&self.calibration.device)
    }
}

/// What choices lose against the fastest measured configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Regret {
    /// Products of a matrix.
    pub cases: usize,
    /// The mean of the losses, 0.05 for 5 %.
    pub mean: f64,
    /// The largest loss.
    pub worst: f64,
}

/// What configurations are measured beside each other for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    matrix: String,
    product: &'static str,
    columns: usize,
    /// The name of the type of values.
    dtype: String,
}

/// Measures the suite of `args`, which continues an existing record file, unless `measured` says that all is there; and
/// fits a calibration of its device.
///
/// # Errors
/// As [`run()`]; [`Error::Argument`] for records of several devices, or of none; those of the record file.
pub fn calibrate(args: &BenchArgs, measured: bool) -> Result<Calibrated> {
    let outcome = if measured { Outcome::default() } else { run(args)? };
    let (mut cases, mut devices) = (BTreeMap::<Case, Vec<_>>::new(), BTreeSet::new());
    each(args, |m, found| {
        let dtype = TYPES.iter().find(|dtype| dtype.name() == m.dtype);
        let Some(bytes) = dtype.map(|dtype| dtype.bytes()) else { return };
        let fitted = fitted(Parameters::of_gpus(), found.product, m.columns, bytes);
        // Of classes that were not measured with such values, choices are made only where there is nothing else.
        let measured = |of: &Fitted<'_>| of.of_class(bytes, found.bounds.class).measured;
        let Some(parameters) = fitted.filter(measured) else { return };
        devices.insert(found.device.to_owned());
        let us = 1e3 * found.execute_ms;
        if !(us > 0.0 && us.is_finite()) {
            return;
        }
        let sample = Sample { parameters, bytes, bounds: found.bounds, us };
        let (matrix, dtype) = (m.matrix.clone(), m.dtype.clone());
        let case = Case { matrix, product: found.product, columns: m.columns, dtype };
        cases.entry(case).or_default().push(sample);
    })?;
    let devices: Vec<_> = devices.into_iter().collect();
    let [device] = &devices[..] else {
        return Err(Error::Argument {
            name: "record",
            found: match devices.is_empty() {
                true => {
                    "no measurement of a configuration that the cost model chooses among".into()
                }
                false => format!("measurements on {}", devices.join(" and on ")),
            },
            expected: "measurements on one GPU; give a record file of another name".into(),
        });
    };
    let matrices: BTreeSet<&str> = cases.keys().map(|case| &*case.matrix).collect();
    let halves: BTreeMap<&str, usize> =
        matrices.into_iter().zip([0, 1].into_iter().cycle()).collect();
    let fit = |is_fitted: &dyn Fn(&Case) -> bool| {
        let fitted = cases.iter().filter(|(case, _)| is_fitted(case));
        let fitted: Vec<_> = fitted.map(|(_, samples)| samples.clone()).collect();
        Calibration::fit(device, &fitted)
    };
    let calibration = fit(&|_| true)?;
    let of_gpus = Parameters::of_gpus();
    let mut regrets: BTreeMap<&'static str, [Regret; 2]> = BTreeMap::new();
    for half in [0, 1] {
        // A single matrix has no other.
        let of_others = fit(&|case| halves[&*case.matrix] != half).unwrap_or(calibration.clone());
        let of_others = of_gpus.calibrated(&of_others);
        for (case, samples) in cases.iter().filter(|(case, _)| halves[&*case.matrix] == half) {
            let of_product = regrets.entry(case.product).or_default();
            for (regret, parameters) in of_product.iter_mut().zip([of_gpus, &of_others]) {
                regret.add(lost(parameters, case, samples));
            }
        }
    }
    Ok(Calibrated { calibration, regrets, outcome })
}

impl Regret {
    fn add(&mut self, loss: f64) {
        self.cases += 1;
        self.mean += (loss - self.mean) / self.cases as f64;
        self.worst = self.worst.max(loss);
    }
}

/// What the choice by these parameters loses against the fastest configuration.
fn lost(parameters: &Parameters, case: &Case, samples: &[Sample<'_>]) -> f64 {
    let predicted = |sample: &Sample<'_>| {
        let fitted = fitted(parameters, case.product, case.columns, sample.bytes);
        fitted.map_or(f64::INFINITY, |fitted| sample.bounds.predict(fitted, sample.bytes).us)
    };
    let least = |of: &dyn Fn(&Sample<'_>) -> f64| {
        samples.iter().min_by(|a, b| of(a).total_cmp(&of(b))).map_or(f64::NAN, |sample| sample.us)
    };
    least(&predicted) / least(&|sample| sample.us) - 1.0
}

/// The parameters of a product on a GPU.
fn fitted<'p>(
    parameters: &'p Parameters,
    product: &str,
    columns: usize,
    bytes: usize,
) -> Option<Fitted<'p>> {
    match product {
        "spmm" => Some(parameters.of_spmm(columns, bytes)),
        "spmv" => Some(parameters.spmv.fitted()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use gustav_core::{DType, Problem};
    use gustav_cuda::spmm;
    use gustav_plan::cost::{HostFacts, Resource};
    use gustav_plan::{Algorithm, DeviceProfile};
    use serde_json::json;

    use super::*;
    use crate::{listing, schedule};

    // Eight matrices: the halves of four are two each, which do not have every kind of work.
    const SUITE: &str = r#"
name = "small"
description = "Matrices that a made-up device has measured"

[[matrices]]
generate = [
    "grid5:60x60", "rmat:11,8", "uniform:3000x3000,40", "hubs:4000x4000,4,3,1500",
    "grid5:200x200", "banded:20000,10", "uniform:300x3000,600", "power-law:3000x3000,4,2.1",
]

[products]
operations = ["spmm"]
columns = [32]
dtypes = ["f32"]

[engines]
ours = ["segmented#*"]
"#;

    /// Records of the configurations of SpMM with the times that the model predicts for this device.
    fn records(args: &BenchArgs, device: &Calibration) -> Result<Vec<String>> {
        let gpu = json!({"name": device.device, "multiprocessors": 100, "l2_bytes": 1 << 25});
        let profile = DeviceProfile {
            name: device.device.clone(),
            units: 100,
            lanes: 32,
            l2_bytes: 1 << 25,
            llc_bytes: 1 << 25,
        };
        let (of_device, mut lines) = (Parameters::of_gpus().calibrated(device), Vec::new());
        for workload in listing::list(&schedule::suite(args)?)?.0 {
            let a = workload.load(args.seed)?;
            let a = a.view();
            let facts = HostFacts::new(a.pattern());
            let problem =
                Problem { dtype: DType::F32, ..Problem::spmm(&a) }.columns(32).calls(1000);
            for algorithm in [Algorithm::Segmented, Algorithm::RowBlock, Algorithm::BStationary] {
                for config in spmm::Config::candidates(algorithm, &problem) {
                    let bounds = spmm::bounds(&problem, &facts, &profile, 227 << 10, &config)?;
                    let Some(bounds) = bounds else { continue };
                    let us = bounds.predict(of_device.of_spmm(32, 4), 4).us;
                    let (matrix, reason) = (&workload.name, format!("{config:?}"));
                    lines.push(
                        json!({
                            "matrix": matrix, "operation": "spmm", "columns": 32, "dtype": "f32",
                            "algorithm": algorithm.name(), "reason": reason, "execute_ms": us / 1e3,
                            "gpu": gpu,
                        })
                        .to_string(),
                    );
                }
            }
        }
        Ok(lines)
    }

    #[test]
    fn records_of_one_device_give_its_calibration() {
        let folder = tempfile::tempdir().expect("a folder");
        let [suite, record] = ["small.toml", "r.jsonl"].map(|name| folder.path().join(name));
        std::fs::write(&suite, SUITE).expect("a file");
        let args = BenchArgs::new(suite.to_str().expect("a name"), &record);
        let slower = |name: &str, l2: f64| Calibration {
            device: name.into(),
            measurements: 0,
            times: [(Resource::L2, l2), (Resource::Latency, 0.03)].into(),
        };
        // So far from the devices of the parameters that these choose what is slow there.
        let mut lines = records(&args, &slower("a GPU", 10.0)).expect("records");
        std::fs::write(&record, lines.join("\n")).expect("a file");
        let Calibrated { calibration, regrets, .. } =
            calibrate(&args, true).expect("a calibration");
        assert_eq!(calibration.device, "a GPU");
        let [l2, latency] = [Resource::L2, Resource::Latency].map(|of| calibration.times[&of]);
        assert!(l2 > 4.0 * latency, "{calibration:?}");
        let [without, with] = regrets["spmm"];
        assert_eq!((without.cases, with.cases), (8, 8));
        assert!(with.mean < without.mean / 2.0 && with.worst < without.worst, "{regrets:?}");

        lines.extend(records(&args, &slower("another GPU", 1.0)).expect("records"));
        let mut file = std::fs::File::create(&record).expect("a file");
        file.write_all(lines.join("\n").as_bytes()).expect("written");
        let refused = calibrate(&args, true).expect_err("two devices").to_string();
        assert!(refused.contains("measurements on a GPU and on another GPU"), "{refused}");
        std::fs::write(&record, "").expect("a file");
        let refused = calibrate(&args, true).expect_err("no measurements").to_string();
        assert!(refused.contains("no measurement of a configuration"), "{refused}");
    }
}
