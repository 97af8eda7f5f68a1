//! SpMV over ranks.

use gustav_core::{Index, Result, Scale, Semiring, f16};
use gustav_mpi::{DistScalar, SpmvPlan};
use gustav_testkit::battery::{Settings, SpmvCase, check_spmv_over};

use crate::common::{Spreads, all_ok, on_ranks, pattern_of};

fn battery<T: DistScalar, I: Index, O: Index>(semiring: Semiring) {
    let mut spreads = Spreads::default();
    check_spmv_over::<T, I, O>(semiring, &Settings::default(), |case| {
        let SpmvCase { a, transpose_a, x, y, alpha, beta, .. } = case;
        let spread = spreads.next();
        let (rows, columns) = (spread.partition(a.nrows()), spread.partition(a.ncols()));
        let (of_x, of_y) = if transpose_a { (&rows, &columns) } else { (&columns, &rows) };
        let before = y.to_vec();
        let parts = all_ok(on_ranks(spread.in_process(32), |ranks| -> Result<_> {
            let rank = ranks.rank();
            let (a, values) = pattern_of(&ranks, &a, (&rows, &columns))?;
            let request = a.spmv().transpose(transpose_a).semiring(semiring);
            let mut plan: SpmvPlan<T> = request.plan(&spread.device())?;
            let mut y = before[of_y.range(rank)].to_vec();
            let scale = Scale::new().alpha(alpha).beta(beta);
            plan.execute(&values, &x[of_x.range(rank)], &mut y, scale)?;
            Ok(y)
        }))?;
        y.copy_from_slice(&parts.concat());
        Ok(())
    });
}

#[test]
fn batteries() {
    battery::<f64, u32, u32>(Semiring::PlusTimes);
    battery::<f32, u64, u32>(Semiring::MinPlus);
    battery::<f16, u32, u64>(Semiring::PlusTimes);
    battery::<i64, u64, u64>(Semiring::MaxTimes);
}
