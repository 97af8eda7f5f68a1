//! The plan of C = scale(α, op(A)·B) with all three sparse.

use gustav_core::{
    Csr, Error, Index, PatternId, PatternRef, PatternView, Plans, Problem, Result, SpgemmRequest,
    Values,
};
use gustav_cpu::CpuScalar;
use gustav_cpu::spgemm::SpgemmCall;
use gustav_plan::{Algorithm, Choice, Chooser};

use super::{accessors, autotuned, explained, median_seconds, options};
use crate::cuda::{DeviceBuffer, DeviceCsr, DevicePattern, SpgemmPlan as Resident, spgemm};
use crate::explain::{Config, Report, facts};
use crate::{Device, Explanation};

/// A plan for sparse × sparse products with one pattern of A and one of B in host memory, made by
/// `a.pattern().spgemm(b.pattern()).plan(&device)`. On a GPU every execution moves the values there
/// and the product back; patterns in a GPU's memory give a
/// [`cuda::SpgemmPlan`](crate::cuda::SpgemmPlan).
pub struct SpgemmPlan<'a, T: CpuScalar, I: Index = u32, O: Index = u32> {
    inner: Inner<'a, T, I, O>,
    explanation: Explanation,
    products: u64,
}

enum Inner<'a, T: CpuScalar, I: Index, O: Index> {
    Cpu(Box<gustav_cpu::SpgemmPlan<'a, T, I, O>>),
    Cuda(Box<Staged<T, I, O>>),
    /// In tiles, where the operands and the product do not fit on the GPU together.
    Tiled(Box<Tiled<'a, I, O>>),
}

/// A plan on a GPU for patterns of host memory.
struct Staged<T: CpuScalar, I: Index, O: Index> {
    device: gustav_cuda::Device,
    plan: Resident<T, I, O>,
    ids: [PatternId; 2],
    nnz: [usize; 2],
}

struct Tiled<'a, I: Index, O: Index> {
    device: Device,
    problem: Problem,
    a: PatternRef<'a, I, O>,
    b: PatternRef<'a, I, O>,
}

impl<T: CpuScalar, I: Index, O: Index> SpgemmPlan<'_, T, I, O> {
    accessors!();

    /// Intermediate products: the multiplications that the patterns of A and B call for.
    pub fn products(&self) -> u64 {
        self.products
    }

    /// C = scale(α, op(A)·B) ⊕ scale(β, D) over the plan's semiring, as `call` says: rows sorted
    /// where the plan's problem or D asks for it. `a` and `b` are values: matrices of the plan's
    /// patterns, or slices in the order of their nonzeros.
    ///
    /// # Errors
    /// [`Error::Pattern`] for values of other patterns, [`Error::Length`] for another number of
    /// them, [`Error::Overflow`] when the entries of C outnumber the offset type, [`Error::Shape`]
    /// when D has another shape, [`Error::Unsupported`] for D under a mask and in tiles,
    /// [`Error::OutOfMemory`], and on a GPU what its driver refuses.
    pub fn execute<'v>(
        &mut self,
        a: impl Into<Values<'v, T>>,
        b: impl Into<Values<'v, T>>,
        call: SpgemmCall<'_, T, T, I, O>,
    ) -> Result<Csr<T, I, O>> {
        let (a, b) = (a.into(), b.into());
        match &mut self.inner {
            Inner::Cpu(plan) => plan.execute(a, b, call),
            Inner::Cuda(staged) => staged.execute([a, b], call),
            Inner::Tiled(tiled) => tiled.execute(a, b, call),
        }
    }
}

