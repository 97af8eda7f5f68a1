//! The scalar types that kernels are compiled for: all of them, once, in this crate.

use gustav_core::{AnyPattern, Problem, Result};
#[cfg(not(test))]
use gustav_core::{bf16, f16};

use crate::arch::vector::Dispatch;
use crate::attention::compiled::AttentionKernels;
use crate::spgemm::compiled::SpgemmKernels;
use crate::{
    AttentionGradientsPlan, AttentionPlan, Options, SddmmPlan, SoftmaxPlan, SpmmPlan, SpmvPlan,
    WinnerGradients,
};

/// A scalar that this backend multiplies: every [`Scalar`](gustav_core::Scalar). The functions that
/// make plans are methods of the scalar types, so that kernels are compiled in this crate and not
/// in the user's.
pub trait CpuScalar: Dispatch + SpgemmKernels + AttentionKernels {
    #[doc(hidden)]
    fn plan_spmm<'a>(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<SpmmPlan<'a, Self>>;

    #[doc(hidden)]
    fn plan_spmv<'a>(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<SpmvPlan<'a, Self>>;

    #[doc(hidden)]
    fn plan_sddmm<'a>(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<SddmmPlan<'a, Self>>;

    #[doc(hidden)]
    fn plan_winner_gradients<'a>(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<WinnerGradients<'a, Self>>;

    #[doc(hidden)]
    fn plan_attention<'a>(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<AttentionPlan<'a, Self>>;

    #[doc(hidden)]
    fn plan_attention_gradients<'a>(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<AttentionGradientsPlan<'a, Self>>;

    #[doc(hidden)]
    fn plan_softmax<'a>(
        pattern: AnyPattern<'a>,
        problem: &Problem,
        options: &Options,
    ) -> Result<SoftmaxPlan<'a, Self>>;
}

macro_rules! compiled {
    ($($t:ty),*) => {$(
        impl CpuScalar for $t {
            fn plan_spmm<'a>(
                pattern: AnyPattern<'a>,
                problem: &Problem,
                options: &Options,
            ) -> Result<SpmmPlan<'a, Self>> {
                SpmmPlan::of_any(pattern, problem, options)
            }

            fn plan_spmv<'a>(
                pattern: AnyPattern<'a>,
                problem: &Problem,
                options: &Options,
            ) -> Result<SpmvPlan<'a, Self>> {
                SpmvPlan::of_any(pattern, problem, options)
            }

            fn plan_sddmm<'a>(
                pattern: AnyPattern<'a>,
                problem: &Problem,
                options: &Options,
            ) -> Result<SddmmPlan<'a, Self>> {
                SddmmPlan::of_any(pattern, problem, options)
            }

            fn plan_winner_gradients<'a>(
                pattern: AnyPattern<'a>,
                problem: &Problem,
                options: &Options,
            ) -> Result<WinnerGradients<'a, Self>> {
                WinnerGradients::of_any(pattern, problem, options)
            }

            fn plan_attention<'a>(
                pattern: AnyPattern<'a>,
                problem: &Problem,
                options: &Options,
            ) -> Result<AttentionPlan<'a, Self>> {
                AttentionPlan::of_any(pattern, problem, options)
            }

            fn plan_attention_gradients<'a>(
                pattern: AnyPattern<'a>,
                problem: &Problem,
                options: &Options,
            ) -> Result<AttentionGradientsPlan<'a, Self>> {
                AttentionGradientsPlan::of_any(pattern, problem, options)
            }

            fn plan_softmax<'a>(
                pattern: AnyPattern<'a>,
                problem: &Problem,
                options: &Options,
            ) -> Result<SoftmaxPlan<'a, Self>> {
                SoftmaxPlan::of_any(pattern, problem, options)
            }
        }
    )*};
}

#[cfg(not(test))]
compiled!(f16, bf16, f32, f64, i32, i64);
// Unit tests use no plan of SpMM or SpMV, so they skip these kernels, which take long to compile a
// second time.
#[cfg(test)]
compiled!(f32);
