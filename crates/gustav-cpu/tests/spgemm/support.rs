//! What the SpGEMM tests share.

use gustav_core::{Csr, CsrView, Index, Problem, Result, Semiring};
use gustav_cpu::arch::Isa;
use gustav_cpu::spgemm::{SpgemmCall, SpgemmKernels};
use gustav_cpu::{Options, SpgemmPlan, Threads};
use gustav_plan::{Algorithm, Chooser};

/// Options that name the algorithm.
pub fn options(algorithm: Algorithm, threads: usize, isa: Option<Isa>) -> Options {
    Options {
        chooser: Chooser::Named(algorithm),
        threads: Threads::new(threads, false).expect("a few threads"),
        isa,
        ..Options::default()
    }
}

/// A·B over a semiring, through a plan.
pub fn product<'a, T: SpgemmKernels, I: Index, O: Index>(
    semiring: Semiring,
    a: CsrView<'a, T, I, O>,
    b: CsrView<'a, T, I, O>,
    sorted: bool,
    options: &Options,
) -> Result<(SpgemmPlan<'a, T, I, O>, Csr<T, I, O>)> {
    let problem = Problem::spgemm(&a, &b).semiring(semiring).sorted(sorted);
    let mut plan = SpgemmPlan::new(a, b, &problem, options)?;
    let c = plan.execute(a, b, SpgemmCall::new())?;
    Ok((plan, c))
}

/// Runs `$check::<type>()` for every type of values.
macro_rules! for_every_type {
    ($check:ident) => {
        $check::<gustav_core::f16>();
        $check::<gustav_core::bf16>();
        $check::<f32>();
        $check::<f64>();
        $check::<i32>();
        $check::<i64>();
    };
}
pub(crate) use for_every_type;
