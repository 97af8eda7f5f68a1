//! SpMM over ranks.

use gustav_core::{Index, Result, Scale, Semiring, bf16, f16};
use gustav_mpi::{DistScalar, SpmmPlan};
use gustav_testkit::battery::{Settings, SpmmCase, check_spmm_over};

use super::job::Job;
use super::rows::{Rows, pattern_of};
use super::spread::{Spread, Spreads};

/// The product of `case` over ranks.
pub fn multiply<T: DistScalar, I: Index, O: Index>(
    job: &impl Job,
    mut case: SpmmCase<'_, T, I, O>,
    semiring: Semiring,
    deterministic: bool,
    spread: Spread,
) -> Result<()> {
    let (rows, columns) = (spread.partition(case.a.nrows()), spread.partition(case.a.ncols()));
    let (of_b, of_c) = if case.transpose_a { (&rows, &columns) } else { (&columns, &rows) };
    let before = case.c.as_view();
    let (alpha, beta) = (case.alpha, case.beta);
    let layouts = (case.b.layout(), before.layout());
    // Messages of 100 bytes: most are split.
    let parts = job.on_ranks(&spread.hosts(), 100, |ranks| {
        let rank = ranks.rank();
        let (a, values) = pattern_of(&ranks, &case.a, (&rows, &columns))?;
        let b = Rows::of(&case.b, of_b, rank);
        let mut c = Rows::of(&before, of_c, rank);
        let mut plan: SpmmPlan<T> = a
            .spmm(case.b.ncols())
            .transpose(case.transpose_a)
            .semiring(semiring)
            .deterministic(deterministic)
            .layouts(layouts.0, layouts.1)
            .plan(&spread.device())?;
        // A second execution finds what the first left.
        let mut first = Rows::of(&before, of_c, rank);
        for c in [&mut first, &mut c] {
            plan.execute(&values, b.view(), c.view_mut(), Scale::new().alpha(alpha).beta(beta))?;
        }
        assert!(!deterministic || c.has_bits_of(&first), "an execution has other bits");
        Ok(c)
    })?;
    for (rank, part) in parts.iter().enumerate() {
        part.copy_to(&mut case.c, of_c, rank);
    }
    Ok(())
}

fn battery<T: DistScalar, I: Index, O: Index>(
    job: &impl Job,
    semiring: Semiring,
    settings: Settings,
) {
    let mut spreads = Spreads::over(job.sizes());
    let mut number = 0;
    check_spmm_over::<T, I, O>(semiring, &job.settings(settings), |case| {
        number += 1;
        multiply(job, case, semiring, number % 2 == 0, spreads.next())
    });
}

fn few_columns() -> Settings {
    Settings { columns: vec![1, 3, 8, 33], ..Settings::default() }
}

pub fn f32_plus_times(job: &impl Job) {
    battery::<f32, u32, u32>(job, Semiring::PlusTimes, Settings::default());
}

pub fn f64_plus_times_with_wide_indices(job: &impl Job) {
    battery::<f64, u64, u64>(job, Semiring::PlusTimes, few_columns());
}

pub fn sixteen_bits_are_summed_in_f32(job: &impl Job) {
    battery::<f16, u32, u64>(job, Semiring::PlusTimes, few_columns());
    battery::<bf16, u64, u32>(job, Semiring::PlusTimes, few_columns());
}

pub fn integers_are_exact(job: &impl Job) {
    battery::<i32, u32, u32>(job, Semiring::PlusTimes, few_columns());
    battery::<i64, u32, u32>(job, Semiring::PlusTimes, few_columns());
}

pub fn every_semiring(job: &impl Job) {
    for semiring in Semiring::ALL {
        battery::<f32, u32, u32>(job, semiring, Settings { columns: vec![2, 7], ..few_columns() });
        battery::<i32, u32, u32>(job, semiring, Settings { columns: vec![4], ..few_columns() });
        battery::<f16, u32, u32>(job, semiring, Settings { columns: vec![5], ..few_columns() });
    }
}
