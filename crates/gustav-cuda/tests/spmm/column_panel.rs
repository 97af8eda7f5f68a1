//! `column-panel`.

use gustav_core::{Index, PlusTimes, Scalar, StaticSemiring};
use gustav_cuda::spmm::column_panel::Config;
use gustav_cuda::spmm::segmented::{self, Reduction};
use gustav_plan::Algorithm;

use crate::papers::check_values;

/// Panels and tiles so small that the battery's matrices have many of them.
fn small<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    let segment = segmented::Config {
        vector: 16 / T::DTYPE.bytes() as u32,
        lanes: 4,
        tiles: 1,
        subgroups: 2,
        warps: 1,
        chunk: 2,
        segments_per_group: 1,
        at_once: false,
        prefetch_b: false,
        stages: 0,
        prefetch_a: false,
        longest: Some(1024),
        first: 32,
        window: 1024,
        reduction: Reduction::FixUp,
        block: 64,
        resident: 384,
    };
    let config = Config { columns: 24, rows: 9, segment };
    crate::common::configured::<T, I, O, S>(gustav_cuda::Config::ColumnPanel(config));
}

#[test]
#[ignore = "needs a CUDA device"]
fn its_own_choice() {
    crate::common::named::<f32, u32, u32, PlusTimes>(Algorithm::ColumnPanel);
}

crate::common::of_every_type!(small);

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::ColumnPanel, |problem| problem);
}
