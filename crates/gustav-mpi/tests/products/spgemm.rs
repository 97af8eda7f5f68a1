//! SpGEMM over ranks.

use gustav_core::{Csr, Error, Result};
use gustav_mpi::{DistPattern, Partition, Ranks, SpgemmPlan};

use crate::cases::rows::pattern_of;
use crate::cases::spgemm;
use crate::cases::spread::Spread;
use crate::common::{Threads, on_ranks};

#[test]
fn f32_battery() {
    spgemm::f32_battery(&Threads);
}

#[test]
fn batteries_of_other_types_and_semirings() {
    spgemm::batteries_of_other_types_and_semirings(&Threads);
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
