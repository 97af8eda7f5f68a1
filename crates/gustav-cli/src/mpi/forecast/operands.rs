//! The matrices whose product is counted, and how fast this machine multiplies them.

use gustav::{
    CpuScalar, Csr, Dense, Device, Index, Operation, Pattern, PatternRef, PatternView, SpgemmCall,
    SpmmRequest,
};

use super::Forecast;
use crate::failure::Result;
use crate::measure;
use crate::output;
use crate::random;
use crate::verbs::spgemm;

/// The rows of B of an SpGEMM.
pub struct Rows {
    /// Nonzeros of each.
    pub lengths: Vec<u64>,
    /// Columns of B.
    pub columns: usize,
}

impl Rows {
    fn of<I: Index, O: Index>(b: &PatternView<'_, I, O>) -> Self {
        let lengths = (0..b.nrows()).map(|row| b.row_len(row) as u64).collect();
        Rows { lengths, columns: b.ncols() }
    }

    /// Those of the transpose of `a`.
    fn of_transpose<I: Index, O: Index>(a: &PatternView<'_, I, O>) -> Self {
        let mut lengths = vec![0; a.ncols()];
        a.indices().iter().for_each(|column| lengths[column.to_usize()] += 1);
        Rows { lengths, columns: a.nrows() }
    }
}

/// What is counted.
pub struct Operands<I: Index, O: Index> {
    /// The pattern of A.
    pub a: Pattern<I, O>,
    /// B of an SpGEMM.
    pub b: Option<Rows>,
    /// Nonzeros times columns, or intermediate products, that a rank multiplies in a second.
    pub rate: f64,
}

impl<I: Index, O: Index> Operands<I, O> {
    /// Reads the patterns; values as well where the rate is to be measured on `device`.
    ///
    /// # Errors
    /// For files that cannot be read, shapes that do not fit, and lack of memory.
    pub fn read<T: CpuScalar>(args: &Forecast<'_>, device: &Device) -> Result<Self> {
        let Forecast { file, right, seed, printing, .. } = *args;
        match (args.operation, args.ranks.rate) {
            (Operation::Spgemm, None) => {
                let both = spgemm::Operands::<T, I, O>::choose(file, right, false, seed, printing)?;
                let rate = rate_of_spgemm(args, device, &both)?;
                let b = Some(Rows::of(&both.b().pattern().view()));
                Ok(Operands { a: both.a.pattern().clone(), b, rate })
            }
            (Operation::Spgemm, Some(rate)) => {
                let a = file.pattern::<T, I, O>(seed, printing)?;
                let b = match right {
                    Some(source) => {
                        let b = source.pattern::<T, I, O>(seed, printing)?;
                        spgemm::check_inner("A", a.ncols(), (b.nrows(), b.ncols()))?;
                        Rows::of(&b.view())
                    }
                    None if a.nrows() == a.ncols() => Rows::of(&a.view()),
                    None => {
                        output::note(printing, spgemm::NOT_SQUARE);
                        Rows::of_transpose(&a.view())
                    }
                };
                Ok(Operands { a, b: Some(b), rate })
            }
            (_, None) => {
                let a = file.read::<T, I, O>(seed, printing)?;
                let rate = rate_of_spmm(args, device, &a)?;
                Ok(Operands { a: a.pattern().clone(), b: None, rate })
            }
            (_, Some(rate)) => {
                let a = file.pattern::<T, I, O>(seed, printing)?;
                Ok(Operands { a, b: None, rate })
            }
        }
    }
}

/// Nonzeros times columns that this machine multiplies in a second: the SpMM of the whole matrix.
fn rate_of_spmm<T: CpuScalar, I: Index, O: Index>(
    args: &Forecast<'_>,
    device: &Device,
    a: &Csr<T, I, O>,
) -> Result<f64> {
    let request = a.pattern().spmm(args.columns);
    let problem = args.choice.refine(request.problem);
    let layout = problem.layout_b;
    let b = random::dense::<T>(problem.inner(), args.columns, layout, args.seed)?;
    let mut c = Dense::zeros(problem.output_rows(), args.columns, layout)?;
    let request: SpmmRequest<PatternRef<'_, I, O>> =
        SpmmRequest { pattern: PatternRef::from(a.pattern()), problem };
    let mut plan = request.plan::<T, _>(device)?;
    per_second(a.nnz() as f64 * args.columns as f64, || Ok(plan.execute(a, &b, &mut c, ())?))
}

/// Intermediate products that this machine computes in a second: the SpGEMM of the whole matrices.
fn rate_of_spgemm<T: CpuScalar, I: Index, O: Index>(
    args: &Forecast<'_>,
    device: &Device,
    operands: &spgemm::Operands<T, I, O>,
) -> Result<f64> {
    let (a, b) = (&operands.a, operands.b());
    let request = a.pattern().spgemm(b.pattern());
    let problem = args.choice.refine(request.problem);
    let mut plan = operands.request(&problem).plan::<T, _>(device)?;
    let products = gustav::intermediate_products(&a.pattern().view(), &b.pattern().view(), false);
    per_second(products as f64, || {
        let call = SpgemmCall { alpha: None, add: None, reuse: None };
        plan.execute(a, b, call)?;
        Ok(())
    })
}

/// `work`, at least 1, divided by the seconds of `run`.
fn per_second(work: f64, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let timing = measure::repeat(None, &mut || Ok(measure::once(&mut run)?.1))?;
    // At least a nanosecond, to avoid a division by zero.
    Ok(work.max(1.0) / (timing.median_ms.max(1e-6) / 1e3))
}
