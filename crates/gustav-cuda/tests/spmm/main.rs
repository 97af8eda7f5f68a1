//! SpMM on the device against the oracle, one file per algorithm.

/// The battery by the rules of an algorithm, in a test for each name, types and semiring.
macro_rules! batteries {
    ($algorithm:ident: $($name:ident: $t:ty, $i:ty, $o:ty, $s:ty;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            crate::common::named::<$t, $i, $o, $s>(gustav_plan::Algorithm::$algorithm);
        }
    )*};
}

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/graph.rs"]
mod graph;
mod papers;

mod auto;
mod b_stationary;
mod column_panel;
mod dcsr;
mod dense;
mod ell_r;
mod epilogue;
mod even_shares;
mod heavy_light;
mod merge_path;
mod nonzero_split;
mod older_devices;
mod operands;
mod orders;
mod output_stationary;
mod reduce;
mod row_block;
mod row_split;
mod segmented;
mod sell_p;
mod succession;
mod tensor;
mod thread_row;
mod vendor;
