//! The cost model on a device that it was not fitted to: how long each kind of work takes there, beside the devices that
//! it was fitted to. A few numbers, which a few minutes of measurements give; the parameters of all kernels go with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Bound, Bounds, Fitted, Kind, together};
use crate::installed::{folder, plain};

/// What devices have more or less of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Launching a kernel, and its end.
    Launch,
    /// Steps that wait for memory or for each other.
    Latency,
    /// The bandwidth of memory.
    Memory,
    /// The bandwidth of L2.
    L2,
    /// The bandwidth of shared memory.
    Shared,
    /// The rate at which instructions are issued.
    Issue,
}

impl Resource {
    /// Its name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Launch => "launch",
            Resource::Latency => "latency",
            Resource::Memory => "memory",
            Resource::L2 => "l2",
            Resource::Shared => "shared",
            Resource::Issue => "issue",
        }
    }

    /// What the time of a bound is made of.
    pub fn of(bound: Bound) -> Self {
        match bound {
            Bound::Execution | Bound::Class | Bound::Cut => Resource::Launch,
            Bound::Latency
            | Bound::Chain
            | Bound::FixUp
            | Bound::Longest
            | Bound::Tiles
            | Bound::Waiting => Resource::Latency,
            Bound::Memory | Bound::Misses => Resource::Memory,
            Bound::Gather | Bound::Copies | Bound::Exposed | Bound::Reductions | Bound::Parts => {
                Resource::L2
            }
            Bound::Shared => Resource::Shared,
            Bound::Arithmetic
            | Bound::Serial
            | Bound::Indices
            | Bound::Segments
            | Bound::Stores
            | Bound::Lines
            | Bound::Idle => Resource::Issue,
        }
    }
}

/// How long work takes on a device, beside the devices that the model was fitted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The device.
    pub device: String,
    /// The number of measurements that it was fitted to.
    pub measurements: usize,
    /// The time of each kind of work over the time there; a kind that is missing takes as long as there.
    pub times: BTreeMap<Resource, f64>,
}

/// A configuration that was measured.
#[derive(Clone, Debug)]
pub struct Sample<'p> {
    /// The parameters of its product.
    pub parameters: Fitted<'p>,
    /// Bytes of a value.
    pub bytes: usize,
    /// Its bounds.
    pub bounds: Bounds,
    /// Microseconds that it took.
    pub us: f64,
}

/// Times that a calibration may have: on no device is anything a thousand times as fast, or as slow.
const LIMITS: std::ops::RangeInclusive<f64> = 1e-3..=1e3;
// Steps of the search are factors: from the first on they become their own square roots, as far as the last.
const FIRST_STEP: f64 = 2.0;
const LAST_STEP: f64 = 1.005;
// As in bench/fit_cost_model.py: the soft minimum, in units of the logarithm of times; the weight of errors of
// predictions beside what choices lose; the most that one choice loses.
const SOFTNESS: f64 = 0.04;
const WEIGHT_OF_ERRORS: f64 = 0.1;
const MOST_LOST: f64 = 1.2;
// What the square of the logarithm of a time counts as beside the mean loss: what decides little stays where it is.
const WEIGHT_OF_TIMES: f64 = 0.003;

