//! The plan of C = α·op(A)·B with all three sparse.

use gustav_core::{
    Csr, CsrView, Error, Index, PlusTimes, Problem, Result, Scalar, Semiring, SemiringKind,
};
use gustav_cpu::spgemm::masked;
use gustav_plan::heuristics::masked::reason_for_places;
use gustav_plan::{Algorithm, Choice, Chooser};

use super::{accessors, autotuned, explained, median_seconds, options};
use crate::cuda::{HostSpgemm, intermediate_products};
use crate::explain::{Config, Told, facts};
use crate::{Device, Explanation};

/// Two sparse matrices that [`Device::plan_spgemm`] plans for: in host memory, or in a GPU's.
pub trait PlanSpgemm: Sized {
    /// The plan for matrices that are where these are.
    type Plan;

    /// See [`Device::plan_spgemm`].
    ///
    /// # Errors
    /// As there.
    fn plan_spgemm(self, b: Self, device: &Device, problem: &Problem) -> Result<Self::Plan>;

    /// See [`Device::plan_spgemm_masked`].
    ///
    /// # Errors
    /// As there.
    fn plan_spgemm_masked(
        self,
        b: Self,
        mask: Self,
        device: &Device,
        problem: &Problem,
    ) -> Result<Self::Plan>;
}

/// A plan for sparse × sparse products with one pattern of A and one of B in host memory, made by
/// [`Device::plan_spgemm`]. On a GPU every execution moves the operands there and the product back.
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: Inner<T, I, O>,
    explanation: Explanation,
}

enum Inner<T: Scalar, I: Index, O: Index> {
    Cpu(Box<gustav_cpu::SpgemmPlan<T, I, O>>),
    Cuda(Box<HostSpgemm<T, I, O>>),
    Masked(Box<Masked<T, I, O>>),
}

/// A product under a mask on the CPU, which needs no plan.
struct Masked<T: Scalar, I: Index, O: Index> {
    problem: Problem,
    options: gustav_cpu::Options,
    mask: Csr<T, I, O>,
    products: u64,
}

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    accessors!();

    /// Intermediate products: the number of multiplications.
    pub fn products(&self) -> u64 {
        match &self.inner {
            Inner::Cpu(plan) => plan.products(),
            Inner::Cuda(plan) => plan.products(),
            Inner::Masked(on) => on.products,
        }
    }

    /// C = α·op(A)·B.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute_with`].
    pub fn execute<'a>(
        &mut self,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<CsrView<'a, T, I, O>>,
    ) -> Result<Csr<T, I, O>> {
        self.execute_with(PlusTimes, a, alpha, b)
    }

    /// The same over another semiring; on a GPU it is that of the plan's problem, for which its
    /// kernels were compiled.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when A or B are not the matrices of the plan,
    /// [`gustav_core::Error::Overflow`] when C has more nonzeros than `O` can count,
    /// [`gustav_core::Error::OutOfMemory`] for C, and on a GPU [`gustav_core::Error::Argument`] for
    /// another semiring and what its driver refuses.
    pub fn execute_with<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<CsrView<'a, T, I, O>>,
    ) -> Result<Csr<T, I, O>> {
        let (a, b) = (a.into(), b.into());
        match &mut self.inner {
            Inner::Cpu(plan) => plan.execute(semiring, a, alpha, b),
            Inner::Cuda(plan) => plan.execute(S::KIND, &a, alpha, &b),
            Inner::Masked(on) => {
                let mask = on.mask.view();
                masked::multiply(semiring, a, alpha, b, mask, &on.problem, &on.options)
            }
        }
    }

    /// C = α·op(A)·B ⊕ β·D over the semiring, with a sparse `d` of C's shape: C holds the union of
    /// both patterns, rows sorted. β equal to the semiring's zero leaves `d` unread.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute_with`], [`gustav_core::Error::Shape`] when `d` has another shape, and
    /// [`gustav_core::Error::Unsupported`] under a mask and for products in tiles.
    pub fn execute_add<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<CsrView<'a, T, I, O>>,
        beta: T::Accum,
        d: impl Into<CsrView<'a, T, I, O>>,
    ) -> Result<Csr<T, I, O>> {
        let (a, b, d) = (a.into(), b.into(), d.into());
        match &mut self.inner {
            Inner::Cpu(plan) => plan.execute_add(semiring, a, alpha, b, beta, d),
            Inner::Cuda(plan) => plan.execute_add(S::KIND, &a, alpha, &b, beta, &d),
            Inner::Masked(on) => Err(no_sum(&on.problem)),
        }
    }
}

/// A refusal to add to a product under a mask.
pub(crate) fn no_sum(problem: &Problem) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: "a sum with D under a mask".into(),
        reason: "it computes the places of the mask alone".into(),
        nearest: "the product without a mask".into(),
    }
}

impl Device {
    /// Plans sparse × sparse products with the patterns of `a` and `b`: matrices in host memory
    /// ([`Csr`], [`CsrView`]), or in this device's memory
    /// ([`DeviceCsr`](crate::cuda::DeviceCsr)).
    ///
    /// # Errors
    /// As [`Device::plan_spmm`], and [`gustav_core::Error::Unsupported`] when `masked` is named.
    pub fn plan_spgemm<M: PlanSpgemm>(&self, a: M, b: M, problem: &Problem) -> Result<M::Plan> {
        self.offers_all_of_c(problem)?;
        a.plan_spgemm(b, self, problem)
    }

