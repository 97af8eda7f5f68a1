//! `gustav spgemm --mpi`.

use gustav::cuda::{CudaDevice, DeviceBuffer};
use gustav::io::WriteOptions;
use gustav::{Csr, Index, Problem};
use gustav_mpi::{
    DistCsr, DistDeviceCsr, DistPattern, DistScalar, Explanation, GpuSpgemmPlan, Partition,
    SpgemmPlan,
};
use gustav_testkit::oracle;

use super::engine::{Place, not_uploaded};
use super::job::{self, Job, Step};
use super::parts::{gather_csr, scatter};
use super::report::{Finished, sample};
use crate::failure::{Failure, Result};
use crate::measure;
use crate::output::{self, Content};
use crate::product::Options;
use crate::source::Source;
use crate::types::{factor, with_types};
use crate::verbs::spgemm::Operands;

/// A product of two sparse matrices, as the command line has it.
#[derive(Debug)]
pub struct Spgemm<'a> {
    /// A.
    pub file: &'a Source,
    /// B, if it is named.
    pub right: Option<&'a Source>,
    /// Whether an option was given that products over ranks do not have, and which.
    pub refused: Option<&'static str>,
    /// Whether rows of C are sorted.
    pub sorted: bool,
    /// Types, how to compute, what is printed.
    pub options: &'a Options,
}

/// Multiplies over the ranks of the job and prints the result. Collective.
///
/// # Errors
/// On every rank.
pub fn spgemm(args: &Spgemm<'_>) -> Result {
    job::run(args.options.printing, args, |job| {
        job.together(args.options.running.check(Content::Sparse, args.options.types.dtype))?;
        if let Some(option) = args.refused {
            return Err(Failure::Request(format!(
                "{option}: a product over ranks has none, leave it or --mpi out"
            )));
        }
        with_types!(&args.options.types, |T, I, O| multiply::<T, I, O>(job, args))
    })
}

/// A and B, of which rows of B are spread as columns of A. Collective.
pub fn operands<T: DistScalar, I: Index, O: Index>(
    job: &Job,
    whole: Option<&Operands<T, I, O>>,
) -> Result<[DistCsr<T, I, O>; 2]> {
    let a = scatter(job, whole.map(|o| &o.a))?;
    let b = whole.map(Operands::b);
    let columns = b.map(|b| {
        let square = b.nrows() == b.ncols();
        let even = Partition::even(b.ncols(), job.ranks.size());
        if square { a.pattern().columns().clone() } else { even }
    });
    let parts = b.zip(columns.as_ref()).map(|(b, of_b)| (b, a.pattern().columns(), of_b));
    let b = DistCsr::scatter(&job.ranks, parts)?;
    Ok([a, b])
}

fn multiply<T: DistScalar, I: Index, O: Index>(job: &Job, args: &Spgemm<'_>) -> Result {
    let Spgemm { options: Options { running, choice, .. }, .. } = *args;
    let (place, threads) = job.place_alone(choice, args.options.ranked)?;
    let read = || {
        let (seed, transpose) = (running.seed, choice.transpose);
        Operands::<T, I, O>::choose(args.file, args.right, transpose, seed, job.printing)
    };
    let whole = job.first(read)?;
    let [a, b] = operands(job, whole.as_ref())?;
    let formula = whole.as_ref().map_or_else(String::new, |o| o.formula.clone());
    // Kept for the check only.
    let whole = whole.filter(|_| running.verify);

    let request = a.pattern().spgemm(b.pattern()).problem.calls(running.calls());
    let problem = choice.refine(request).sorted(args.sorted);
    let alpha = job.together(factor("alpha", running.alpha.as_ref(), problem.semiring.one()))?;
    let (patterns, mut product) = ((a.pattern(), b.pattern()), None);
    let (mut plan, plan_ms) = measure::once(|| Engine::<T, I, O>::new(&place, patterns, &problem))?;
    job.together(plan.upload(&a, &b))?;
    let timing = job.repeat(running.repeat, &mut |step| {
        product = match step {
            // Frees the previous product.
            Step::Prepare => None,
            Step::Execute => Some(plan.execute((&a, &b), alpha)?),
        };
        Ok(())
    })?;
    let Some(c) = product else {
        return Err(Failure::Request("no product was computed".into()));
    };
    let c = c.on_host(job)?;
    let sample = sample(job, c.values().as_slice())?;

    let gathered = match running.verify || running.output.is_some() {
        true => gather_csr(job, &c)?,
        false => None,
    };
    let verdict = whole.as_ref().zip(gathered.as_ref()).map(|(whole, c): (_, &Csr<T, I, O>)| {
        let _spinner = output::spinner(job.printing, "verifying");
        let reference = oracle::Spgemm {
            semiring: problem.semiring,
            alpha: Some(alpha),
            sorted: problem.sorted,
            ..oracle::Spgemm::new(whole.a.view(), whole.b().view())
        };
        Ok(reference.verify(c.view())?)
    });
    let verdict = job.together(verdict.transpose())?;
    job.first(|| match (&running.output, &gathered) {
        (Some(path), Some(c)) => {
            Ok(gustav::io::write_csr(path, c.view(), &WriteOptions::default())?)
        }
        _ => Ok(()),
    })?;
    let finished = Finished {
        source: args.file,
        types: &args.options.types,
        explanation: plan.explain(),
        threads,
        plan_ms,
        timing,
        multiplications: None,
        nnz_c: Some(c.pattern().nnz()),
        formula,
        sample,
        verdict,
    };
    finished.print(job)
}

