//! Where a product runs, on how many threads, and who chooses the algorithm.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::{Error, Result};
use gustav_cpu::arch::Isa;
use gustav_cpu::{Options, Threads};
use gustav_cuda::jit::Cache;
use gustav_plan::{Chooser, Order};

use crate::cuda::{self, Gpu, Profile};

/// A device to make plans for: the CPU, or an NVIDIA GPU.
///
/// Parsed from `cpu`, `cuda:K` or `auto`, which is the CPU: what a GPU gains on a product of
/// matrices in host memory is less than what moving them there and back costs.
#[derive(Clone, Debug, Default)]
pub struct Device {
    options: Options,
    gpu: Option<Gpu>,
    order: Option<Order>,
}

/// One line of [`Device::list`].
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DeviceInfo {
    /// The name that [`Device::from_str`] takes.
    pub name: String,
    /// Whether products can run there.
    pub available: bool,
    /// What it is, or what is missing.
    pub description: String,
    /// What the driver says of a GPU, also of one that lacks something.
    pub gpu: Option<Profile>,
    /// Why kernels compiled for a GPU are not cached on disk, so that every process compiles them
    /// again; `None` when they are.
    pub cache_problem: Option<String>,
}

impl Display for DeviceInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missing = if self.available { "" } else { "not available: " };
        write!(f, "{:<8} {missing}{}", self.name, self.description)?;
        match &self.cache_problem {
            Some(problem) => write!(f, "; compiled kernels are not cached: {problem}"),
            None => Ok(()),
        }
    }
}

impl Device {
    /// The CPU, with one thread per core.
    pub fn cpu() -> Self {
        Self::default()
    }

    /// The NVIDIA GPU number `ordinal`.
    ///
    /// # Errors
    /// [`Error::NoDevice`] saying what is missing.
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Ok(Device { gpu: Some(Gpu::new(ordinal)?), ..Self::default() })
    }

    /// The CPU and every GPU of this machine; where there is none, what is missing for one.
    pub fn list() -> Vec<DeviceInfo> {
        let info = |name, available, description| {
            let (gpu, cache_problem) = (None, None);
            DeviceInfo { name, available, description, gpu, cache_problem }
        };
        let mut devices = vec![info("cpu".into(), true, Self::cpu().description())];
        let words = |e: Error| match e {
            Error::NoDevice { reason } => reason,
            other => other.to_string(),
        };
        let missing = |name, e| info(name, false, words(e));
        match gustav_cuda::Device::count() {
            Err(e) => devices.push(missing("cuda".into(), e)),
            Ok(0) => {
                let reason = "the NVIDIA driver finds no GPU".into();
                devices.push(missing("cuda".into(), Error::NoDevice { reason }));
            }
            Ok(count) => {
                let cache_problem = Cache::of_user().problem();
                devices.extend((0..count).map(|ordinal| {
                    let name = format!("cuda:{ordinal}");
                    match Profile::read(ordinal) {
                        Err(e) => missing(name, e),
                        Ok(profile) => {
                            let lacks = profile.check(ordinal).err();
                            let known = cuda::description(&profile);
                            DeviceInfo {
                                name,
                                available: lacks.is_none(),
                                description: match lacks {
                                    None => known,
                                    Some(e) => format!("{} ({known})", words(e)),
                                },
                                gpu: Some(profile),
                                cache_problem: cache_problem.clone(),
                            }
                        }
                    }
                }))
            }
        }
        devices
    }

    /// The same device with `count` threads.
    ///
    /// # Errors
    /// [`Error::Argument`] for 0 threads or more than the system gives.
    pub fn with_threads(self, count: usize) -> Result<Self> {
        let threads = Threads::new(count, false)?;
        Ok(self.on(threads))
    }

    /// The same device with threads that were made before, for example pinned ones.
    #[must_use]
    pub fn on(self, threads: Threads) -> Self {
        Device { options: Options { threads, ..self.options }, ..self }
    }

    /// The same device with another rule for choosing algorithms.
    #[must_use]
    pub fn choose(self, chooser: Chooser) -> Self {
        Device { options: Options { chooser, ..self.options }, ..self }
    }

    /// The same device with rows taken in another order than the stored one: of SpMM on GPUs, by
    /// `output-stationary` and `segmented`. The matrix and the product stay as they are; plans take
    /// longer to make.
    #[must_use]
    pub fn with_order(self, order: Order) -> Self {
        Device { order: Some(order), ..self }
    }

    /// The order in which rows are taken, if not as stored.
    pub fn order(&self) -> Option<Order> {
        self.order
    }

    /// The short name: `cpu` or `cuda:K`.
    pub fn name(&self) -> &str {
        self.gpu.as_ref().map_or("cpu", |g| &g.name)
    }

    /// The threads that products run on.
    pub fn threads(&self) -> &Threads {
        &self.options.threads
    }

    /// Who chooses the algorithm.
    pub fn chooser(&self) -> Chooser {
        self.options.chooser
    }

    /// The device in a few words: threads and instruction set, or what the GPU is.
    pub fn description(&self) -> String {
        if let Some(gpu) = &self.gpu {
            return cuda::description(gpu.device.profile());
        }
        let isa = self.options.isa.unwrap_or_else(Isa::detect);
        let threads = self.threads().count();
        let s = if threads == 1 { "" } else { "s" };
        format!("{threads} thread{s}, {isa}")
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Whether a plan that nobody asks for its reasons can be made by the backend alone, without
    /// the facts that explain it, which take a pass over the pattern.
    pub(crate) fn is_unexplained(&self) -> bool {
        self.gpu.is_none() && self.chooser() != Chooser::Autotune
    }

    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref()
    }
}

