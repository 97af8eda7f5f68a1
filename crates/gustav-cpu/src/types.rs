//! The scalar types that kernels are compiled for: all of them, once, in this crate.

use gustav_core::{AnyPattern, DenseView, Problem, Result, Scalar};
#[cfg(not(test))]
use gustav_core::{bf16, f16};

use crate::arch::vector::Dispatch;
use crate::attention::compiled::AttentionKernels;
use crate::spgemm::compiled::SpgemmKernels;
use crate::{
    AttentionGradientsPlan, AttentionPlan, Options, SddmmPlan, SoftmaxPlan, SpmmPlan, SpmvPlan,
    WinnerGradients,
};

/// Calls the macro `$then` with its arguments, and the plans and the functions of [`CpuScalar`]
/// that make them.
macro_rules! with_plans {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            plan_spmm: SpmmPlan,
            plan_spmv: SpmvPlan,
            plan_sddmm: SddmmPlan,
            plan_winner_gradients: WinnerGradients,
            plan_attention: AttentionPlan,
            plan_attention_gradients: AttentionGradientsPlan,
            plan_softmax: SoftmaxPlan,
        }
    };
}

macro_rules! declare {
    ($($function:ident: $plan:ident,)*) => {
        /// A scalar that this backend multiplies: every [`Scalar`](gustav_core::Scalar). The
        /// functions that make plans, and those that plans execute, are methods of the scalar types,
        /// so that kernels are compiled in this crate and not in the user's.
        pub trait CpuScalar: Dispatch + SpgemmKernels + AttentionKernels {
            $(
                #[doc(hidden)]
                fn $function<'a>(
                    pattern: AnyPattern<'a>,
                    problem: &Problem,
                    options: &Options,
                ) -> Result<$plan<'a, Self>>;
            )*

            /// One product of a batch, whose operands fit.
            #[doc(hidden)]
            fn sddmm(
                plan: &mut SddmmPlan<'_, Self>,
                operands: [DenseView<'_, Self>; 2],
                values: &mut [Self],
                scale: (Self::Accum, Self::Accum),
                factors: Option<&[Self]>,
            ) -> Result<()>;
        }
    };
}

macro_rules! implement {
    ($t:ty; $($function:ident: $plan:ident,)*) => {
        impl CpuScalar for $t {
            $(
                fn $function<'a>(
                    pattern: AnyPattern<'a>,
                    problem: &Problem,
                    options: &Options,
                ) -> Result<$plan<'a, Self>> {
                    $plan::of_any(pattern, problem, options)
                }
            )*

            fn sddmm(
                plan: &mut SddmmPlan<'_, Self>,
                operands: [DenseView<'_, Self>; 2],
                values: &mut [Self],
                scale: (<Self as Scalar>::Accum, <Self as Scalar>::Accum),
                factors: Option<&[Self]>,
            ) -> Result<()> {
                plan.multiply(operands, values, scale, factors)
            }
        }
    };
}

macro_rules! compiled {
    ($($t:ty),*) => {
        $(with_plans!(implement $t;);)*
    };
}

with_plans!(declare);

#[cfg(not(test))]
compiled!(f16, bf16, f32, f64, i32, i64);
// Unit tests use no plan of SpMM or SpMV, so they skip these kernels, which take long to compile a
// second time.
#[cfg(test)]
compiled!(f32);
