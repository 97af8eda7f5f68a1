//! Products in one call, and their builders.

mod sddmm;
mod spgemm;
mod spmm;
mod spmv;

pub use sddmm::sddmm;
pub use spgemm::{Spgemm, spgemm};
pub use spmm::{Spmm, spmm};
pub use spmv::{Spmv, spmv};

/// The builder methods that all products have; each holds a `problem`, a `device`, `threads` and an
/// `alpha`.
macro_rules! setters {
    ($accum:ty) => {
        /// Runs on `device` instead of the CPU.
        pub fn device(mut self, device: crate::Device) -> Self {
            self.device = device;
            self
        }

        /// Lets `chooser` choose the algorithm, for example
        /// [`Chooser::Named`](gustav_plan::Chooser::Named).
        pub fn choose(mut self, chooser: gustav_plan::Chooser) -> Self {
            self.device = self.device.choose(chooser);
            self
        }

        /// Runs on `count` threads instead of one per core.
        pub fn threads(mut self, count: usize) -> Self {
            self.threads = Some(count);
            self
        }

        /// Scales the product by `alpha`, else the semiring's one.
        pub fn alpha(mut self, alpha: $accum) -> Self {
            self.alpha = Some(alpha);
            self
        }

        /// Multiplies over `semiring` instead of plus-times.
        pub fn semiring(mut self, semiring: gustav_core::Semiring) -> Self {
            self.problem.semiring = semiring;
            self
        }

        /// Multiplies Aᵀ instead of A.
        pub fn transpose(mut self, transpose: bool) -> Self {
            self.problem.transpose_a = transpose;
            self
        }

        /// Asks for results that are the same to the bit from run to run.
        pub fn deterministic(mut self, deterministic: bool) -> Self {
            self.problem.deterministic = deterministic;
            self
        }

        fn planner(&self) -> gustav_core::Result<crate::Device> {
            match self.threads {
                Some(count) => self.device.clone().with_threads(count),
                None => Ok(self.device.clone()),
            }
        }
    };
}
use setters;
