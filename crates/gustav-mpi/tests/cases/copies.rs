//! SpMM by teams of ranks.

use gustav_core::{Index, Result, Scale, Semiring};
use gustav_mpi::{DistScalar, Replicated, ReplicatedSpmmPlan};
use gustav_testkit::battery::{Settings, SpmmCase, check_spmm_over};

use super::job::Job;
use super::rows::{Rows, pattern_of};
use super::spmm;
use super::spread::{Spread, Spreads};

fn replicated(spread: &Spread, copies: Option<usize>) -> Replicated {
    match copies {
        Some(copies) => Replicated::new(spread.device(), copies),
        None => Replicated::automatic(spread.device()),
    }
}

/// The product of `case` over ranks in teams of `copies`, else of an automatic number; that of Aᵀ by ranks alone.
fn multiply<T: DistScalar, I: Index, O: Index>(
    job: &impl Job,
    mut case: SpmmCase<'_, T, I, O>,
    semiring: Semiring,
    deterministic: bool,
    (spread, copies): (Spread, Option<usize>),
) -> Result<()> {
    if case.transpose_a {
        return spmm::multiply(job, case, semiring, deterministic, spread);
    }
    let (rows, columns) = (spread.partition(case.a.nrows()), spread.partition(case.a.ncols()));
    let before = case.c.as_view();
    let scale = Scale::new().alpha(case.alpha).beta(case.beta);
    let layouts = (case.b.layout(), before.layout());
    let parts = job.on_ranks(&spread.hosts(), 100, |ranks| {
        let rank = ranks.rank();
        let (a, values) = pattern_of(&ranks, &case.a, (&rows, &columns))?;
        let b = Rows::of(&case.b, &columns, rank);
        let mut c = Rows::of(&before, &rows, rank);
        let mut plan: ReplicatedSpmmPlan<T> = a
            .spmm(case.b.ncols())
            .semiring(semiring)
            .deterministic(deterministic)
            .layouts(layouts.0, layouts.1)
            .plan(&replicated(&spread, copies))?;
        assert_eq!(plan.explain().problem.dtype, T::DTYPE);
        // A second execution finds what the first left.
        let first = c.data.clone();
        plan.execute(&values, b.view(), c.view_mut(), scale)?;
        c.data = first;
        plan.execute(&values, b.view(), c.view_mut(), scale)?;
        Ok(c)
    })?;
    for (rank, part) in parts.iter().enumerate() {
        part.copy_to(&mut case.c, &rows, rank);
    }
    Ok(())
}

pub fn teams_multiply_as_ranks_do(job: &impl Job) {
    let (mut spreads, mut number) = (Spreads::over(job.sizes()), 0);
    for semiring in [Semiring::PlusTimes, Semiring::MaxTimes] {
        let settings = Settings { columns: vec![1, 3, 8], ..Settings::default() };
        check_spmm_over::<f64, u32, u32>(semiring, &job.settings(settings), |case| {
            number += 1;
            let spread = spreads.next();
            let divisors = (1..=spread.ranks).filter(|c| spread.ranks.is_multiple_of(*c));
            let choices: Vec<_> = divisors.map(Some).chain([None]).collect();
            let copies = choices[number % choices.len()];
            multiply(job, case, semiring, number % 2 == 0, (spread, copies))
        });
    }
}