impl<T: CpuScalar, I: Index, O: Index> Staged<T, I, O> {
    fn execute(
        &mut self,
        values: [Values<'_, T>; 2],
        call: SpgemmCall<'_, T, T, I, O>,
    ) -> Result<Csr<T, I, O>> {
        let [a, b] = values;
        let a = a.fit("A", self.ids[0], self.nnz[0])?;
        let b = b.fit("B", self.ids[1], self.nnz[1])?;
        let SpgemmCall { alpha, add, reuse } = call;
        if reuse.is_some() {
            return Err(Error::Unsupported {
                problem: self.plan.explain().problem.to_string(),
                backend: "a matrix in host memory to reuse".into(),
                reason: "the product is moved from the GPU to new memory".into(),
                nearest: "a call without it, or patterns in the GPU's memory".into(),
            });
        }
        let on = |values: &[T]| DeviceBuffer::from_slice(&self.device, values, "values");
        let (a, b) = (on(a)?, on(b)?);
        let d = add.map(|(beta, d)| Ok::<_, Error>((beta, DeviceCsr::upload(&self.device, &d)?)));
        let d = d.transpose()?;
        let mut call = gustav_cuda::SpgemmCall::new();
        if let Some(alpha) = alpha {
            call = call.alpha(alpha);
        }
        if let Some((beta, d)) = &d {
            call = call.add(*beta, d);
        }
        self.plan.execute(&a, &b, call)?.download()
    }
}

impl<I: Index, O: Index> Tiled<'_, I, O> {
    fn execute<T: CpuScalar>(
        &self,
        a: Values<'_, T>,
        b: Values<'_, T>,
        call: SpgemmCall<'_, T, T, I, O>,
    ) -> Result<Csr<T, I, O>> {
        if call.add.is_some() || call.reuse.is_some() {
            return Err(Error::Unsupported {
                problem: self.problem.to_string(),
                backend: "a sum with D, or a matrix to reuse, in tiles".into(),
                reason: "the product does not fit on the GPU at once".into(),
                nearest: "the device cpu".into(),
            });
        }
        let fit = |name, pattern: PatternView<'_, I, O>, values: Values<'_, T>| {
            values.fit(name, pattern.id(), pattern.nnz()).map(|_| ())
        };
        fit("A", self.a.view(), a)?;
        fit("B", self.b.view(), b)?;
        let (a, b) =
            (self.a.view().with_values(a.as_slice())?, self.b.view().with_values(b.as_slice())?);
        let alpha = call.alpha.unwrap_or(self.problem.semiring.one());
        self.device.spgemm_tiled(a, alpha, b, &self.problem, Default::default())
    }
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<SpgemmRequest<PatternRef<'a, I, O>>, T>
    for Device
{
    type Plan = SpgemmPlan<'a, T, I, O>;

    fn plan(
        &self,
        request: SpgemmRequest<PatternRef<'a, I, O>>,
    ) -> Result<SpgemmPlan<'a, T, I, O>> {
        let SpgemmRequest { a, b, mask, problem } = request;
        let problem = problem.typed::<T, I, O>();
        self.offers(&problem)?;
        if mask.is_none() {
            self.offers_all_of_c(&problem)?;
        }
        let facts = facts(self, &a.view());
        let products = intermediate_products(&a.view(), &b.view(), problem.transpose_a);
        if self.gpu().is_some() {
            let (inner, explanation) = on_gpu(self, a, b, mask, &problem)?;
            let explanation = Explanation { facts, ..explanation };
            return Ok(SpgemmPlan { inner, explanation, products });
        }
        let (plan, report) = match mask {
            Some(mask) => {
                self.offers_masks(&problem)?;
                let options = self.options();
                (gustav_cpu::SpgemmPlan::masked(a, b, mask, &problem, options)?, None)
            }
            None => {
                // A plan's products are of the operands' type.
                problem.without_output("a plan on the CPU")?;
                let tune = || tune::<T, I, O>(self, a.view(), b.view(), &problem);
                let (options, report) = options(self, tune)?;
                (gustav_cpu::SpgemmPlan::new(a, b, &problem, &options)?, report)
            }
        };
        let bytes = plan.workspace_bytes();
        let explanation = explained(self, facts, &problem, plan.choice(), report, bytes);
        Ok(SpgemmPlan { inner: Inner::Cpu(Box::new(plan)), explanation, products })
    }
}