    /// Plans products under a mask: of C = α·op(A)·B the entries at places where `mask`, of C's
    /// shape, has one, whatever its value. Places that no product meets have no entry in C. Rows come
    /// out sorted.
    ///
    /// # Errors
    /// As [`Device::plan_spmm`], [`gustav_core::Error::Shape`] when the mask has another shape, and
    /// [`gustav_core::Error::Unsupported`] on the CPU when another algorithm than `masked` is named; on a
    /// GPU all of C is then computed by that, and the mask's places are found there.
    pub fn plan_spgemm_masked<M: PlanSpgemm>(
        &self,
        a: M,
        b: M,
        mask: M,
        problem: &Problem,
    ) -> Result<M::Plan> {
        a.plan_spgemm_masked(b, mask, self, problem)
    }

    /// The chooser does not name the algorithm that needs a mask.
    pub(crate) fn offers_all_of_c(&self, problem: &Problem) -> Result<()> {
        if self.chooser() != Chooser::Named(Algorithm::Masked) {
            return Ok(());
        }
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "masked without a mask".into(),
            reason: "it computes the places of one".into(),
            nearest: "a mask (gustav spgemm --mask FILE, Device::plan_spgemm_masked), or auto"
                .into(),
        })
    }

    /// The chooser leaves products under a mask to the CPU's algorithm for them.
    pub(crate) fn offers_masks(&self, problem: &Problem) -> Result<()> {
        let chooser = self.chooser();
        if matches!(chooser, Chooser::Auto | Chooser::Named(Algorithm::Masked)) {
            return Ok(());
        }
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: format!("{chooser} under a mask on the CPU"),
            reason: "one algorithm computes the places of a mask alone".into(),
            nearest: format!("auto or {}", Algorithm::Masked),
        })
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpgemm for &Csr<T, I, O> {
    type Plan = SpgemmPlan<T, I, O>;

    fn plan_spgemm(self, b: Self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        self.view().plan_spgemm(b.view(), device, problem)
    }

    fn plan_spgemm_masked(
        self,
        b: Self,
        mask: Self,
        device: &Device,
        problem: &Problem,
    ) -> Result<Self::Plan> {
        self.view().plan_spgemm_masked(b.view(), mask.view(), device, problem)
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpgemm for CsrView<'_, T, I, O> {
    type Plan = SpgemmPlan<T, I, O>;

    fn plan_spgemm(self, b: Self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        device.offers(problem)?;
        if device.gpu().is_some() {
            let plan = HostSpgemm::new(device, &self, &b, problem)?;
            let explanation = Explanation { facts: facts(device, &self), ..plan.explain().clone() };
            return Ok(SpgemmPlan { inner: Inner::Cuda(Box::new(plan)), explanation });
        }
        // A plan's products are of the operands' type.
        problem.without_output("a plan on the CPU")?;
        let (options, tuned) = options(device, || tune(device, self, b, problem))?;
        let inner = gustav_cpu::SpgemmPlan::new(self, b, problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(device, &self, problem, inner.choice(), tuned, bytes);
        Ok(SpgemmPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }

    fn plan_spgemm_masked(
        self,
        b: Self,
        mask: Self,
        device: &Device,
        problem: &Problem,
    ) -> Result<Self::Plan> {
        let facts = facts(device, &self);
        if device.gpu().is_some() {
            let plan = HostSpgemm::masked(device, &self, &b, &mask, problem)?;
            let explanation = Explanation { facts, ..plan.explain().clone() };
            return Ok(SpgemmPlan { inner: Inner::Cuda(Box::new(plan)), explanation });
        }
        device.offers_masks(problem)?;
        let options = device.options().clone();
        masked::check(&self, &b, &mask, problem)?;
        let choice = masked_choice(mask.nnz());
        let products = intermediate_products(&self, &b, problem.transpose_a);
        let (mask, problem) = (mask.to_owned()?, problem.clone());
        let bytes = mask.nnz() * (size_of::<T>() + size_of::<I>());
        let explanation = Explanation::new(&problem, device, facts, choice, bytes);
        let inner = Inner::Masked(Box::new(Masked { problem, options, mask, products }));
        Ok(SpgemmPlan { inner, explanation })
    }
}

/// The one way to multiply on a CPU under a mask of so many places.
fn masked_choice(places: usize) -> Choice<Config> {
    let reason = reason_for_places(places);
    Choice { algorithm: Algorithm::Masked, config: Config::Masked, reason }
}

/// Times every algorithm on the operands themselves, over plus-times.
pub(crate) fn tune<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    b: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Told)> {
    let problem = problem.clone().semiring(SemiringKind::PlusTimes).output(problem.dtype);
    autotuned(problem.operation, device.options(), |options| {
        let mut plan = gustav_cpu::SpgemmPlan::new(a, b, &problem, options)?;
        median_seconds(|| plan.execute(PlusTimes, a, T::one().to_accum(), b).map(drop))
    })
}
