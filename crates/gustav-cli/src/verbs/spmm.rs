//! `gustav spmm`: C = α·op(A)·B ⊕ β·C with B dense.

use std::path::{Path, PathBuf};

use gustav::io::{ReadOptions, WriteOptions};
use gustav::{
    CpuScalar, Csr, Dense, Device, Error, Index, Layout, Operation, PatternRef, Problem, Reduce,
    Scalar, Scale, SpmmPlan, SpmmRequest,
};
use gustav_testkit::oracle;

use crate::args::DenseLayout;
use crate::cuda::Resident;
use crate::failure::Result;
use crate::measure;
use crate::mpi;
use crate::output::{self, Content};
use crate::product::{self, Options, Product, Trial};
use crate::random;
use crate::source::Source;
use crate::types::{Factor, factor, with_types};

/// Multiply a sparse matrix by a dense one
///
/// B is random (uniform in [-1, 1), integers 1 to 9) unless --b gives it. With --beta, C is
/// random before the product unless --c gives it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sparse matrix A
    file: Source,
    #[command(flatten)]
    right: Right,
    /// Factor of C before the product (C is not read unless given)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    beta: Option<Factor>,
    /// C before the product (.npy or Matrix Market array), with --beta
    #[arg(long, value_name = "FILE", requires = "beta")]
    c: Option<PathBuf>,
    #[command(flatten)]
    layout: DenseLayout,
    #[command(flatten)]
    options: Options,
}

/// The dense operand: a number of columns, or a file.
#[derive(clap::Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct Right {
    /// Columns of a random B
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub columns: Option<usize>,
    /// B from a file (.npy or Matrix Market array)
    #[arg(long, value_name = "FILE")]
    pub b: Option<PathBuf>,
}

/// Multiplies and prints the result.
pub fn run(args: &Args) -> Result {
    if args.options.ranked.mpi {
        return mpi::spmm(&mpi::Spmm {
            operation: Operation::Spmm,
            file: &args.file,
            right: (args.right.columns, args.right.b.as_deref()),
            before: args.c.as_deref(),
            beta: args.beta.as_ref(),
            layout: args.layout.layout(),
            options: &args.options,
        });
    }
    args.options.running.check(Content::Dense, args.options.types.dtype)?;
    let device = args.options.choice.device()?;
    with_types!(&args.options.types, |T, I, O| {
        Operands::<T, I, O>::read(args, &device)?.multiply(args, &device)
    })
}

struct Operands<T: Scalar, I: Index, O: Index> {
    a: Csr<T, I, O>,
    b: Dense<T>,
    problem: Problem,
}

impl<T: CpuScalar, I: Index, O: Index> Operands<T, I, O> {
    fn read(args: &Args, device: &Device) -> Result<Self> {
        let Options { choice, running, printing, .. } = &args.options;
        let layout = args.layout.layout();
        let a = device.threads().run(|| args.file.read::<T, I, O>(running.seed, *printing))?;
        let problem = choice.refine(Problem::spmm(&a.view()).layouts(layout, layout));
        let b = match &args.right.b {
            Some(path) => dense_file(path, (Operation::Spmm, "B"), layout, problem.inner(), None)?,
            None => {
                let columns = args.right.columns.unwrap_or(1);
                random::dense(problem.inner(), columns, layout, running.seed)?
            }
        };
        let problem = problem.columns(b.ncols()).calls(running.calls());
        Ok(Operands { a, b, problem })
    }

