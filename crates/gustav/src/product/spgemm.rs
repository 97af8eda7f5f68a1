//! Sparse × sparse.

use gustav_core::{Csr, CsrView, Error, Index, PlusTimes, Problem, Result, Scalar, Semiring};
use gustav_cpu::Options;
use gustav_cpu::spgemm::multiply;
use gustav_plan::Chooser;

use super::{Settings, setters};
use crate::plan::tune_spgemm as tune;

/// C = A·B with the best device and algorithm; rows of C are sorted.
///
/// # Errors
/// [`gustav_core::Error::Shape`] when B has not as many rows as A has columns,
/// [`gustav_core::Error::Overflow`] when C has more nonzeros than `O` can count,
/// [`gustav_core::Error::OutOfMemory`] for C.
pub fn spgemm<'a, T: Scalar, I: Index, O: Index>(
    a: impl Into<CsrView<'a, T, I, O>>,
    b: impl Into<CsrView<'a, T, I, O>>,
) -> Result<Csr<T, I, O>> {
    Spgemm::new(a, b).run()
}

/// A sparse × sparse product with options: C = α·op(A)·B.
///
/// ```
/// use gustav::{Csr, OrAnd, Spgemm};
///
/// // What can be reached in two steps on the cycle 0 → 1 → 2 → 0.
/// let a = Csr::<i32>::new(3, 3, vec![0, 1, 2, 3], vec![1, 2, 0], vec![7, 7, 7])?;
/// let c = Spgemm::new(&a, &a).semiring(OrAnd).run()?;
/// assert_eq!((c.indices(), c.values()), ([2, 0, 1].as_slice(), [1, 1, 1].as_slice()));
/// # Ok::<(), gustav::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the product is computed by run"]
pub struct Spgemm<'a, T: Scalar, I: Index, O: Index, S = PlusTimes> {
    a: CsrView<'a, T, I, O>,
    b: CsrView<'a, T, I, O>,
    sorted: bool,
    drop_zeros: bool,
    settings: Settings<T, S>,
}

impl<'a, T: Scalar, I: Index, O: Index> Spgemm<'a, T, I, O> {
    /// The product A·B.
    pub fn new(a: impl Into<CsrView<'a, T, I, O>>, b: impl Into<CsrView<'a, T, I, O>>) -> Self {
        Spgemm {
            a: a.into(),
            b: b.into(),
            sorted: true,
            drop_zeros: false,
            settings: Settings::new(PlusTimes),
        }
    }
}

impl<'a, T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>> Spgemm<'a, T, I, O, S> {
    setters!();

    /// Multiplies over `semiring`, with α at its one.
    pub fn semiring<R: Semiring<T::Accum>>(self, semiring: R) -> Spgemm<'a, T, I, O, R> {
        let Spgemm { a, b, sorted, drop_zeros, settings } = self;
        Spgemm { a, b, sorted, drop_zeros, settings: settings.over(semiring) }
    }

    /// Whether the columns of every row of C come out in order (they do unless told not to,
    /// which can be faster).
    pub fn sorted(mut self, sorted: bool) -> Self {
        self.sorted = sorted;
        self
    }

    /// Whether entries that come out as exactly zero are left out of C (they stay unless told
    /// not to).
    pub fn drop_zeros(mut self, drop_zeros: bool) -> Self {
        self.drop_zeros = drop_zeros;
        self
    }

    /// C = α·op(A)·B.
    ///
    /// # Errors
    /// As [`spgemm`], and [`gustav_core::Error::Unsupported`] for a named algorithm.
    pub fn run(self) -> Result<Csr<T, I, O>> {
        let Spgemm { a, b, sorted, drop_zeros, settings } = self;
        let problem = settings.refine(Problem::spgemm(&a, &b)).sorted(sorted);
        let device = settings.device()?;
        if device.is_cuda() {
            if drop_zeros {
                return Err(Error::Unsupported {
                    problem: problem.to_string(),
                    backend: device.name().into(),
                    reason: "entries of zero stay there".into(),
                    nearest: "cpu, or drop_zeros(false)".into(),
                });
            }
            let mut plan = device.plan_spgemm(a, b, &problem)?;
            return plan.execute_with(settings.semiring, a, settings.alpha, b);
        }
        device.offers(&problem)?;
        let options = match device.chooser() {
            Chooser::Autotune => tune(&device, a, b, &problem)?.0,
            _ => device.options().clone(),
        };
        let options = Options { drop_zeros, ..options };
        multiply(settings.semiring, a, settings.alpha, b, &problem, &options)
    }
}
