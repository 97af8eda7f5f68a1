//! `gustav spmv`: y = α·op(A)·x ⊕ β·y.

use std::path::{Path, PathBuf};

use gustav::io::{ReadOptions, WriteOptions};
use gustav::{
    CpuScalar, Csr, Dense, DenseView, Device, Error, Index, Layout, Operation, PatternRef, Problem,
    Scalar, Scale, SpmvPlan, SpmvRequest,
};
use gustav_testkit::oracle;

use crate::cuda::Resident;
use crate::failure::Result;
use crate::measure;
use crate::mpi;
use crate::output::{self, Content};
use crate::product::{self, Options, Product, Trial};
use crate::random;
use crate::source::Source;
use crate::types::{Factor, factor, with_types};

/// Multiply a sparse matrix by a vector
///
/// x is random (uniform in [-1, 1), integers 1 to 9) unless --x gives it. With --beta, y is
/// random before the product unless --y gives it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sparse matrix A
    file: Source,
    /// x from a file (.npy or Matrix Market array)
    #[arg(long, value_name = "FILE")]
    x: Option<PathBuf>,
    /// Factor of y before the product (y is not read unless given)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    beta: Option<Factor>,
    /// y before the product (.npy or Matrix Market array), with --beta
    #[arg(long, value_name = "FILE", requires = "beta")]
    y: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Multiplies and prints the result.
pub fn run(args: &Args) -> Result {
    if args.options.ranked.mpi {
        return mpi::spmm(&mpi::Spmm {
            operation: Operation::Spmv,
            file: &args.file,
            right: (Some(1), args.x.as_deref()),
            before: args.y.as_deref(),
            beta: args.beta.as_ref(),
            layout: Layout::RowMajor,
            options: &args.options,
        });
    }
    args.options.running.check(Content::Dense, args.options.types.dtype)?;
    let device = args.options.choice.device()?;
    with_types!(&args.options.types, |T, I, O| {
        let seed = args.options.running.seed;
        let a = device.threads().run(|| args.file.read::<T, I, O>(seed, args.options.printing))?;
        multiply(&a, args, &device)
    })
}

fn multiply<T: CpuScalar, I: Index, O: Index>(
    a: &Csr<T, I, O>,
    args: &Args,
    device: &Device,
) -> Result {
    let Options { choice, running, .. } = &args.options;
    let problem = choice.refine(Problem::spmv(&a.view()));
    let problem = problem.calls(running.calls());
    let (m, k) = (problem.output_rows(), problem.inner());
    let (one, zero) = (problem.semiring.one(), problem.semiring.zero());
    let alpha = factor("alpha", running.alpha.as_ref(), one)?;
    let beta = factor("beta", args.beta.as_ref(), zero)?;
    let x = match &args.x {
        Some(path) => vector_file(path, "x", k)?,
        None => random::vector::<T>(k, running.seed)?,
    };
    let before = match (&args.y, beta == zero) {
        (_, true) => None,
        (Some(path), false) => Some(vector_file(path, "y", m)?),
        (None, false) => Some(random::vector::<T>(m, running.seed.wrapping_add(1))?),
    };
    let mut y = Dense::zeros(m, 1, Layout::RowMajor)?;
    let limits = product::limits(choice, device, &problem, before.is_some())?;
    let mut resident = match device.is_cuda() {
        true => {
            let given = before.as_ref().map(|y| DenseView::row_major(m, 1, y)).transpose()?;
            let x = DenseView::row_major(k, 1, &x)?;
            Some(Resident::new(device, &problem, a.view(), x, given)?)
        }
        false => None,
    };

    let mut trial = |device: &Device| -> Result<Trial> {
        let mut run = match &mut resident {
            Some(r) => Trial::of(r.run(device, &problem, (alpha, beta), running.repeat, &mut y)?),
            None => {
                let y = y.data_mut();
                let plan = || {
                    let (pattern, problem) = (a.pattern().into(), problem.clone());
                    let request: SpmvRequest<PatternRef<'_, I, O>> =
                        SpmvRequest { pattern, problem };
                    Ok(request.plan::<T, _>(device)?)
                };
                let (mut plan, plan_ms): (SpmvPlan<'_, T>, _) = measure::once(plan)?;
                let scale = Scale::new().alpha(alpha).beta(beta);
                // β = 0 must not read it.
                y.fill(T::from_f64(f64::NAN));
                let timing = measure::repeat(running.repeat, &mut || {
                    if let Some(before) = &before {
                        y.copy_from_slice(before);
                    }
                    let run = || Ok(plan.execute(a, &x, &mut *y, scale)?);
                    Ok(measure::once(run)?.1)
                })?;
                Trial::new(plan.explain(), plan_ms, timing)
            }
        };
        run.verdict = if running.verify {
            let _spinner = output::spinner(args.options.printing, "verifying");
            let before = before.as_deref();
            let (a, transpose) = (a.view(), problem.transpose_a);
            let check =
                || oracle::spmv(problem.semiring, a, transpose, &x, alpha, beta, before, y.data());
            Some(device.threads().run(check)?)
        } else {
            None
        };
        Ok(run)
    };
    let (best, attempts) = product::attempt(choice, device, Operation::Spmv, &mut trial)?;
    if let Some(path) = &running.output {
        gustav::io::write_dense(path, y.view(), &WriteOptions::default())?;
    }
    let (sample, norm) = product::look(y.data().iter().copied());
    let summary = Product {
        source: &args.file,
        types: &args.options.types,
        device,
        best: &best,
        attempts: &attempts,
        multiplications: Some(problem.nnz as f64),
        sparse: None,
        limits,
        formula: format!("y = {}·x", if problem.transpose_a { "Aᵀ" } else { "A" }),
        sample,
        norm,
    };
    summary.print(args.options.printing)
}

/// A vector of `len` values from a file with one column or one row.
///
/// # Errors
/// When the file cannot be read, or its matrix has another shape.
pub fn vector_file<T: Scalar>(path: &Path, name: &str, len: usize) -> Result<Vec<T>> {
    let m = gustav::io::read_dense::<T>(path, &ReadOptions::default())?;
    let (rows, cols) = (m.nrows(), m.ncols());
    if rows * cols != len || (rows != 1 && cols != 1 && len > 0) {
        return Err(Error::Shape {
            op: "spmv",
            expected: format!("{name} of {len} elements"),
            found: format!("{rows} x {cols} in {}", path.display()),
        }
        .into());
    }
    Ok(m.into_data().into_vec())
}
