//! SpGEMM over ranks.

use gustav_core::{Index, Semiring, bf16};
use gustav_mpi::{DistScalar, SpgemmPlan};
use gustav_testkit::battery::{Settings, check_spgemm_over};

use super::job::Job;
use super::rows::{joined, pattern_of};
use super::spread::Spreads;

fn battery<T: DistScalar, I: Index, O: Index>(job: &impl Job, semiring: Semiring) {
    let mut spreads = Spreads::over(job.sizes());
    check_spgemm_over::<T, I, O>(semiring, &job.settings(Settings::default()), |case| {
        let spread = spreads.next();
        let rows = spread.partition(case.a.nrows());
        let inner = spread.partition(case.b.nrows());
        let columns = spread.partition(case.b.ncols());
        let parts = job.on_ranks(&spread.hosts(), 64, |ranks| {
            let (a, of_a) = pattern_of(&ranks, &case.a, (&rows, &inner))?;
            let (b, of_b) = pattern_of(&ranks, &case.b, (&inner, &columns))?;
            let request = a.spgemm(&b).semiring(semiring).sorted(case.sorted);
            let mut plan: SpgemmPlan<T, I, O> = request.plan(&spread.device())?;
            let first = plan.execute(&of_a, &of_b, None)?;
            // The pattern is known from now on.
            let second = plan.execute(&of_a, &of_b, None)?;
            assert_eq!(first.local().pattern().id(), second.local().pattern().id());
            assert_eq!(second.pattern().rows(), &rows);
            Ok(second.local().clone())
        })?;
        joined(&parts, case.b.ncols())
    });
}

pub fn f32_battery(job: &impl Job) {
    battery::<f32, u32, u32>(job, Semiring::PlusTimes);
}

pub fn batteries_of_other_types_and_semirings(job: &impl Job) {
    battery::<f64, u64, u64>(job, Semiring::MinPlus);
    battery::<i32, u32, u64>(job, Semiring::OrAnd);
    battery::<bf16, u64, u32>(job, Semiring::PlusTimes);
}
