//! `gustav sddmm`: α·(X·Yᵀ) + β·A at the nonzeros of A.

use std::path::PathBuf;

use gustav::cuda::{DeviceBuffer, DeviceDense, DevicePattern, Probe, Stream};
use gustav::io::WriteOptions;
use gustav::{
    CpuScalar, Csr, Dense, Device, Index, Operation, PatternRef, Problem, Scalar, SddmmCall,
    SddmmPlan, SddmmRequest,
};
use gustav_testkit::oracle;

use super::spmm::dense_file;
use crate::args::DenseLayout;
use crate::cuda::Run;
use crate::failure::Result;
use crate::measure;
use crate::mpi;
use crate::output::{self, Content};
use crate::product::{self, Options, Product, Trial};
use crate::random;
use crate::source::Source;
use crate::types::{Factor, factor, with_types};

/// Multiply dense matrices at the nonzeros of a sparse one
///
/// Every nonzero of A in row i and column j becomes the inner product of row i of X and row j of Y,
/// both of which are random (uniform in [-1, 1), integers 1 to 9) unless --x and --y give them.
/// With --beta, the values of A are added.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sparse matrix A
    file: Source,
    #[command(flatten)]
    operands: Dimension,
    /// Y from a file (.npy or Matrix Market array), with --x
    #[arg(long, value_name = "FILE", requires = "x")]
    y: Option<PathBuf>,
    /// Multiply every value by that of A: (X·Yᵀ)∘A
    #[arg(long)]
    factors: bool,
    /// Factor of A's values, which are added (not added unless given)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    beta: Option<Factor>,
    #[command(flatten)]
    layout: DenseLayout,
    #[command(flatten)]
    options: Options,
}

/// The dense operands: a number of columns, or a file.
#[derive(clap::Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct Dimension {
    /// Columns of random X and Y
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub depth: Option<usize>,
    /// X from a file (.npy or Matrix Market array)
    #[arg(long, value_name = "FILE")]
    pub x: Option<PathBuf>,
}

/// Multiplies and prints the result.
pub fn run(args: &Args) -> Result {
    if args.options.ranked.mpi {
        return mpi::sddmm(&mpi::Sddmm {
            file: &args.file,
            x: (args.operands.depth, args.operands.x.as_deref()),
            y: args.y.as_deref(),
            factors: args.factors,
            beta: args.beta.as_ref(),
            layout: args.layout.layout(),
            options: &args.options,
        });
    }
    args.options.running.check(Content::Sparse, args.options.types.dtype)?;
    let device = args.options.choice.device()?;
    with_types!(&args.options.types, |T, I, O| {
        Operands::<T, I, O>::read(args, &device)?.multiply(args, &device)
    })
}

struct Operands<T: Scalar, I: Index, O: Index> {
    a: Csr<T, I, O>,
    x: Dense<T>,
    y: Dense<T>,
    problem: Problem,
}

/// α and β, and whether values are multiplied by those of A.
#[derive(Clone, Copy)]
struct Factors<A> {
    alpha: A,
    beta: A,
    of_a: bool,
}

impl<T: CpuScalar, I: Index, O: Index> Operands<T, I, O> {
    fn read(args: &Args, device: &Device) -> Result<Self> {
        let Options { choice, running, printing, .. } = &args.options;
        let layout = args.layout.layout();
        let a = device.threads().run(|| args.file.read::<T, I, O>(running.seed, *printing))?;
        let x = match &args.operands.x {
            Some(path) => dense_file(path, (Operation::Sddmm, "X"), layout, a.nrows(), None)?,
            None => {
                let depth = args.operands.depth.unwrap_or(1);
                random::dense(a.nrows(), depth, layout, running.seed)?
            }
        };
        let y = match &args.y {
            Some(path) => {
                dense_file(path, (Operation::Sddmm, "Y"), layout, a.ncols(), Some(x.ncols()))?
            }
            None => random::dense(a.ncols(), x.ncols(), layout, running.seed.wrapping_add(1))?,
        };
        let request = a.pattern().sddmm(x.ncols()).layouts(layout, layout).calls(running.calls());
        let problem = choice.refine(request.problem).typed::<T, I, O>();
        Ok(Operands { a, x, y, problem })
    }

    fn multiply(&self, args: &Args, device: &Device) -> Result {
        let Operands { a, x, y, problem } = self;
        let running = &args.options.running;
        let (one, zero) = (problem.semiring.one(), problem.semiring.zero());
        let factors = Factors {
            alpha: factor("alpha", running.alpha.as_ref(), one)?,
            beta: factor("beta", args.beta.as_ref(), zero)?,
            of_a: args.factors,
        };
        let adds = factors.beta != zero;
        let mut out = a.clone();
        let limits = product::limits(&args.options.choice, device, problem, adds || factors.of_a)?;
        let mut resident = match device.is_cuda() {
            true => Some(Resident::new(device, self)?),
            false => None,
        };
        let mut trial = |device: &Device| -> Result<Trial> {
            let mut run = match &mut resident {
                Some(r) => Trial::of(r.run(device, self, factors, running.repeat, &mut out)?),
                None => self.on_cpu(device, factors, running.repeat, &mut out)?,
            };
            run.verdict = if running.verify {
                let _spinner = output::spinner(args.options.printing, "verifying");
                let product = oracle::Sddmm {
                    alpha: factors.alpha,
                    beta: factors.beta,
                    factors: factors.of_a.then(|| a.values().as_slice()),
                    before: adds.then(|| a.values().as_slice()),
                    ..oracle::Sddmm::new(a.pattern(), x.view(), y.view())
                };
                Some(device.threads().run(|| product.verify(out.values().as_slice()))?)
            } else {
                None
            };
            Ok(run)
        };
        let (best, attempts) =
            product::attempt(&args.options.choice, device, Operation::Sddmm, &mut trial)?;
        if let Some(path) = &running.output {
            gustav::io::write_csr(path, out.view(), &WriteOptions::default())?;
        }
        let (sample, norm) = product::look(out.values().iter().copied());
        let summary = Product {
            source: &args.file,
            types: &args.options.types,
            device,
            best: &best,
            attempts: &attempts,
            multiplications: Some(problem.nnz as f64 * problem.columns as f64),
            sparse: None,
            limits,
            formula: format!(
                "C = X·Yᵀ{} at the nonzeros of A{}, depth {}",
                if factors.of_a { "∘A" } else { "" },
                if adds { ", + β·A" } else { "" },
                problem.columns
            ),
            sample,
            norm,
        };
        summary.print(args.options.printing)
    }

