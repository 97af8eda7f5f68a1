//! The catalog of row orders and their names.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::{Error, Index, PatternView, Result};

use super::row_order::{Arrangement, RowOrder};
use super::view::{RowView, Search, WarpShape};
use super::{
    cta_aware, dcsr, flipped, graph_growing, hybrid_1, hybrid_2_1, hybrid_2_2, hybrid_2_3,
    label_propagation, lpt, min_hash, plain, reverse_cuthill_mckee, stored, warp_aware,
};

macro_rules! orders {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $source:literal, $build:expr;)*) => {
        /// A row order of the catalog. The name is the same on the command line, in records, in
        /// file names and in `docs/orders/`.
        #[non_exhaustive]
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum Order {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Order {
            /// Every order.
            pub const ALL: &[Order] = &[$(Order::$variant),*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self { $(Order::$variant => $name,)* }
            }

            /// Where it comes from: paper and section, or "ours".
            pub const fn source(self) -> &'static str {
                match self { $(Order::$variant => $source,)* }
            }

            fn arrange<I: Index, O: Index>(
                self,
                view: &RowView<'_, '_, I, O>,
            ) -> Result<Arrangement> {
                match self { $(Order::$variant => ($build)(view),)* }
            }
        }
    };
}

orders! {
    /// Rows as they are stored.
    Stored = "stored", "row permutations for SpMM on GPUs, §II-A", stored::arrange;
    /// By warp load, largest first; rows of equal load as stored.
    Plain = "plain", "row permutations for SpMM on GPUs, §III-A", plain::arrange;
    /// Plain, with every second group of (one row per warp) reversed.
    Flipped = "flipped", "row permutations for SpMM on GPUs, §III-A", flipped::arrange;
    /// Longest processing time: largest first, each row to the warp with the least load so far.
    Lpt = "lpt", "row permutations for SpMM on GPUs, §III-A", lpt::arrange;
    /// Each row reads cache lines similar to those of the row before it in its warp.
    WarpAware = "warp-aware", "row permutations for SpMM on GPUs, §III-B", warp_aware::arrange;
    /// Each row reads cache lines similar to those of the row before it in the CTA.
    CtaAware = "cta-aware", "row permutations for SpMM on GPUs, §III-B", cta_aware::arrange;
    /// Plain, rows of equal load by similarity to the row before.
    Hybrid1Plain = "hybrid-1-plain", "row permutations for SpMM on GPUs, §III-C", hybrid_1::plain;
    /// Flipped, rows of equal load by similarity to the row before.
    Hybrid1Flipped = "hybrid-1-flipped", "row permutations for SpMM on GPUs, §III-C",
        hybrid_1::flipped;
    /// Longest processing time, rows of equal load by similarity to the row before.
    Hybrid1Lpt = "hybrid-1-lpt", "row permutations for SpMM on GPUs, §III-C", hybrid_1::lpt;
    /// CTA-aware, equally similar rows by warp load.
    Hybrid21 = "hybrid-2-1", "row permutations for SpMM on GPUs, §III-C", hybrid_2_1::arrange;
    /// CTA-aware, equally similar rows by similarity to the row before in the warp.
    Hybrid22 = "hybrid-2-2", "row permutations for SpMM on GPUs, §III-C", hybrid_2_2::arrange;
    /// Warp-aware, equally similar rows by warp load.
    Hybrid23 = "hybrid-2-3", "row permutations for SpMM on GPUs, §III-C", hybrid_2_3::arrange;
    /// The nonempty rows as stored, then the empty ones.
    Dcsr = "dcsr", "row permutations for SpMM on GPUs, §II-A", dcsr::arrange;
    /// Neighbours of the graph of A close to each other, breadth first.
    ReverseCuthillMckee = "reverse-cuthill-mckee", "Cuthill, McKee 1969; George, Liu 1979",
        reverse_cuthill_mckee::arrange;
    /// Communities of the graph of A, found by label propagation, one after another.
    LabelPropagation = "label-propagation", "ours, after Raghavan, Albert, Kumara 2007",
        label_propagation::arrange;
    /// Blocks of rows that read the same rows of B, grown one row at a time.
    GraphGrowing = "graph-growing", "ours, after Karypis, Kumar 1998", graph_growing::arrange;
    /// Such blocks, each begun at the first remaining row as stored.
    GraphGrowingStored = "graph-growing-stored", "ours, after Karypis, Kumar 1998",
        graph_growing::stored;
    /// Such blocks, each begun at the first remaining row of reverse Cuthill–McKee.
    GraphGrowingRcm = "graph-growing-rcm", "ours, after Karypis, Kumar 1998", graph_growing::rcm;
    /// By min-hashes of the column sets, so that rows which share columns are likely to be
    /// neighbours.
    MinHash = "min-hash", "ours, after Broder 1997", min_hash::arrange;
}

impl Order {
    /// Whether it consists of blocks of rows that read the same rows of B.
    pub const fn has_blocks(self) -> bool {
        matches!(self, Order::GraphGrowing | Order::GraphGrowingStored | Order::GraphGrowingRcm)
    }

    /// The order of `a`'s rows for CTAs of `shape`. `search` is how greedy orders search for the
    /// next row; the others ignore it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a shape or a bound of 0, [`Error::Overflow`] for 2³² − 1 rows or
    /// more, [`Error::OutOfMemory`].
    pub fn of<I: Index, O: Index>(
        self,
        a: &PatternView<'_, I, O>,
        shape: WarpShape,
        search: Search,
    ) -> Result<RowOrder> {
        let view = RowView::new(a, shape, search)?;
        let arrangement = self.arrange(&view)?;
        RowOrder::new(self, shape, a.nrows(), arrangement)
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Order {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        Order::ALL.iter().copied().find(|o| o.name() == s).ok_or_else(|| Error::Argument {
            name: "order",
            found: s.into(),
            expected: Order::ALL.iter().map(|o| o.name()).collect::<Vec<_>>().join(", "),
        })
    }
}
