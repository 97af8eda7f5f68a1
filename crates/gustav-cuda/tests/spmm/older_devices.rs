//! Kernels as devices of earlier compute capabilities get them, run by the device at hand: compiled to
//! PTX of an older architecture, which the driver compiles further. Before 9.0 vectors are added to
//! memory value by value and A is asked for a sector at a time; before 8.0 nothing is copied to shared
//! memory on the way, and bf16 is rounded by integers.

use std::sync::Arc;

use gustav_core::{PlusTimes, Result, Scalar, bf16, f16};
use gustav_cuda::jit::{Cache, Compiler, Jit, Nvrtc, Request};
use gustav_cuda::spmm::b_stationary;
use gustav_cuda::spmm::segmented::{Config, Reduction};
use gustav_cuda::{Device, Options};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::run;

/// Compiles for one architecture, whatever the device.
struct Older(&'static str);

impl Compiler for Older {
    fn version(&self) -> Result<String> {
        Ok(format!("{} for {}", Nvrtc.version()?, self.0))
    }

    fn compile(&self, request: &Request, _: &str) -> Result<Vec<u8>> {
        Nvrtc.compile(request, self.0)
    }
}

/// The battery for `target` with `options`, of few columns, since every width is another kernel.
fn check<T: Scalar>(target: &'static str, options: &Options<'_>) {
    let jit = Jit::new(Arc::new(Older(target)), Cache::new(None));
    let device = Device::with_jit(0, jit).expect("a CUDA device");
    // The oracle's own sums are f64, so that it cannot judge other orders where those overflow.
    let nonfinite = T::DTYPE != gustav_core::DType::F64;
    let settings = Settings { nonfinite, columns: vec![1, 33, 64], ..Settings::default() };
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        // Reductions in memory flush subnormal sums in f32, which their documentation says.
        let leaves = reduces(options) && case.name == "tiny magnitudes";
        let options = if leaves { &Options::default() } else { options };
        run::<T, u32, u32, PlusTimes>(&device, options, case)
    });
}

fn reduces(options: &Options<'_>) -> bool {
    use gustav_cuda::Config::Segmented;
    matches!(options.config, Some(Segmented(c)) if c.reduction == Reduction::Atomic)
}

fn named(algorithm: Algorithm) -> Options<'static> {
    Options { chooser: Chooser::Named(algorithm), ..Options::default() }
}

/// `segmented`, with rows cut so short that small matrices have some.
fn segmented(refine: impl Fn(Config) -> Config) -> Options<'static> {
    let config = refine(Config {
        vector: 4,
        lanes: 8,
        tiles: 1,
        subgroups: 2,
        warps: 1,
        chunk: 4,
        segments_per_group: 1,
        at_once: false,
        prefetch_b: false,
        stages: 0,
        prefetch_a: true,
        longest: Some(32),
        first: 32,
        window: 1024,
        reduction: Reduction::FixUp,
        block: 128,
        resident: 384,
    });
    Options { config: Some(gustav_cuda::Config::Segmented(config)), ..Options::default() }
}

/// `b-stationary`, with segments so short that small matrices have many.
fn stationary(vector: u32) -> Options<'static> {
    let config = b_stationary::Config {
        vector,
        lanes: 4,
        tiles: 2,
        stages: 2,
        longest: 8,
        reduction: Reduction::FixUp,
        block: 64,
    };
    Options { config: Some(gustav_cuda::Config::BStationary(config)), ..Options::default() }
}

macro_rules! targets {
    ($($target:ident),*) => {$(
        mod $target {
            use super::*;

            const TARGET: &str = stringify!($target);

            #[test]
            #[ignore = "needs a CUDA device"]
            fn parts_added_to_memory() {
                let atomic = |c| Config { reduction: Reduction::Atomic, ..c };
                check::<f32>(TARGET, &segmented(atomic));
                check::<f64>(TARGET, &segmented(|c| Config { vector: 2, ..atomic(c) }));
            }

            #[test]
            #[ignore = "needs a CUDA device"]
            fn rows_of_b_through_shared_memory() {
                check::<f32>(TARGET, &segmented(|c| Config { stages: 2, ..c }));
                check::<bf16>(TARGET, &segmented(|c| Config { vector: 8, stages: 2, chunk: 2, ..c }));
                let many = |c| Config { lanes: 8, tiles: 4, subgroups: 1, stages: 1, chunk: 2, ..c };
                check::<f32>(TARGET, &segmented(many));
            }

            #[test]
            #[ignore = "needs a CUDA device"]
            fn several_segments_per_group() {
                let several = |c| Config { subgroups: 1, prefetch_a: false, segments_per_group: 4, prefetch_b: true, window: 32, ..c };
                check::<f32>(TARGET, &segmented(several));
                check::<f16>(TARGET, &segmented(|c| Config { vector: 8, ..several(c) }));
            }

            #[test]
            #[ignore = "needs a CUDA device"]
            fn blocks_of_rows_and_even_shares() {
                check::<bf16>(TARGET, &named(Algorithm::RowBlock));
                check::<f32>(TARGET, &named(Algorithm::EvenShares));
            }

            #[test]
            #[ignore = "needs a CUDA device"]
            fn tiles_copied_between_barriers() {
                check::<f32>(TARGET, &stationary(4));
                check::<f16>(TARGET, &stationary(8));
            }

            #[test]
            #[ignore = "needs a CUDA device"]
            fn tensor_cores() {
                check::<f16>(TARGET, &named(Algorithm::Tensor));
            }
        }
    )*};
}

targets! { compute_75, compute_80 }

#[test]
#[ignore = "needs a CUDA device"]
fn tensor_cores_of_wider_types() {
    check::<bf16>("compute_80", &named(Algorithm::Tensor));
    check::<f64>("compute_80", &named(Algorithm::Tensor));
}
