//! Sparse × sparse.

use gustav_core::{Csr, CsrView, Error, Index, PlusTimes, Problem, Result, Scalar, Semiring};
use gustav_cpu::spgemm::{masked, multiply, multiply_as};
use gustav_cpu::{Options, SpgemmPlan};
use gustav_plan::Chooser;

use super::{Settings, setters};
use crate::Device;
use crate::cuda::spgemm_as;
use crate::plan::{no_sum, tune_spgemm as tune};

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

/// A sparse × sparse product with options: C = α·op(A)·B ⊕ β·D, all of it or under a mask.
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
    mask: Option<CsrView<'a, T, I, O>>,
    added: Option<(T::Accum, CsrView<'a, T, I, O>)>,
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
            mask: None,
            added: None,
            settings: Settings::new(PlusTimes),
        }
    }
}

impl<'a, T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>> Spgemm<'a, T, I, O, S> {
    setters!();

    /// Multiplies over `semiring`, with α at its one.
    pub fn semiring<R: Semiring<T::Accum>>(self, semiring: R) -> Spgemm<'a, T, I, O, R> {
        let Spgemm { a, b, sorted, drop_zeros, mask, added, settings } = self;
        Spgemm { a, b, sorted, drop_zeros, mask, added, settings: settings.over(semiring) }
    }

    /// Computes the entries at places where `mask`, of C's shape, has one, whatever its value, and no
    /// other; places that no product meets have no entry in C.
    pub fn mask(mut self, mask: impl Into<CsrView<'a, T, I, O>>) -> Self {
        self.mask = Some(mask.into());
        self
    }

    /// Adds β·D with a sparse `d` of C's shape; C then has the union of both patterns, rows sorted.
    /// β equal to the semiring's zero leaves `d` unread.
    pub fn plus(mut self, beta: T::Accum, d: impl Into<CsrView<'a, T, I, O>>) -> Self {
        self.added = Some((beta, d.into()));
        self
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

    /// C = α·op(A)·B ⊕ β·D.
    ///
    /// # Errors
    /// As [`spgemm`], [`gustav_core::Error::Shape`] when the mask or D is not of C's shape, and
    /// [`gustav_core::Error::Unsupported`] for a named algorithm and for a mask together with D.
    pub fn run(self) -> Result<Csr<T, I, O>> {
        let Spgemm { a, b, sorted, drop_zeros, mask, added, settings } = self;
        let problem = settings.refine(Problem::spgemm(&a, &b)).sorted(sorted);
        let device = settings.device()?;
        if added.is_some() && mask.is_some() {
            return Err(no_sum(&problem));
        }
        keeps_zeros(&device, drop_zeros, &problem)?;
        let (semiring, alpha) = (settings.semiring, settings.alpha);
        if device.is_cuda() {
            let mut plan = match mask {
                None => device.plan_spgemm(a, b, &problem)?,
                Some(mask) => device.plan_spgemm_masked(a, b, mask, &problem)?,
            };
            return match added {
                None => plan.execute_with(semiring, a, alpha, b),
                Some((beta, d)) => plan.execute_add(semiring, a, alpha, b, beta, d),
            };
        }
        if let Some(mask) = mask {
            device.offers_masks(&problem)?;
            let options = Options { drop_zeros, ..device.options().clone() };
            return masked::multiply(semiring, a, alpha, b, mask, &problem, &options);
        }
        device.offers_all_of_c(&problem)?;
        let options = Options { drop_zeros, ..options(&device, a, b, &problem)? };
        match added {
            None => multiply(semiring, a, alpha, b, &problem, &options),
            Some((beta, d)) => SpgemmPlan::new(a, b, &problem, &options)?
                .execute_add(semiring, a, alpha, b, beta, d),
        }
    }

    /// C = α·op(A)·B with values of another type than those of A and B: for f16 and bf16 that of
    /// their sums, f32.
    ///
    /// ```
    /// use gustav::{Csr, Spgemm, f16};
    ///
    /// let third = f16::from_f32(1.0 / 3.0);
    /// let a = Csr::<f16>::new(1, 1, vec![0, 1], vec![0], vec![third])?;
    /// let c = Spgemm::new(&a, &a).run_as::<f32>()?;
    /// assert_eq!(c.values(), [third.to_f32() * third.to_f32()]);
    /// # Ok::<(), gustav::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Spgemm::run`], and [`gustav_core::Error::Unsupported`] for other types, under a mask and
    /// with D.
    pub fn run_as<U: Scalar<Accum = T::Accum>>(self) -> Result<Csr<U, I, O>> {
        let Spgemm { a, b, sorted, drop_zeros, mask, added, settings } = self;
        let problem = settings.refine(Problem::spgemm(&a, &b)).sorted(sorted).output(U::DTYPE);
        if mask.is_some() || added.is_some() {
            return Err(Error::Unsupported {
                problem: problem.to_string(),
                backend: "a product under a mask or with D".into(),
                reason: "C is in the type of A there".into(),
                nearest: "run".into(),
            });
        }
        let device = settings.device()?;
        keeps_zeros(&device, drop_zeros, &problem)?;
        let (semiring, alpha) = (settings.semiring, settings.alpha);
        if device.is_cuda() {
            device.offers(&problem)?;
            return spgemm_as(&device, &a, alpha, &b, &problem);
        }
        let options = Options { drop_zeros, ..options(&device, a, b, &problem)? };
        multiply_as(semiring, a, alpha, b, &problem, &options)
    }
}

/// Entries of zero are dropped on the CPU alone.
fn keeps_zeros(device: &Device, drop_zeros: bool, problem: &Problem) -> Result<()> {
    if !drop_zeros || !device.is_cuda() {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: device.name().into(),
        reason: "entries of zero stay there".into(),
        nearest: "cpu, or drop_zeros(false)".into(),
    })
}

/// The options of the CPU for one call.
fn options<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    b: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<Options> {
    device.offers(problem)?;
    match device.chooser() {
        Chooser::Autotune => Ok(tune(device, a, b, problem)?.0),
        _ => Ok(device.options().clone()),
    }
}