/// The plan on a GPU: of patterns that are moved there, or, where there is no memory for them and
/// no other algorithm was named, in tiles.
fn on_gpu<'a, T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    a: PatternRef<'a, I, O>,
    b: PatternRef<'a, I, O>,
    mask: Option<PatternRef<'a, I, O>>,
    problem: &Problem,
) -> Result<(Inner<'a, T, I, O>, Explanation)> {
    let tiled = |reason: &str| {
        spgemm::tiled::supports(problem)?;
        let (algorithm, config) = (Algorithm::Tiled, Config::CudaTiled);
        let choice = Choice { algorithm, config, reason: reason.into() };
        let explanation = Explanation::new(problem, device, None, choice, 0);
        let (device, problem) = (device.clone(), problem.clone());
        let (a, b) = (a.clone(), b.clone());
        Ok((Inner::Tiled(Box::new(Tiled { device, problem, a, b })), explanation))
    };
    if mask.is_none() && device.chooser() == Chooser::Named(Algorithm::Tiled) {
        return tiled("named by the caller");
    }
    let resident = || {
        let cuda = device.cuda_device()?;
        let on = |p: &PatternRef<'_, I, O>| DevicePattern::upload(cuda, p.view());
        let mask = mask.as_ref().map(on).transpose()?;
        let request = SpgemmRequest { a: on(&a)?, b: on(&b)?, mask, problem: problem.clone() };
        let plan: Resident<T, I, O> = device.plan(request)?;
        let ids = [a.view().id(), b.view().id()];
        let nnz = [a.view().nnz(), b.view().nnz()];
        Ok(Staged { device: cuda.clone(), plan, ids, nnz })
    };
    match resident() {
        Err(Error::OutOfMemory { what, .. })
            if mask.is_none() && device.chooser() == Chooser::Auto =>
        {
            tiled(&format!("there is no memory for {what} beside the rest"))
        }
        Err(e) => Err(e),
        Ok(staged) => {
            let explanation = staged.plan.explain().clone();
            Ok((Inner::Cuda(Box::new(staged)), explanation))
        }
    }
}

/// Intermediate products of op(A)·B: its multiplications. Rows that B lacks count as empty.
pub fn intermediate_products<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    b: &PatternView<'_, I, O>,
    transpose_a: bool,
) -> u64 {
    let length = |row: usize| if row < b.nrows() { b.row_len(row) as u64 } else { 0 };
    if transpose_a {
        (0..a.nrows()).map(|row| a.row_len(row) as u64 * length(row)).sum()
    } else {
        a.indices().iter().map(|k| length(k.to_usize())).sum()
    }
}

/// Times every algorithm on the patterns themselves.
pub(crate) fn tune<T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    a: PatternView<'_, I, O>,
    b: PatternView<'_, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Report)> {
    let problem = problem.clone().output(problem.dtype);
    let (of_a, of_b) = (vec![T::one(); a.nnz()], vec![T::one(); b.nnz()]);
    autotuned(problem.operation, device.options(), &mut |options| {
        median_seconds(&mut || {
            let mut plan = gustav_cpu::SpgemmPlan::<T, I, O>::new(a, b, &problem, options)?;
            plan.execute(&of_a, &of_b, SpgemmCall::new()).map(drop)
        })
    })
}

/// A refusal to add to a product under a mask.
pub(crate) fn no_sum(problem: &Problem) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: "a sum with D under a mask".into(),
        reason: "only the entries of the mask are computed".into(),
        nearest: "the product without a mask".into(),
    }
}

impl Device {
    /// The chooser does not name the algorithm that needs a mask.
    pub(crate) fn offers_all_of_c(&self, problem: &Problem) -> Result<()> {
        if self.chooser() != Chooser::Named(Algorithm::Masked) {
            return Ok(());
        }
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "masked without a mask".into(),
            reason: "it computes the entries of one".into(),
            nearest: "a mask (gustav spgemm --mask FILE, SpgemmRequest::mask), or auto".into(),
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
            reason: "one algorithm computes the entries of a mask alone".into(),
            nearest: format!("auto or {}", Algorithm::Masked),
        })
    }
}