impl Calibration {
    /// The one by which choices lose least in these cases, each the measured configurations of one product of one
    /// matrix: the mean, over all cases, of the time that a soft choice of the fastest prediction takes beyond the
    /// fastest; and a little of the errors of predictions beside each other. All times have a factor in common, by
    /// which predictions are right in the mean.
    ///
    /// # Errors
    /// [`Error::Argument`] for no measurements.
    pub fn fit(device: &str, cases: &[Vec<Sample<'_>>]) -> Result<Self> {
        let timed: Vec<Vec<Timed>> =
            cases.iter().map(|case| case.iter().map(Timed::new).collect()).collect();
        let measurements: usize = timed.iter().map(Vec::len).sum();
        if measurements == 0 {
            return Err(Error::Argument {
                name: "measurements",
                found: "none of a configuration that the cost model chooses among".into(),
                expected: "those of suite calibrate".into(),
            });
        }
        let mut logarithms = [0.0; COUNT];
        let mut least = loss(&timed, &logarithms);
        let mut step = FIRST_STEP.ln();
        while step >= LAST_STEP.ln() {
            let before = least;
            for k in 0..COUNT {
                for by in [step, -step] {
                    let mut tried = logarithms;
                    tried[k] += by;
                    let of_tried = loss(&timed, &tried);
                    if of_tried < least && LIMITS.contains(&tried[k].exp()) {
                        (logarithms, least) = (tried, of_tried);
                    }
                }
            }
            if least == before {
                step /= 2.0;
            }
        }
        let times = logarithms.map(f64::exp);
        let off: f64 = timed.iter().flatten().map(|timed| timed.off(&times)).sum();
        let common = (-off / measurements as f64).exp();
        let times = times.map(|time| (time * common).clamp(*LIMITS.start(), *LIMITS.end()));
        let times = RESOURCES.into_iter().zip(times).collect();
        Ok(Calibration { device: device.into(), measurements, times })
    }

    /// What the time of a bound counts times.
    pub fn time(&self, bound: Bound) -> f64 {
        self.times.get(&Resource::of(bound)).copied().unwrap_or(1.0)
    }

    /// The path at which that of `device` is installed; `None` if the system has no configuration folder.
    pub fn place(device: &str) -> Option<PathBuf> {
        Some(folder("cost")?.join(format!("{}.json", plain(device))))
    }

    /// The one that is installed for `device`, if one is, in a folder that may be read.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Format`] for one that is no calibration of this device.
    pub fn of_device(device: &str) -> Result<Option<Self>> {
        Self::place(device).map_or(Ok(None), |path| Self::read(&path, device))
    }

    fn read(path: &Path, device: &str) -> Result<Option<Self>> {
        use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
        match std::fs::read_to_string(path) {
            Ok(text) => Self::from_text(&text, device, path).map(Some),
            // Accounts of services may have no home, or one that is not theirs.
            Err(e) if matches!(e.kind(), NotFound | NotADirectory | PermissionDenied) => Ok(None),
            Err(source) => Err(Error::Io { path: path.into(), action: "read", source }),
        }
    }

    fn from_text(text: &str, device: &str, path: &Path) -> Result<Self> {
        let malformed = |reason: String| Error::Format {
            path: Some(path.into()),
            format: "calibration",
            reason: format!("{reason}; gustav tune --calibrate writes a correct one, or remove it"),
        };
        let read: Self = serde_json::from_str(text).map_err(|e| malformed(e.to_string()))?;
        if read.device != device {
            let reason = format!("it is for {}, but its name is that of {device}", read.device);
            return Err(malformed(reason));
        }
        match read.times.iter().find(|(_, time)| !LIMITS.contains(time)) {
            Some((resource, time)) => Err(malformed(format!(
                "{} takes {time} times as long, expected {} to {}",
                resource.name(),
                LIMITS.start(),
                LIMITS.end()
            ))),
            None => Ok(read),
        }
    }
}

const RESOURCES: [Resource; COUNT] = [
    Resource::Launch,
    Resource::Latency,
    Resource::Memory,
    Resource::L2,
    Resource::Shared,
    Resource::Issue,
];
const COUNT: usize = 6;

/// A measured time, and the predicted one by what it is made of.
struct Timed {
    us: f64,
    /// Times of every execution, of the whole device and of one group, by resource.
    parts: [[f64; COUNT]; 3],
}

impl Timed {
    fn new(sample: &Sample<'_>) -> Self {
        let parameters = sample.parameters.of_class(sample.bytes, sample.bounds.class);
        let mut parts = [[0.0; COUNT]; 3];
        for &(bound, us) in &sample.bounds.terms {
            let kind = match bound.kind() {
                Kind::Constant => 0,
                Kind::Throughput => 1,
                Kind::Path => 2,
            };
            let resource = Resource::of(bound) as usize;
            parts[kind][resource] += us * parameters.of(bound);
        }
        Timed { us: sample.us, parts }
    }

    /// The logarithm of the predicted time over the measured one, where resources take these times.
    fn off(&self, times: &[f64; COUNT]) -> f64 {
        let sum = |parts: &[f64; COUNT]| parts.iter().zip(times).map(|(us, t)| us * t).sum::<f64>();
        (together(self.parts.each_ref().map(sum)) / self.us).ln()
    }
}

/// What a calibration is fitted to make least.
fn loss(cases: &[Vec<Timed>], logarithms: &[f64; COUNT]) -> f64 {
    let times = logarithms.map(f64::exp);
    let mean = cases.iter().map(|case| loss_of(case, &times)).sum::<f64>() / cases.len() as f64;
    mean + WEIGHT_OF_TIMES * logarithms.iter().map(|l| l * l).sum::<f64>()
}

/// The loss of a soft choice, and the variance of errors, in one case.
fn loss_of(case: &[Timed], times: &[f64; COUNT]) -> f64 {
    let off: Vec<f64> = case.iter().map(|timed| timed.off(times)).collect();
    let predicted = |k: usize| off[k] + case[k].us.ln();
    let least = (0..case.len()).map(predicted).fold(f64::INFINITY, f64::min);
    let fastest = case.iter().map(|timed| timed.us).fold(f64::INFINITY, f64::min);
    let (mut weights, mut lost) = (0.0, 0.0);
    for (k, timed) in case.iter().enumerate() {
        let weight = ((least - predicted(k)) / SOFTNESS).exp();
        weights += weight;
        lost += weight * (timed.us / fastest - 1.0).min(MOST_LOST);
    }
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    let variance = off.iter().map(|o| (o - mean).powi(2)).sum::<f64>() / off.len() as f64;
    lost / weights + WEIGHT_OF_ERRORS * variance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Class, Parameters};

    /// Of a value. With these, all classes below weigh what is gathered from L2.
    const BYTES: usize = 8;

