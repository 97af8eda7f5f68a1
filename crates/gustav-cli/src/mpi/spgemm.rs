//! `gustav spgemm --mpi`.

use gustav::io::WriteOptions;
use gustav::{Csr, Index};
use gustav_mpi::{DistCsr, DistScalar, Partition, SpgemmPlan};
use gustav_testkit::oracle;

use super::job::{self, Job};
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
    let (device, threads) = job.device(choice, args.options.ranked)?;
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
    let (mut plan, plan_ms) = measure::once(|| {
        Ok(SpgemmPlan::<T, I, O>::new(patterns.0, patterns.1, &problem, &device)?)
    })?;
    let timing = job.repeat(running.repeat, &mut || {
        // Free the previous product first.
        product = None;
        product = Some(plan.execute(&a, &b, Some(alpha))?);
        Ok(())
    })?;
    let Some(c) = product else {
        return Err(Failure::Request("no product was computed".into()));
    };
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
