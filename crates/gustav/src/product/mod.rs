//! Products in one call, and their builders.

mod spgemm;
mod spmm;
mod spmv;

pub use spgemm::{Spgemm, spgemm};
pub use spmm::{Spmm, spmm};
pub use spmv::{Spmv, spmv};

use gustav_core::{Problem, Result, Scalar, Semiring};

use crate::Device;

/// What the three builders have in common.
#[derive(Clone, Debug)]
struct Settings<T: Scalar, S> {
    device: Device,
    threads: Option<usize>,
    semiring: S,
    alpha: T::Accum,
    transpose_a: bool,
    deterministic: bool,
    finite: bool,
    tf32: bool,
}

impl<T: Scalar, S: Semiring<T::Accum>> Settings<T, S> {
    fn new(semiring: S) -> Self {
        Settings {
            device: Device::auto(),
            threads: None,
            semiring,
            alpha: S::one(),
            transpose_a: false,
            deterministic: false,
            finite: false,
            tf32: false,
        }
    }

    /// The same for another semiring, whose α starts at one.
    fn over<R: Semiring<T::Accum>>(self, semiring: R) -> Settings<T, R> {
        let Settings { device, threads, transpose_a, deterministic, finite, tf32, .. } = self;
        let new = Settings::new(semiring);
        Settings { device, threads, transpose_a, deterministic, finite, tf32, ..new }
    }

    fn device(&self) -> Result<Device> {
        let device = self.device.clone().for_one_call();
        match self.threads {
            Some(count) => device.with_threads(count),
            None => Ok(device),
        }
    }

    fn refine(&self, problem: Problem) -> Problem {
        problem
            .transpose_a(self.transpose_a)
            .deterministic(self.deterministic)
            .finite(self.finite)
            .tf32(self.tf32)
            .semiring(S::KIND)
    }
}

/// The builder methods that set a field of [`Settings`].
macro_rules! setters {
    () => {
        /// Runs on `device` instead of the best one.
        pub fn device(mut self, device: crate::Device) -> Self {
            self.settings.device = device;
            self
        }

        /// Lets `chooser` choose the algorithm, for example
        /// [`Chooser::Named`](gustav_plan::Chooser::Named).
        pub fn choose(mut self, chooser: gustav_plan::Chooser) -> Self {
            self.settings.device = self.settings.device.choose(chooser);
            self
        }

        /// Runs on `count` threads instead of one per core.
        pub fn threads(mut self, count: usize) -> Self {
            self.settings.threads = Some(count);
            self
        }

        /// Scales the product by `alpha`.
        pub fn alpha(mut self, alpha: T::Accum) -> Self {
            self.settings.alpha = alpha;
            self
        }

        /// Multiplies Aᵀ instead of A.
        pub fn transpose_a(mut self, transpose_a: bool) -> Self {
            self.settings.transpose_a = transpose_a;
            self
        }

        /// Asks for results that are the same to the bit from run to run.
        pub fn deterministic(mut self, deterministic: bool) -> Self {
            self.settings.deterministic = deterministic;
            self
        }
    };
}
use setters;
