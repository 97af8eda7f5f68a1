//! SpMV over ranks.

use gustav_core::{Index, Scale, Semiring, f16};
use gustav_mpi::{DistScalar, SpmvPlan};
use gustav_testkit::battery::{Settings, SpmvCase, check_spmv_over};

use super::job::Job;
use super::rows::pattern_of;
use super::spread::Spreads;

fn battery<T: DistScalar, I: Index, O: Index>(job: &impl Job, semiring: Semiring) {
    let mut spreads = Spreads::over(job.sizes());
    check_spmv_over::<T, I, O>(semiring, &job.settings(Settings::default()), |case| {
        let SpmvCase { a, transpose_a, x, y, alpha, beta, .. } = case;
        let spread = spreads.next();
        let (rows, columns) = (spread.partition(a.nrows()), spread.partition(a.ncols()));
        let (of_x, of_y) = if transpose_a { (&rows, &columns) } else { (&columns, &rows) };
        let before = y.to_vec();
        let parts = job.on_ranks(&spread.hosts(), 32, |ranks| {
            let rank = ranks.rank();
            let (a, values) = pattern_of(&ranks, &a, (&rows, &columns))?;
            let request = a.spmv().transpose(transpose_a).semiring(semiring);
            let mut plan: SpmvPlan<T> = request.plan(&spread.device())?;
            let mut y = before[of_y.range(rank)].to_vec();
            let scale = Scale::new().alpha(alpha).beta(beta);
            plan.execute(&values, &x[of_x.range(rank)], &mut y, scale)?;
            Ok(y)
        })?;
        y.copy_from_slice(&parts.concat());
        Ok(())
    });
}

pub fn batteries(job: &impl Job) {
    battery::<f64, u32, u32>(job, Semiring::PlusTimes);
    battery::<f32, u64, u32>(job, Semiring::MinPlus);
    battery::<f16, u32, u64>(job, Semiring::PlusTimes);
    battery::<i64, u64, u64>(job, Semiring::MaxTimes);
}
