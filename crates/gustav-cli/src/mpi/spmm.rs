//! `gustav spmm --mpi` and `gustav spmv --mpi`.

use std::path::Path;

use gustav::{Dense, Index, Layout, Operation, Scale};
use gustav_mpi::{DistDense, DistScalar};
use gustav_testkit::oracle;

use super::engine::Engine;
use super::job::{self, Job, Step};
use super::parts::{Operand, read};
use super::report::{Finished, sample};
use super::results::{gather_dense, write_dense};
use crate::failure::{Failure, Result};
use crate::measure;
use crate::output::Content;
use crate::product::Options;
use crate::source::Source;
use crate::types::{Factor, factor, with_types};
use crate::verbs::{spmm, spmv};

/// A product with a dense matrix or a vector, as the command line has it.
#[derive(Debug)]
pub struct Spmm<'a> {
    /// `Spmm` or `Spmv`.
    pub operation: Operation,
    /// A.
    pub file: &'a Source,
    /// Columns of a random B, or its file.
    pub right: (Option<usize>, Option<&'a Path>),
    /// C before the product, if it is no random one.
    pub before: Option<&'a Path>,
    /// Factor of C before the product.
    pub beta: Option<&'a Factor>,
    /// Of B and C.
    pub layout: Layout,
    /// Types, how to compute, what is printed.
    pub options: &'a Options,
}

/// Multiplies over the ranks of the job and prints the result. Collective.
///
/// # Errors
/// On every rank.
pub fn spmm(args: &Spmm<'_>) -> Result {
    job::run(args.options.printing, args, |job| {
        let content = Content::Dense;
        job.together(args.options.running.check(content, args.options.types.dtype))?;
        with_types!(&args.options.types, |T, I, O| multiply::<T, I, O>(job, args))
    })
}

fn multiply<T: DistScalar, I: Index, O: Index>(job: &Job, args: &Spmm<'_>) -> Result {
    let Spmm { options: Options { running, choice, ranked, .. }, layout, .. } = *args;
    let (location, threads) = job.location(choice, *ranked)?;
    let parts = read::<T, I, O>(job, args.file, running.seed, ranked.spread())?;
    let a = &parts.matrix;
    let pattern = a.pattern();
    let (of_b, of_c) = match choice.transpose {
        false => (parts.columns(), parts.rows()),
        true => (parts.rows(), parts.columns()),
    };
    let (rows_of_b, rows_of_c) = (of_b.partition.rows(), of_c.partition.rows());
    let of_file = |path: &Path, name, rows, columns| -> Result<Dense<T>> {
        match args.operation {
            Operation::Spmv => {
                let values = spmv::vector_file(path, name, rows)?;
                Ok(Dense::from_row_major(rows, 1, values)?)
            }
            _ => spmm::dense_file(path, (args.operation, name), layout, rows, columns),
        }
    };
    let names = if args.operation == Operation::Spmv { ["x", "y"] } else { ["B", "C"] };
    let read_b = |path| of_file(path, names[0], rows_of_b, None);
    let file = args.right.1.map(|path| move || read_b(path));
    let random = Operand::Random { columns: args.right.0.unwrap_or(1), seed: running.seed };
    let operand = file.as_ref().map_or(random, |read| Operand::File(read));
    let b = operand.part(job, of_b, layout)?;
    let columns = b.local().ncols();

    let request = pattern.spmm(columns).problem.layouts(layout, layout).calls(running.calls());
    let problem = gustav::Problem { operation: args.operation, ..choice.refine(request) };
    let (one, zero) = (problem.semiring.one(), problem.semiring.zero());
    let alpha = job.together(factor("alpha", running.alpha.as_ref(), one))?;
    let beta = job.together(factor("beta", args.beta, zero))?;
    let read_c = |path| of_file(path, names[1], rows_of_c, Some(columns));
    let file = args.before.map(|path| move || read_c(path));
    let random = Operand::Random { columns, seed: running.seed.wrapping_add(1) };
    let of_before = file.as_ref().map_or(random, |read| Operand::File(read));
    let before = match beta == zero {
        true => None,
        false => Some(of_before.part(job, of_c, layout)?),
    };

    let zeros = DistDense::<T>::zeros(&job.ranks, of_c.partition, columns, layout);
    let mut c = job.together(zeros.map_err(Failure::from))?;
    let (mut plan, plan_ms) = measure::once(|| Engine::<T>::new(&location, pattern, &problem))?;
    let scale = Scale::new().alpha(alpha).beta(beta);
    // β = 0 must not read it.
    c.local_mut().data_mut().fill(T::from_f64(f64::NAN));
    let first = before.as_ref().map(DistDense::local);
    job.together(plan.upload(a, b.local(), c.local(), first))?;
    let timing = job.repeat(running.repeat, &mut |step| match step {
        Step::Prepare => plan.prepare(c.local_mut(), first),
        Step::Execute => plan.execute(a, b.local(), c.local_mut(), scale),
    })?;
    job.together(plan.download(c.local_mut()))?;
    let sample = sample(job, c.local().data())?;

    let gathered = match running.verify {
        true => gather_dense(job, &c, of_c)?,
        false => None,
    };
    // Read once more, by one rank, and not in parts.
    let whole = match running.verify {
        true => job.first(|| args.file.read::<T, I, O>(running.seed, job.printing))?,
        false => None,
    };
    let verdict = match (&whole, &gathered) {
        (Some(a), Some(c)) => {
            let _spinner = crate::output::spinner(job.printing, "verifying");
            let b = operand.whole(rows_of_b, layout);
            let before = before.map(|_| of_before.whole(rows_of_c, layout)).transpose();
            let check = b.and_then(|b| {
                let before = before?;
                let product = oracle::Spmm {
                    semiring: problem.semiring,
                    transpose_a: problem.transpose_a,
                    alpha,
                    beta,
                    before: before.as_ref().map(Dense::view),
                    ..oracle::Spmm::new(a.view(), b.view())
                };
                Ok(product.verify(c.view())?)
            });
            Some(check)
        }
        _ => None,
    };
    let verdict = job.together(verdict.transpose())?;
    if let Some(path) = &running.output {
        write_dense(job, &c, of_c, path)?;
    }
    let op = if problem.transpose_a { "Aᵀ" } else { "A" };
    let formula = match args.operation {
        Operation::Spmv => format!("y = {op}·x"),
        _ => format!("C = {op}·B, {columns} columns"),
    };
    let finished = Finished {
        source: args.file,
        types: &args.options.types,
        explanation: plan.explain(),
        partition: ranked.spread(),
        threads,
        plan_ms,
        timing,
        multiplications: Some(problem.nnz as f64 * columns as f64),
        nnz_c: None,
        formula,
        sample,
        verdict,
    };
    finished.print(job)
}
