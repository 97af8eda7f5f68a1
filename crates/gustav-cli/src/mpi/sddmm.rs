//! `gustav sddmm --mpi`.

use std::path::Path;

use gustav::cuda::{CudaDevice, DeviceBuffer, DeviceDense};
use gustav::{Csr, Dense, Index, Layout, Operation, Problem, Scale};
use gustav_mpi::{
    DistCsr, DistDense, DistPattern, DistScalar, Explanation, GpuSddmmCall, GpuSddmmPlan,
    SddmmCall, SddmmPlan,
};
use gustav_testkit::oracle;

use super::engine::{Place, not_uploaded};
use super::job::{self, Job, Step};
use super::parts::{Operand, read};
use super::report::{Finished, sample};
use super::results::{gather_csr, write_csr};
use crate::failure::Result;
use crate::measure;
use crate::output::{self, Content};
use crate::product::Options;
use crate::source::Source;
use crate::types::{Factor, factor, with_types};
use crate::verbs::spmm::dense_file;

/// A product at the nonzeros of A, as the command line has it.
#[derive(Debug)]
pub struct Sddmm<'a> {
    /// A.
    pub file: &'a Source,
    /// Columns of a random X, or its file.
    pub x: (Option<usize>, Option<&'a Path>),
    /// The file of Y.
    pub y: Option<&'a Path>,
    /// Whether values are multiplied by those of A.
    pub factors: bool,
    /// Factor of A's values, which are added.
    pub beta: Option<&'a Factor>,
    /// Of X and Y.
    pub layout: Layout,
    /// Types, how to compute, what is printed.
    pub options: &'a Options,
}

/// Multiplies over the ranks of the job and prints the result. Collective.
///
/// # Errors
/// On every rank.
pub fn sddmm(args: &Sddmm<'_>) -> Result {
    job::run(args.options.printing, args, |job| {
        job.together(args.options.running.check(Content::Sparse, args.options.types.dtype))?;
        with_types!(&args.options.types, |T, I, O| multiply::<T, I, O>(job, args))
    })
}

fn multiply<T: DistScalar, I: Index, O: Index>(job: &Job, args: &Sddmm<'_>) -> Result {
    let Sddmm { options: Options { running, choice, ranked, .. }, layout, .. } = *args;
    let (place, threads) = job.place_alone(choice, *ranked)?;
    let parts = read::<T, I, O>(job, args.file, running.seed, ranked.spread())?;
    let a = &parts.matrix;
    let pattern = a.pattern();
    let (of_x, of_y) = (parts.rows(), parts.columns());
    let (rows_of_x, rows_of_y) = (of_x.partition.rows(), of_y.partition.rows());
    let of_file = |path: &Path, name, rows, columns| {
        dense_file::<T>(path, (Operation::Sddmm, name), layout, rows, columns)
    };
    let file = args.x.1.map(|path| move || of_file(path, "X", rows_of_x, None));
    let random = Operand::Random { columns: args.x.0.unwrap_or(1), seed: running.seed };
    let operand_x = file.as_ref().map_or(random, |read| Operand::File(read));
    let x = operand_x.part(job, of_x, layout)?;
    let depth = x.local().ncols();
    let file = args.y.map(|path| move || of_file(path, "Y", rows_of_y, Some(depth)));
    let random = Operand::Random { columns: depth, seed: running.seed.wrapping_add(1) };
    let operand_y = file.as_ref().map_or(random, |read| Operand::File(read));
    let y = operand_y.part(job, of_y, layout)?;

    let request = pattern.sddmm(depth).problem.layouts(layout, layout).calls(running.calls());
    let problem = choice.refine(request);
    let (one, zero) = (problem.semiring.one(), problem.semiring.zero());
    let alpha = job.together(factor("alpha", running.alpha.as_ref(), one))?;
    let beta = job.together(factor("beta", args.beta, zero))?;
    let adds = beta != zero;
    let mut out = a.clone();
    let (mut plan, plan_ms) = measure::once(|| Engine::<T>::new(&place, pattern, &problem))?;
    // β = 0 must not read them.
    out.values_mut().fill(T::from_f64(f64::NAN));
    job.together(plan.upload(a, (&x, &y), &out))?;
    let scale = Scale::new().alpha(alpha).beta(beta);
    let timing = job.repeat(running.repeat, &mut |step| match step {
        Step::Prepare if adds => plan.prepare(a, &mut out),
        Step::Prepare => Ok(()),
        Step::Execute => plan.execute(a, (&x, &y), &mut out, (scale, args.factors)),
    })?;
    job.together(plan.download(&mut out))?;
    let sample = sample(job, out.values().as_slice())?;

    let sides = [of_x, of_y];
    // Entries of both are in the order of those of the parts.
    let [gathered, whole]: [Option<Csr<T, I, O>>; 2] = match running.verify {
        true => [gather_csr(job, &out, sides, false)?, gather_csr(job, a, sides, false)?],
        false => [None, None],
    };
    let verdict = whole.as_ref().zip(gathered.as_ref()).map(|(a, found)| {
        let _spinner = output::spinner(job.printing, "verifying");
        let x: Dense<T> = operand_x.whole(rows_of_x, layout)?;
        let y = operand_y.whole(rows_of_y, layout)?;
        let product = oracle::Sddmm {
            alpha,
            beta,
            factors: args.factors.then(|| a.values().as_slice()),
            before: adds.then(|| a.values().as_slice()),
            ..oracle::Sddmm::new(a.pattern(), x.view(), y.view())
        };
        Ok(product.verify(found.values().as_slice())?)
    });
    let verdict = job.together(verdict.transpose())?;
    if let Some(path) = &running.output {
        write_csr(job, &out, sides, false, path)?;
    }
    let finished = Finished {
        source: args.file,
        types: &args.options.types,
        explanation: plan.explain(),
        partition: ranked.spread(),
        threads,
        plan_ms,
        timing,
        multiplications: Some(problem.nnz as f64 * depth as f64),
        nnz_c: None,
        formula: format!(
            "C = X·Yᵀ{} at the nonzeros of A{}, depth {depth}",
            if args.factors { "∘A" } else { "" },
            if adds { ", + β·A" } else { "" },
        ),
        sample,
        verdict,
    };
    finished.print(job)
}

