//! `gustav spgemm --mpi`.

use gustav::cuda::{CudaDevice, DeviceBuffer};
use gustav::{Csr, Error, Index, Order, Problem, Scalar};
use gustav_mpi::{
    DistCsr, DistDeviceCsr, DistPattern, DistScalar, Explanation, GpuSpgemmPlan, SpgemmPlan,
};
use gustav_testkit::oracle;

use super::Spread;
use super::engine::{Place, not_uploaded};
use super::job::{self, Job, Step};
use super::parts::{Parts, Rows, read, read_spread};
use super::report::{Finished, sample};
use super::results::{Sides, gather_csr, write_csr};
use crate::args::Printing;
use crate::failure::{Failure, Result};
use crate::measure;
use crate::output::{self, Content};
use crate::product::Options;
use crate::source::Source;
use crate::types::{factor, with_types};
use crate::verbs::spgemm::{NOT_SQUARE, Operands, check_inner};

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

/// A and B, of which every rank has a part.
pub struct Pair<T: Scalar, I: Index, O: Index> {
    a: Parts<T, I, O>,
    /// B, if it is not A.
    b: Option<DistCsr<T, I, O>>,
    /// Whether B is neither A nor its transpose.
    is_named: bool,
    formula: &'static str,
}

impl<T: Scalar, I: Index, O: Index> Pair<T, I, O> {
    /// Reads A, and B if it is named; else B is A, or its transpose where A is not square. Rows of B are spread as
    /// columns of A. Collective.
    ///
    /// # Errors
    /// On every rank, for files that cannot be read, shapes that do not fit, and a named B beside columns in an order.
    pub fn read(
        job: &Job,
        file: &Source,
        right: Option<&Source>,
        seed: u64,
        spread: Spread,
    ) -> Result<Self> {
        let a: Parts<T, I, O> = read(job, file, seed, spread)?;
        let pattern = a.matrix.pattern();
        if let (Some(_), Spread::Ordered(order)) = (right, spread)
            && order != Order::Stored
            && a.columns().numbers.is_some()
        {
            return Err(Failure::Library(Error::Unsupported {
                problem: format!("A·B with rows and columns of A in the order {order}"),
                backend: "the command over ranks".into(),
                reason: "rows of B would need that order as well".into(),
                nearest: "--partition balanced, or the product without B".into(),
            }));
        }
        let (b, formula) = match right {
            Some(source) => {
                let check = |shape| check_inner("A", pattern.ncols(), shape);
                (Some(read_spread(job, source, seed, pattern.columns(), check)?), "C = A·B")
            }
            None if pattern.nrows() == pattern.ncols() => (None, "C = A·A"),
            None => {
                output::note(job.printing, NOT_SQUARE);
                (Some(a.matrix.transpose()?), "C = A·Aᵀ")
            }
        };
        Ok(Pair { a, b, is_named: right.is_some(), formula })
    }

    /// A.
    pub fn a(&self) -> &DistCsr<T, I, O> {
        &self.a.matrix
    }

    /// B.
    pub fn b(&self) -> &DistCsr<T, I, O> {
        self.b.as_ref().unwrap_or(&self.a.matrix)
    }

    /// The rows and columns of C. Its columns are in the order of its rows where A is multiplied by itself or its
    /// transpose, those of a named B as stored.
    fn sides(&self) -> Sides<'_> {
        let rows = self.a.rows();
        let numbers = rows.numbers.filter(|_| !self.is_named);
        [rows, Rows { partition: self.b().pattern().columns(), numbers }]
    }
}

fn multiply<T: DistScalar, I: Index, O: Index>(job: &Job, args: &Spgemm<'_>) -> Result {
    let Spgemm { file, right, options: Options { running, choice, ranked, .. }, .. } = *args;
    let (place, threads) = job.place_alone(choice, *ranked)?;
    let seed = running.seed;
    let pair = Pair::<T, I, O>::read(job, file, right, seed, ranked.spread())?;
    let (a, b) = (pair.a(), pair.b());

    let request = a.pattern().spgemm(b.pattern()).problem.calls(running.calls());
    let problem = choice.refine(request).sorted(args.sorted);
    let alpha = job.together(factor("alpha", running.alpha.as_ref(), problem.semiring.one()))?;
    let (patterns, mut product) = ((a.pattern(), b.pattern()), None);
    let (mut plan, plan_ms) = measure::once(|| Engine::<T, I, O>::new(&place, patterns, &problem))?;
    job.together(plan.upload(a, b))?;
    let timing = job.repeat(running.repeat, &mut |step| {
        product = match step {
            // Frees the previous product.
            Step::Prepare => None,
            Step::Execute => Some(plan.execute((a, b), alpha)?),
        };
        Ok(())
    })?;
    let Some(c) = product else {
        return Err(Failure::Request("no product was computed".into()));
    };
    let c = c.on_host(job)?;
    let sample = sample(job, c.values().as_slice())?;

    let (sides, sorted) = (pair.sides(), problem.sorted);
    let gathered = match running.verify {
        true => gather_csr(job, &c, sides, sorted)?,
        false => None,
    };
    // Read once more, by one rank, and not in parts.
    let check = |c: &Csr<T, I, O>| {
        let quiet = Printing { json: false, quiet: true };
        let whole = Operands::<T, I, O>::choose(file, right, false, seed, quiet)?;
        let _spinner = output::spinner(job.printing, "verifying");
        let reference = oracle::Spgemm {
            semiring: problem.semiring,
            alpha: Some(alpha),
            sorted,
            ..oracle::Spgemm::new(whole.a.view(), whole.b().view())
        };
        Ok(reference.verify(c.view())?)
    };
    let verdict = job.together(gathered.as_ref().map(check).transpose())?;
    if let Some(path) = &running.output {
        write_csr(job, &c, sides, sorted, path)?;
    }
    let finished = Finished {
        source: file,
        types: &args.options.types,
        explanation: plan.explain(),
        partition: ranked.spread(),
        threads,
        plan_ms,
        timing,
        multiplications: None,
        nnz_c: Some(c.pattern().nnz()),
        formula: pair.formula.into(),
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