    fn multiply(&self, args: &Args, device: &Device) -> Result {
        let Operands { a, b, problem } = self;
        let running = &args.options.running;
        let (one, zero) = (problem.semiring.one(), problem.semiring.zero());
        let alpha = factor("alpha", running.alpha.as_ref(), one)?;
        let beta = factor("beta", args.beta.as_ref(), zero)?;
        let (m, n, layout) = (problem.output_rows(), problem.columns, problem.layout_c);
        let before = match (&args.c, beta == zero) {
            (_, true) => None,
            (Some(path), false) => {
                Some(dense_file(path, (Operation::Spmm, "C"), layout, m, Some(n))?)
            }
            (None, false) => Some(random::dense(m, n, layout, running.seed.wrapping_add(1))?),
        };
        let mut c = Dense::zeros(m, n, layout)?;
        let limits = product::limits(&args.options.choice, device, problem, before.is_some())?;
        let given = before.as_ref().map(Dense::view);
        let mut resident = match device.is_cuda() {
            true => Some(Resident::new(device, problem, a.view(), b.view(), given)?),
            false => None,
        };

        let mut trial = |device: &Device| -> Result<Trial> {
            let mut run = match &mut resident {
                Some(r) => {
                    Trial::of(r.run(device, problem, (alpha, beta), running.repeat, &mut c)?)
                }
                None => {
                    let plan = || {
                        let (pattern, problem) = (a.pattern().into(), problem.clone());
                        let request: SpmmRequest<PatternRef<'_, I, O>> =
                            SpmmRequest { pattern, problem };
                        Ok(request.plan::<T, _>(device)?)
                    };
                    let (mut plan, plan_ms): (SpmmPlan<'_, T>, _) = measure::once(plan)?;
                    let scale = Scale::new().alpha(alpha).beta(beta);
                    // β = 0 must not read it.
                    c.data_mut().fill(T::from_f64(f64::NAN));
                    let timing = measure::repeat(running.repeat, &mut || {
                        if let Some(before) = &before {
                            c.data_mut().copy_from_slice(before.data());
                        }
                        let run = || Ok(plan.execute(a, b, &mut c, scale)?);
                        Ok(measure::once(run)?.1)
                    })?;
                    Trial::new(plan.explain(), plan_ms, timing)
                }
            };
            run.verdict = if running.verify {
                let _spinner = output::spinner(args.options.printing, "verifying");
                let check = || match problem.extremum {
                    Some(extremum) => {
                        let (a, transpose_a) = (a.view(), problem.transpose_a);
                        let (b, empty) = (b.view(), T::Accum::zero());
                        let taken =
                            oracle::SpmmExtremum { extremum, a, transpose_a, b, alpha, empty };
                        taken.verify(c.view(), None)
                    }
                    None => {
                        let product = oracle::Spmm {
                            semiring: problem.semiring,
                            transpose_a: problem.transpose_a,
                            alpha,
                            beta,
                            before: before.as_ref().map(Dense::view),
                            mean: problem.epilogue.mean,
                            ..oracle::Spmm::new(a.view(), b.view())
                        };
                        product.verify(c.view())
                    }
                };
                Some(device.threads().run(check)?)
            } else {
                None
            };
            Ok(run)
        };
        let (best, attempts) =
            product::attempt(&args.options.choice, device, Operation::Spmm, &mut trial)?;
        if let Some(path) = &running.output {
            gustav::io::write_dense(path, c.view(), &WriteOptions::default())?;
        }
        let (sample, norm) = product::look(c.data().iter().copied());
        let op = if problem.transpose_a { "Aᵀ" } else { "A" };
        let summary = Product {
            source: &args.file,
            types: &args.options.types,
            device,
            best: &best,
            attempts: &attempts,
            multiplications: Some(problem.nnz as f64 * n as f64),
            sparse: None,
            limits,
            formula: match problem.reduction() {
                Reduce::Sum => format!("C = {op}·B, {n} columns"),
                reduce => format!("C = {reduce} of {op}·B, {n} columns"),
            },
            sample,
            norm,
        };
        summary.print(args.options.printing)
    }
}

/// A dense operand from a file, packed in `layout`, with `rows` rows and, if given, `columns`
/// columns.
///
/// # Errors
/// When the file cannot be read, or its matrix has another shape.
pub fn dense_file<T: Scalar>(
    path: &Path,
    (operation, name): (Operation, &str),
    layout: Layout,
    rows: usize,
    columns: Option<usize>,
) -> Result<Dense<T>> {
    let m = gustav::io::read_dense::<T>(path, &ReadOptions::default())?;
    if m.nrows() != rows || columns.is_some_and(|n| n != m.ncols()) {
        let any = columns.map_or("any number of columns".into(), |n| format!("{n} columns"));
        return Err(Error::Shape {
            op: operation.name(),
            expected: format!("{name} with {rows} rows and {any}"),
            found: format!("{} x {} in {}", m.nrows(), m.ncols(), path.display()),
        }
        .into());
    }
    Ok(if m.layout() == layout { m } else { m.to_layout(layout)? })
}
