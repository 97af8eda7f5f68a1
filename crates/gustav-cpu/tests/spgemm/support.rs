//! What the SpGEMM tests share.

use gustav_core::{Csr, CsrView, Index, Problem, Result, Scalar, Semiring};
use gustav_cpu::arch::Isa;
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

/// A·B through a plan.
pub fn product<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(
    a: CsrView<'_, T, I, O>,
    b: CsrView<'_, T, I, O>,
    sorted: bool,
    options: &Options,
) -> Result<(SpgemmPlan<T, I, O>, Csr<T, I, O>)> {
    let problem = Problem::spgemm(&a, &b).semiring(S::KIND).sorted(sorted);
    let mut plan = SpgemmPlan::new(a, b, &problem, options)?;
    let c = plan.execute(S::default(), a, S::one(), b)?;
    Ok((plan, c))
}
