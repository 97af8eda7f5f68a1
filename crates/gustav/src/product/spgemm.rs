//! Sparse × sparse.

use gustav_core::{Csr, CsrView, Error, Index, PatternRef, Problem, Result, Scalar, SpgemmRequest};
use gustav_cpu::spgemm::{SpgemmCall, multiply};
use gustav_cpu::{CpuScalar, Options, SpgemmPlan};
use gustav_plan::Chooser;

use super::setters;
use crate::Device;
use crate::cuda::{DeviceCsr, spgemm as on_gpu};
use crate::plan::{no_sum, tune_spgemm as tune};

/// C = A·B with the best algorithm of the CPU; rows of C are sorted.
///
/// # Errors
/// [`gustav_core::Error::Shape`] when B has not as many rows as A has columns,
/// [`gustav_core::Error::Overflow`] when C has more nonzeros than `O` can count,
/// [`gustav_core::Error::OutOfMemory`] for C.
pub fn spgemm<'a, T: CpuScalar, I: Index, O: Index>(
    a: impl Into<CsrView<'a, T, I, O>>,
    b: impl Into<CsrView<'a, T, I, O>>,
) -> Result<Csr<T, I, O>> {
    Spgemm::new(a, b).run()
}

/// A sparse × sparse product with options: C = scale(α, op(A)·B) ⊕ scale(β, D), all of it or under
/// a mask.
///
/// ```
/// use gustav::{Csr, Semiring, Spgemm};
///
/// // What can be reached in two steps on the cycle 0 → 1 → 2 → 0.
/// let a = Csr::<i32>::new(3, 3, vec![0, 1, 2, 3], vec![1, 2, 0], vec![7, 7, 7])?;
/// let c = Spgemm::new(&a, &a).semiring(Semiring::OrAnd).run()?;
/// assert_eq!((c.indices(), c.values().as_slice()), (&[2, 0, 1][..], &[1, 1, 1][..]));
/// # Ok::<(), gustav::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the product is computed by run"]
pub struct Spgemm<'a, T: CpuScalar, I: Index, O: Index> {
    a: CsrView<'a, T, I, O>,
    b: CsrView<'a, T, I, O>,
    drop_zeros: bool,
    mask: Option<CsrView<'a, T, I, O>>,
    added: Option<(T::Accum, CsrView<'a, T, I, O>)>,
    problem: Problem,
    device: Device,
    threads: Option<usize>,
    alpha: Option<T::Accum>,
}

impl<'a, T: CpuScalar, I: Index, O: Index> Spgemm<'a, T, I, O> {
    /// The product A·B.
    pub fn new(a: impl Into<CsrView<'a, T, I, O>>, b: impl Into<CsrView<'a, T, I, O>>) -> Self {
        let (a, b) = (a.into(), b.into());
        let problem = Problem::spgemm(&a, &b);
        let (device, threads) = (Device::cpu(), None);
        let (mask, added, alpha) = (None, None, None);
        Spgemm { a, b, drop_zeros: false, mask, added, problem, device, threads, alpha }
    }

    setters!(T::Accum);

    /// Computes the entries that `mask`, of C's shape, has, whatever their values, and no others;
    /// entries of the mask that no product meets have none in C.
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

    /// Whether the columns of every row of C are in order; true by default. False can be faster.
    pub fn sorted(mut self, sorted: bool) -> Self {
        self.problem.sorted = sorted;
        self
    }

    /// Whether entries that are exactly zero are left out of C; false by default.
    pub fn drop_zeros(mut self, drop_zeros: bool) -> Self {
        self.drop_zeros = drop_zeros;
        self
    }

    /// C = scale(α, op(A)·B) ⊕ scale(β, D).
    ///
    /// # Errors
    /// As [`spgemm`], [`gustav_core::Error::Shape`] when the mask or D is not of C's shape, and
    /// [`gustav_core::Error::Unsupported`] for a named algorithm and for a mask together with D.
    pub fn run(self) -> Result<Csr<T, I, O>> {
        let device = self.planner()?;
        let options = self.options(&device)?;
        let Spgemm { a, b, mask, added, problem, alpha, .. } = self;
        if added.is_some() && mask.is_some() {
            return Err(no_sum(&problem));
        }
        let call = SpgemmCall { alpha, add: added, reuse: None };
        if device.is_cuda() {
            let request = SpgemmRequest {
                a: PatternRef::from(a.pattern()),
                b: PatternRef::from(b.pattern()),
                mask: mask.map(|mask| mask.pattern().into()),
                problem,
            };
            return request.plan::<T, _>(&device)?.execute(a, b, call);
        }
        match mask {
            Some(mask) => {
                device.offers_masks(&problem)?;
                let (a_pattern, b_pattern) = (a.pattern(), b.pattern());
                SpgemmPlan::masked(a_pattern, b_pattern, mask.pattern(), &problem, &options)?
                    .execute(a, b, call)
            }
            None => multiply(a, b, &problem, &options, call),
        }
    }

    /// C = scale(α, op(A)·B) with values of another type than those of A and B: for f16 and bf16
    /// that of their sums, f32.
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
    /// As [`Spgemm::run`], and [`gustav_core::Error::Unsupported`] for other types, under a mask
    /// and with D.
    pub fn run_as<U: Scalar<Accum = T::Accum>>(mut self) -> Result<Csr<U, I, O>> {
        self.problem.output = U::DTYPE;
        let device = self.planner()?;
        let options = self.options(&device)?;
        let Spgemm { a, b, mask, added, problem, alpha, .. } = self;
        if mask.is_some() || added.is_some() {
            return Err(Error::Unsupported {
                problem: problem.to_string(),
                backend: "a product under a mask or with D".into(),
                reason: "C is in the type of A there".into(),
                nearest: "run".into(),
            });
        }
        if device.is_cuda() {
            let cuda = device.cuda_device()?;
            let (a, b) = (DeviceCsr::upload(cuda, &a)?, DeviceCsr::upload(cuda, &b)?);
            let options =
                on_gpu::Options { chooser: device.chooser(), ..on_gpu::Options::default() };
            let (of_a, of_b) = (a.pattern(), b.pattern());
            let mut plan =
                on_gpu::SpgemmPlan::<T, I, O, U>::with_output(of_a, of_b, &problem, &options)?;
            let call = gustav_cuda::SpgemmCall::new();
            let call = match alpha {
                Some(alpha) => call.alpha(alpha),
                None => call,
            };
            return plan.execute(&a, &b, call)?.download();
        }
        multiply(a, b, &problem, &options, SpgemmCall { alpha, add: None, reuse: None })
    }

    /// The options of the CPU for this product, if `device` offers it.
    fn options(&self, device: &Device) -> Result<Options> {
        let problem = &self.problem;
        if self.drop_zeros && device.is_cuda() {
            return Err(Error::Unsupported {
                problem: problem.to_string(),
                backend: device.name().into(),
                reason: "entries of zero stay there".into(),
                nearest: "cpu, or drop_zeros(false)".into(),
            });
        }
        device.offers(problem)?;
        if self.mask.is_none() {
            device.offers_all_of_c(problem)?;
        }
        let options = match device.chooser() {
            Chooser::Autotune if !device.is_cuda() => {
                tune::<T, I, O>(device, self.a.pattern(), self.b.pattern(), problem)?.0
            }
            _ => device.options().clone(),
        };
        Ok(Options { drop_zeros: self.drop_zeros, ..options })
    }
}