    fn on_cpu(
        &self,
        device: &Device,
        factors: Factors<T::Accum>,
        repeat: Option<usize>,
        out: &mut Csr<T, I, O>,
    ) -> Result<Trial> {
        let Operands { a, x, y, problem } = self;
        let plan = || {
            let (pattern, problem) = (PatternRef::from(a.pattern()), problem.clone());
            Ok(SddmmRequest { pattern, problem }.plan(device)?)
        };
        let (mut plan, plan_ms): (SddmmPlan<'_, T>, _) = measure::once(plan)?;
        let values = out.values_mut();
        // β = 0 must not read them.
        values.fill(T::from_f64(f64::NAN));
        let timing = measure::repeat(repeat, &mut || {
            if factors.beta != T::Accum::zero() {
                values.copy_from_slice(&a.values());
            }
            let mut call = SddmmCall::new().alpha(factors.alpha).beta(factors.beta);
            if factors.of_a {
                call = call.factors(a);
            }
            let run = || Ok(plan.execute(x, y, &mut *values, call)?);
            Ok(measure::once(run)?.1)
        })?;
        Ok(Trial::new(plan.explain(), plan_ms, timing))
    }
}

/// Operands in a GPU's memory.
struct Resident<T: Scalar, I: Index, O: Index> {
    pattern: DevicePattern<I, O>,
    /// The values of A.
    of_a: DeviceBuffer<T>,
    x: DeviceDense<T>,
    y: DeviceDense<T>,
    values: DeviceBuffer<T>,
    stream: Stream,
    probe: Probe,
    upload_ms: f64,
}

impl<T: CpuScalar, I: Index, O: Index> Resident<T, I, O> {
    fn new(device: &Device, operands: &Operands<T, I, O>) -> Result<Self> {
        let (on, a) = (device.cuda_device()?, &operands.a);
        let move_all = || {
            let of_a = DeviceBuffer::from_slice(on, &a.values(), "the values of A on the GPU")?;
            let pattern = DevicePattern::upload(on, a.pattern())?;
            Ok((pattern, of_a, device.upload(&operands.x)?, device.upload(&operands.y)?))
        };
        let ((pattern, of_a, x, y), upload_ms) = measure::once(move_all)?;
        let values = DeviceBuffer::zeros(on, a.nnz(), "values on the GPU")?;
        let (stream, probe) = (device.stream()?, Probe::new(on)?);
        Ok(Resident { pattern, of_a, x, y, values, stream, probe, upload_ms })
    }

    /// Plans with the chooser of `device`, multiplies into poisoned values, and copies them to
    /// `out`.
    fn run(
        &mut self,
        device: &Device,
        operands: &Operands<T, I, O>,
        factors: Factors<T::Accum>,
        repeat: Option<usize>,
        out: &mut Csr<T, I, O>,
    ) -> Result<Run> {
        let Resident { pattern, of_a, x, y, values, stream, probe, upload_ms } = self;
        let plan = || {
            let (pattern, problem) = (pattern.clone(), operands.problem.clone());
            Ok(SddmmRequest { pattern, problem }.plan(device)?)
        };
        // Kernels are compiled once per machine, so compilation is not part of planning.
        let _: SddmmPlan<'static, T> = plan()?;
        let (mut plan, plan_ms): (SddmmPlan<'static, T>, _) = measure::once(plan)?;
        // NaN in every floating-point type, which β = 0 must not read.
        values.fill(0xff, stream)?;
        let mut execute = || -> Result<f64> {
            if factors.beta != T::Accum::zero() {
                values.copy_from(of_a, stream)?;
            }
            let run = || {
                let call = SddmmCall::new().alpha(factors.alpha).beta(factors.beta).on(stream);
                let call = if factors.of_a { call.factors(&*of_a) } else { call };
                plan.execute(&*x, &*y, &mut *values, call)
            };
            Ok(probe.cold_ms(stream, run)?)
        };
        // The first execution may allocate or convert what later ones reuse.
        execute()?;
        let timing = measure::repeat(repeat, &mut execute)?;
        let (read, download_ms) = measure::once(|| Ok(values.read(out.values_mut())))?;
        read?;
        let transfer_ms = *upload_ms + download_ms;
        Ok(Run { explanation: plan.explain().clone(), plan_ms, transfer_ms, timing })
    }
}
