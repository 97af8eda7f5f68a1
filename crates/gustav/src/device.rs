//! Where a product runs, on how many threads, and who chooses the algorithm.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::{Error, Result};
use gustav_cpu::arch::Isa;
use gustav_cpu::{Options, Threads};
use gustav_plan::Chooser;

/// A device to make plans for. This build has one backend: the CPU.
///
/// Parsed from `auto`, `cpu` or `cuda:K`.
#[derive(Clone, Debug, Default)]
pub struct Device {
    options: Options,
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
}

impl Device {
    /// The CPU, with one thread per core.
    pub fn cpu() -> Self {
        Self::default()
    }

    /// The best device of this machine and build: the CPU.
    pub fn auto() -> Self {
        Self::cpu()
    }

    /// The NVIDIA GPU number `ordinal`.
    ///
    /// # Errors
    /// [`Error::NoDevice`] saying what is missing.
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Err(Error::NoDevice { reason: format!("cuda:{ordinal} was asked for, but {NO_CUDA}") })
    }

    /// Every device this build knows of, the missing ones with the reason.
    pub fn list() -> Vec<DeviceInfo> {
        let cpu = Self::cpu();
        vec![
            DeviceInfo { name: "cpu".into(), available: true, description: cpu.description() },
            DeviceInfo { name: "cuda".into(), available: false, description: NO_CUDA.into() },
        ]
    }

    /// The same device with `count` threads.
    ///
    /// # Errors
    /// [`Error::Argument`] for 0 threads or more than the system gives.
    pub fn with_threads(self, count: usize) -> Result<Self> {
        let threads = Threads::new(count, false)?;
        Ok(Device { options: Options { threads, ..self.options } })
    }

    /// The same device with threads that were made before, for example pinned ones.
    #[must_use]
    pub fn on(self, threads: Threads) -> Self {
        Device { options: Options { threads, ..self.options } }
    }

    /// The same device with another rule for choosing algorithms.
    #[must_use]
    pub fn choose(self, chooser: Chooser) -> Self {
        Device { options: Options { chooser, ..self.options } }
    }

    /// The short name: `cpu`.
    pub fn name(&self) -> &'static str {
        "cpu"
    }

    /// The threads that products run on.
    pub fn threads(&self) -> &Threads {
        &self.options.threads
    }

    /// Who chooses the algorithm.
    pub fn chooser(&self) -> Chooser {
        self.options.chooser
    }

    /// The device in a few words: threads and instruction set.
    pub fn description(&self) -> String {
        let isa = self.options.isa.unwrap_or_else(Isa::detect);
        let threads = self.threads().count();
        let s = if threads == 1 { "" } else { "s" };
        format!("{threads} thread{s}, {isa}")
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }
}

const NO_CUDA: &str = "this build of gustav has no CUDA backend";

impl Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Device {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self> {
        match s {
            "auto" => Ok(Device::auto()),
            "cpu" => Ok(Device::cpu()),
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
        let message = Device::from_str("cuda:3").expect_err("no GPU in this build").to_string();
        assert!(message.contains("cuda:3") && message.contains("no CUDA backend"), "{message}");
        assert!(!message.contains('\n'));
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