/// A plan, and on a GPU the values there.
pub enum Engine<T: DistScalar, I: Index, O: Index> {
    /// On the CPU.
    Cpu(Box<SpgemmPlan<T, I, O>>),
    /// On a GPU.
    Gpu(Box<OnGpu<T, I, O>>),
}

/// A plan with the values of A and of B on its GPU.
pub struct OnGpu<T: DistScalar, I: Index, O: Index> {
    plan: GpuSpgemmPlan<T, I, O>,
    device: CudaDevice,
    values: Option<[DeviceBuffer<T>; 2]>,
}

/// C, where it was computed.
enum Product<T: DistScalar, I: Index, O: Index> {
    Host(DistCsr<T, I, O>),
    Gpu(DistDeviceCsr<T, I, O>),
}

impl<T: DistScalar, I: Index, O: Index> Product<T, I, O> {
    /// The matrix in host memory. Collective.
    fn on_host(self, job: &Job) -> Result<DistCsr<T, I, O>> {
        match self {
            Product::Host(c) => Ok(c),
            Product::Gpu(c) => {
                let local = job.together(c.local().download().map_err(Failure::from))?;
                Ok(DistCsr::new(&job.ranks, c.columns(), local)?)
            }
        }
    }
}

impl<T: DistScalar, I: Index, O: Index> Engine<T, I, O> {
    /// Plans `problem` for A and B. Collective.
    ///
    /// # Errors
    /// Those of the plan, on every rank.
    pub fn new(
        place: &Place,
        (a, b): (&DistPattern<I, O>, &DistPattern<I, O>),
        problem: &Problem,
    ) -> Result<Self> {
        Ok(match place {
            Place::Cpu(device) => Engine::Cpu(Box::new(SpgemmPlan::new(a, b, problem, device)?)),
            Place::Gpu(gpu) => {
                let plan = GpuSpgemmPlan::new(a, b, problem, gpu)?;
                let device = gpu.device().clone();
                Engine::Gpu(Box::new(OnGpu { plan, device, values: None }))
            }
        })
    }

    /// What the plan says of itself.
    pub fn explain(&self) -> &Explanation {
        match self {
            Engine::Cpu(plan) => plan.explain(),
            Engine::Gpu(on) => on.plan.explain(),
        }
    }

    /// Copies the values to the GPU, where there is one.
    fn upload(&mut self, a: &DistCsr<T, I, O>, b: &DistCsr<T, I, O>) -> Result<()> {
        let Engine::Gpu(on) = self else { return Ok(()) };
        let values = |of: &DistCsr<T, I, O>| {
            DeviceBuffer::from_slice(&on.device, of.values().as_slice(), "values on the device")
        };
        on.values = Some([values(a)?, values(b)?]);
        Ok(())
    }

    /// The product. Collective.
    fn execute(
        &mut self,
        (a, b): (&DistCsr<T, I, O>, &DistCsr<T, I, O>),
        alpha: T::Accum,
    ) -> Result<Product<T, I, O>> {
        Ok(match self {
            Engine::Cpu(plan) => Product::Host(plan.execute(a, b, Some(alpha))?),
            Engine::Gpu(on) => {
                let [a, b] = on.values.as_ref().ok_or_else(not_uploaded)?;
                Product::Gpu(on.plan.execute(a, b, Some(alpha))?)
            }
        })
    }
}