impl Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Device {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self> {
        match s {
            "auto" | "cpu" => Ok(Device::cpu()),
            _ => match s.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(ordinal)) => Device::cuda(ordinal),
                _ => Err(Error::Argument {
                    name: "device",
                    found: s.into(),
                    expected: "auto, cpu or cuda:K with K counted from 0".into(),
                }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        assert_eq!(Device::from_str("auto").expect("auto").name(), "cpu");
        assert_eq!(Device::from_str("cpu").expect("cpu").name(), "cpu");
    }

    #[test]
    fn a_missing_gpu_is_one_line() {
        // A number that no machine has, so that this holds with a driver as well.
        let message = Device::from_str("cuda:1048576").expect_err("so many GPUs").to_string();
        assert!(message.starts_with("no device: ") && message.len() > 20, "{message}");
        assert!(!message.contains('\n'));
    }

    #[test]
    fn the_list_says_what_is_there_or_missing() {
        let devices = Device::list();
        assert_eq!((devices[0].name.as_str(), devices[0].available), ("cpu", true));
        assert!(devices.len() > 1 && devices.iter().all(|d| !d.description.is_empty()));
        for gpu in &devices[1..] {
            assert!(gpu.name.starts_with("cuda"), "{gpu:?}");
            assert!(gpu.gpu.is_some() || !gpu.available, "{gpu:?}");
        }
    }

    #[test]
    fn a_cache_that_is_off_is_told_with_the_device() {
        let info = |cache_problem| DeviceInfo {
            name: "cuda:0".into(),
            available: true,
            description: "a GPU".into(),
            gpu: None,
            cache_problem,
        };
        assert_eq!(info(None).to_string(), "cuda:0   a GPU");
        let text = info(Some("set HOME".into())).to_string();
        assert_eq!(text, "cuda:0   a GPU; compiled kernels are not cached: set HOME");
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["gpu", "cuda", "cuda:", "cuda:-1", ""] {
            let e = Device::from_str(name).expect_err("not a device");
            assert!(matches!(e, Error::Argument { name: "device", .. }), "{name}: {e}");
        }
    }

    #[test]
    fn no_threads_are_refused() {
        let e = Device::cpu().with_threads(0).expect_err("0 threads");
        assert_eq!(e.to_string(), "threads: 0 is not valid, expected at least 1");
    }
}