    /// Configurations that take the same kinds of work in other amounts, each with the times that the model predicts
    /// for a device.
    fn cases(device: &Calibration) -> Vec<Vec<Sample<'static>>> {
        let calibrated = Parameters::of_gpus().calibrated(device);
        let case = |class, more: f64| {
            let amounts = |k: f64| {
                let memory = (Bound::Memory, 10.0 * more);
                let gather = (Bound::Gather, 12.0 * more / k);
                [memory, gather, (Bound::Class, k), (Bound::Latency, 3.0 * k * more.sqrt())]
            };
            let sample = |k: f64| {
                let bounds = Bounds { class, terms: amounts(k).into() };
                let us = bounds.predict(calibrated.of_spmm(32, BYTES), BYTES).us;
                let parameters = Parameters::of_gpus().of_spmm(32, BYTES);
                Sample { parameters, bytes: BYTES, bounds, us }
            };
            [0.5, 1.0, 1.5, 2.0, 3.0, 5.0].map(sample).to_vec()
        };
        let classes = [Class::ManyLoads, Class::FewLoads, Class::Staged];
        let sizes = [0.2, 0.5, 1.0, 2.0, 5.0];
        classes.into_iter().flat_map(|class| sizes.map(|more| case(class, more))).collect()
    }

    fn slower(times: &[(Resource, f64)]) -> Calibration {
        Calibration {
            device: "a GPU".into(),
            measurements: 0,
            times: times.iter().copied().collect(),
        }
    }

    #[test]
    fn every_resource_is_one_of_those_that_are_fitted() {
        for (k, resource) in RESOURCES.into_iter().enumerate() {
            assert_eq!(resource as usize, k);
        }
    }

    /// The mean time of chosen configurations over the fastest.
    fn lost(parameters: &Parameters, cases: &[Vec<Sample<'_>>]) -> f64 {
        let of_case = |case: &Vec<Sample<'_>>| {
            let predicted =
                |s: &Sample<'_>| s.bounds.predict(parameters.of_spmm(32, BYTES), BYTES).us;
            let chosen = case.iter().min_by(|a, b| predicted(a).total_cmp(&predicted(b)));
            let fastest = case.iter().map(|s| s.us).fold(f64::INFINITY, f64::min);
            chosen.expect("a configuration").us / fastest
        };
        cases.iter().map(of_case).sum::<f64>() / cases.len() as f64
    }

    #[test]
    fn choices_on_another_device_lose_less_with_its_calibration() {
        let device = slower(&[(Resource::L2, 8.0), (Resource::Launch, 0.3)]);
        let cases = cases(&device);
        let fitted = Calibration::fit("a GPU", &cases).expect("a calibration");
        assert_eq!(fitted.measurements, 90);
        assert!(fitted.times[&Resource::L2] > 3.0 * fitted.times[&Resource::Launch], "{fitted:?}");
        let calibrated = Parameters::of_gpus().calibrated(&fitted);
        let [before, after] = [Parameters::of_gpus(), &calibrated].map(|p| lost(p, &cases));
        assert!(before > 1.05 && after < 1.0 + (before - 1.0) / 4.0, "{before} {after}");
        assert!(Calibration::fit("a GPU", &[]).is_err());
    }

    #[test]
    fn the_devices_that_the_model_was_fitted_to_need_none() {
        let cases = cases(&slower(&[]));
        let fitted = Calibration::fit("a GPU", &cases).expect("a calibration");
        assert!(lost(&Parameters::of_gpus().calibrated(&fitted), &cases) < 1.005, "{fitted:?}");
        assert!(fitted.times.values().all(|time| (0.7..1.4).contains(time)), "{fitted:?}");
        // One that is slower in everything chooses the same, and predicts other times.
        let all = RESOURCES.map(|resource| (resource, 4.0));
        let slow = Calibration::fit("a GPU", &self::cases(&slower(&all))).expect("a calibration");
        for resource in RESOURCES {
            let factor = slow.times[&resource] / fitted.times[&resource];
            assert!((3.9..4.1).contains(&factor), "{slow:?}");
        }
    }

    #[test]
    fn without_a_folder_there_is_no_calibration() {
        for path in ["/dev/null/gustav/cost/a-gpu.json", "/no-such-folder/a-gpu.json"] {
            let found = Calibration::read(Path::new(path), "a GPU").expect("nothing to read");
            assert_eq!(found, None, "{path}");
        }
    }

    #[test]
    fn files_of_other_devices_and_impossible_times_are_refused() {
        let right = Calibration::fit("a GPU", &cases(&slower(&[]))).expect("a calibration");
        let text = serde_json::to_string(&right).expect("text");
        let read =
            |text: &str, device| Calibration::from_text(text, device, Path::new("a-gpu.json"));
        assert_eq!(read(&text, "a GPU").expect("a calibration"), right);
        for (text, device, reason) in [
            (text.clone(), "another GPU", "it is for a GPU"),
            (text.replace("launch\":", "launch\":-"), "a GPU", "launch takes -"),
            (text.replace("launch", "coffee"), "a GPU", "unknown variant"),
            (String::new(), "a GPU", "EOF"),
        ] {
            let error = read(&text, device).expect_err("refused").to_string();
            assert!(error.contains(reason) && error.contains("a-gpu.json"), "{error}");
            assert!(error.contains("--calibrate"), "{error}");
        }
    }
}
