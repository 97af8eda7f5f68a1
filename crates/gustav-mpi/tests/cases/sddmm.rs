//! SDDMM over ranks.

use gustav_core::{Index, Scale, f16};
use gustav_cpu::SddmmCall;
use gustav_mpi::{DistPattern, DistScalar, SddmmPlan};
use gustav_testkit::battery::{SddmmCase, Settings, check_sddmm};

use super::job::Job;
use super::rows::{Rows, rows_of};
use super::spread::Spreads;

fn battery<T: DistScalar, I: Index, O: Index>(job: &impl Job) {
    let mut spreads = Spreads::over(job.sizes());
    check_sddmm::<T, I, O>(&job.settings(Settings::default()), |case| {
        let SddmmCase { pattern, x, y, alpha, beta, factors, values, .. } = case;
        let spread = spreads.next();
        let (rows, columns) =
            (spread.partition(pattern.nrows()), spread.partition(pattern.ncols()));
        let before = values.to_vec();
        let all = pattern.with_values(&before)?;
        let parts = job.on_ranks(&spread.hosts(), 64, |ranks| {
            let rank = ranks.rank();
            let (local, mut values) = rows_of(&all, &rows, rank)?;
            let factors =
                factors.map(|f| rows_of(&pattern.with_values(f)?, &rows, rank)).transpose()?;
            let a = DistPattern::new(&ranks, &columns, local)?;
            let (x, y) = (Rows::of(&x, &rows, rank), Rows::of(&y, &columns, rank));
            let layouts = (x.view().layout(), y.view().layout());
            let request = a.sddmm(x.view().ncols()).layouts(layouts.0, layouts.1);
            let mut plan: SddmmPlan<T> = request.plan(&spread.device())?;
            let scale = Scale::new().alpha(alpha).beta(beta);
            let factors = factors.as_ref().map(|(_, f)| f.into());
            plan.execute(x.view(), y.view(), &mut values, SddmmCall { scale, factors })?;
            Ok(values)
        })?;
        values.copy_from_slice(&parts.concat());
        Ok(())
    });
}

pub fn f32_battery(job: &impl Job) {
    battery::<f32, u32, u32>(job);
}

pub fn battery_of_sixteen_bits_and_integers(job: &impl Job) {
    battery::<f16, u64, u64>(job);
    battery::<i64, u32, u64>(job);
}
