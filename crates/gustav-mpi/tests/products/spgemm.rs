//! SpGEMM over ranks.

use gustav_core::{Csr, Error, Index, Result, Semiring, bf16};
use gustav_mpi::{DistPattern, DistScalar, Partition, Ranks, SpgemmPlan};
use gustav_testkit::battery::{Settings, check_spgemm_over};

use crate::common::{Spread, Spreads, all_ok, joined, on_ranks, pattern_of};

fn battery<T: DistScalar, I: Index, O: Index>(semiring: Semiring) {
    let mut spreads = Spreads::default();
    check_spgemm_over::<T, I, O>(semiring, &Settings::default(), |case| {
        let spread = spreads.next();
        let rows = spread.partition(case.a.nrows());
        let inner = spread.partition(case.b.nrows());
        let columns = spread.partition(case.b.ncols());
        let ranks = spread.in_process(64);
        let parts = all_ok(on_ranks(ranks, |ranks| -> Result<_> {
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
        }))?;
        joined(&parts, case.b.ncols())
    });
}

#[test]
fn f32_battery() {
    battery::<f32, u32, u32>(Semiring::PlusTimes);
}

#[test]
fn batteries_of_other_types_and_semirings() {
    battery::<f64, u64, u64>(Semiring::MinPlus);
    battery::<i32, u32, u64>(Semiring::OrAnd);
    battery::<bf16, u64, u32>(Semiring::PlusTimes);
}

#[test]
fn rows_of_b_have_to_be_where_columns_of_a_are() {
    let a = Csr::<f32>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0; 2]).unwrap();
    let spread = Spread { ranks: 2, kind: 0, on_host: 2, communication: Default::default() };
    let found = on_ranks(Ranks::in_process(2), |ranks| {
        let (even, all) = (Partition::even(2, 2), Partition::of_counts(&[2, 0]).unwrap());
        let (of_a, _) = pattern_of(&ranks, &a.view(), (&even, &all)).unwrap();
        let of_b: DistPattern = pattern_of(&ranks, &a.view(), (&even, &even)).unwrap().0;
        let plan: Result<SpgemmPlan<f32>> = of_a.spgemm(&of_b).plan(&spread.device());
        let masked: Result<SpgemmPlan<f32>> =
            of_a.spgemm(&of_b).mask(of_a.clone()).plan(&spread.device());
        assert!(matches!(masked, Err(Error::Unsupported { .. })));
        plan.map(drop)
    });
    assert!(found.iter().all(|f| matches!(f, Err(Error::Shape { .. }))), "{found:?}");
}