/// A plan, and on a GPU the operands there.
pub enum Engine<T: DistScalar> {
    /// On the CPU.
    Cpu(Box<SddmmPlan<T>>),
    /// On a GPU.
    Gpu(Box<OnGpu<T>>),
}

/// A plan with the operands on its GPU.
pub struct OnGpu<T: DistScalar> {
    plan: GpuSddmmPlan<T>,
    device: CudaDevice,
    operands: Option<Operands<T>>,
}

struct Operands<T: DistScalar> {
    x: DeviceDense<T>,
    y: DeviceDense<T>,
    of_a: DeviceBuffer<T>,
    values: DeviceBuffer<T>,
}

impl<T: DistScalar> Engine<T> {
    /// Plans `problem`. Collective.
    ///
    /// # Errors
    /// Those of the plan, on every rank.
    pub fn new<I: Index, O: Index>(
        place: &Place,
        pattern: &DistPattern<I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        Ok(match place {
            Place::Cpu(device) => Engine::Cpu(Box::new(SddmmPlan::new(pattern, problem, device)?)),
            Place::Gpu(gpu) => {
                let plan = GpuSddmmPlan::new(pattern, problem, gpu)?;
                let device = gpu.device().clone();
                Engine::Gpu(Box::new(OnGpu { plan, device, operands: None }))
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

    /// Copies the operands to the GPU, where there is one.
    fn upload<I: Index, O: Index>(
        &mut self,
        a: &DistCsr<T, I, O>,
        (x, y): (&DistDense<T>, &DistDense<T>),
        out: &DistCsr<T, I, O>,
    ) -> Result<()> {
        let Engine::Gpu(on) = self else { return Ok(()) };
        let to = &on.device;
        let values = |of: &DistCsr<T, I, O>| {
            DeviceBuffer::from_slice(to, of.values().as_slice(), "values on the device")
        };
        on.operands = Some(Operands {
            x: DeviceDense::upload(to, &x.local().view())?,
            y: DeviceDense::upload(to, &y.local().view())?,
            of_a: values(a)?,
            values: values(out)?,
        });
        Ok(())
    }

    /// Makes the values those of A, to which a product is added: on the CPU those of `out`, on a GPU those there.
    fn prepare<I: Index, O: Index>(
        &mut self,
        a: &DistCsr<T, I, O>,
        out: &mut DistCsr<T, I, O>,
    ) -> Result<()> {
        match self {
            Engine::Cpu(_) => out.values_mut().copy_from_slice(a.values().as_slice()),
            Engine::Gpu(on) => {
                let Operands { of_a, values, .. } =
                    on.operands.as_mut().ok_or_else(not_uploaded)?;
                values.copy_from(of_a, on.device.stream())?;
                on.device.stream().synchronize()?;
            }
        }
        Ok(())
    }

    /// Multiplies: on the CPU into `out`, on a GPU into the values there, by those of A if `multiplies`. Collective.
    fn execute<I: Index, O: Index>(
        &mut self,
        a: &DistCsr<T, I, O>,
        (x, y): (&DistDense<T>, &DistDense<T>),
        out: &mut DistCsr<T, I, O>,
        (scale, multiplies): (Scale<T::Accum>, bool),
    ) -> Result<()> {
        match self {
            Engine::Cpu(plan) => {
                let factors = multiplies.then(|| a.values());
                Ok(plan.execute(x, y, out.values_mut(), SddmmCall { scale, factors })?)
            }
            Engine::Gpu(on) => {
                let Operands { x, y, of_a, values } =
                    on.operands.as_mut().ok_or_else(not_uploaded)?;
                let factors = multiplies.then(|| (&*of_a).into());
                Ok(on.plan.execute(x, y, values, GpuSddmmCall { scale, factors })?)
            }
        }
    }

    /// Copies the values from the GPU to `out`, where there is one.
    fn download<I: Index, O: Index>(&self, out: &mut DistCsr<T, I, O>) -> Result<()> {
        match self {
            Engine::Gpu(on) => {
                let operands = on.operands.as_ref().ok_or_else(not_uploaded)?;
                Ok(operands.values.read(out.values_mut())?)
            }
            Engine::Cpu(_) => Ok(()),
        }
    }
}
