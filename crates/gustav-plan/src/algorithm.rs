//! The catalog of algorithms and their names.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::{Error, Operation};

macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $source:literal, [$($op:ident),*];)*) => {
        /// An algorithm of the catalog. The name is the same on the command line, in records, in
        /// file names and in `docs/algorithms/`.
        #[non_exhaustive]
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)*
        }

        impl Algorithm {
            /// Every algorithm.
            pub const ALL: &[Algorithm] = &[$(Algorithm::$variant),*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self { $(Algorithm::$variant => $name,)* }
            }

            /// Where it comes from: paper and section, or "ours".
            pub const fn source(self) -> &'static str {
                match self { $(Algorithm::$variant => $source,)* }
            }

            /// The products it computes.
            pub const fn operations(self) -> &'static [Operation] {
                match self { $(Algorithm::$variant => &[$(Operation::$op),*],)* }
            }
        }
    };
}

algorithms! {
    /// Whole rows, the same number of rows each.
    RowSplit = "row-split", "Yang, Buluç, Owens 2018, §4.1", [Spmm, Spmv];
    /// One thread a row, for very short rows.
    ThreadRow = "thread-row", "Yang, Buluç, Owens 2018, §4.1", [Spmm];
    /// The same number of nonzeros each; rows may be cut, carry-outs are added afterwards.
    NonzeroSplit = "nonzero-split", "Yang, Buluç, Owens 2018, §4.2", [Spmm, Spmv, Sddmm];
    /// The same number of nonzeros plus rows each.
    MergePath = "merge-path", "Merrill, Garland 2016; Yang, Buluç, Owens 2018, §4", [Spmm, Spmv];
    /// A strip of columns of C per CTA, rows distributed over its warps; column-major.
    OutputStationary = "output-stationary", "row permutations for SpMM on GPUs, §II-B", [Spmm];
    /// The same over the nonempty rows alone.
    Dcsr = "dcsr", "row permutations for SpMM on GPUs, §II-A", [Spmm];
    /// Compressed sparse blocks: one structure multiplies as A and as Aᵀ.
    Csb = "csb", "Aktulga et al. 2014; Yang, Buluç, Owens 2018, §6", [Spmm, Spmv];
    /// Tiles of B rows and panels of B columns, sized to the cache.
    ColumnPanel = "column-panel", "ours, after Yang, Buluç, Owens 2018, §6", [Spmm];
    /// A tile of B's rows stays in the shared memory of every multiprocessor; segments of A's rows
    /// are streamed.
    BStationary = "b-stationary", "ours", [Spmm, Sddmm];
    /// Rows cut into segments, long segments first; all columns of a segment in registers.
    Segmented = "segmented", "ours", [Spmm, Spmv, Softmax, Attention];
    /// Partitions with equal numbers of row starts and nonzeros, found by a search during the
    /// product: needs no inspection.
    EvenShares = "even-shares", "ours", [Spmm, Spmv];
    /// Neighbouring rows with the same pattern share every load of B.
    RowBlock = "row-block", "ours", [Spmm, Sddmm];
    /// Sliced ELL: slices of rows padded to their longest.
    SellP = "sell-p", "Anzt, Tomov, Dongarra 2015 (MAGMA)", [Spmm];
    /// ELLPACK with row lengths, several threads a row.
    EllR = "ell-r", "Ortega et al. 2014", [Spmm];
    /// Row segments that share rows of B through shared memory (heavy), and the remaining nonzeros
    /// (light).
    HeavyLight = "heavy-light", "Hong et al. 2018", [Spmm];
    /// Vectors of eight rows and one column on tensor cores.
    Tensor = "tensor", "ours", [Spmm];
    /// A as a dense matrix with its zeros, and a dense product.
    Dense = "dense", "cuBLAS; Yang, Buluç, Owens 2018, figure 7", [Spmm];
    /// Whole tiles of a dense product, of which the nonzeros are stored.
    DenseTiles = "dense-tiles", "ours", [Sddmm];
    /// Column indices compressed to runs and 16-bit differences.
    CompressedIndex = "compressed-index", "ours", [Spmv];
    /// The triple loop over dense operands.
    DenseNaive = "dense-naive", "Chen et al. 2025, §4.1.1, §4.2.1", [Spgemm];
    /// One row at a time in a hash map.
    HashRows = "hash-rows", "Chen et al. 2025, §4.1.2", [Spgemm];
    /// Persistent CTAs, a row of a dense C in shared memory.
    SharedRow = "shared-row", "Chen et al. 2025, §4.2.2", [Spgemm];
    /// Dense operands: the CPU converts blocks of A while the GPU multiplies the one before.
    Pipeline = "pipeline", "Chen et al. 2025, §4.3", [Spgemm];
    /// Tiles of B and C, for products larger than a device's memory.
    Tiled = "tiled", "Chen et al. 2025, §7.2", [Spgemm];
    /// The vendor's library; runs only when named or chosen, never as a silent fallback.
    Vendor = "vendor", "cuSPARSE", [Spmm, Spmv, Spgemm, Sddmm];
    /// Rows binned by their intermediate products; every bin has its own accumulator in shared
    /// memory.
    Binned = "binned", "ours", [Spgemm];
    /// Full rows of C with a dense accumulator and B packed for it, the others as `binned`.
    DenseOutput = "dense-output", "ours", [Spgemm];
    /// The entries at the positions of a given pattern alone.
    Masked = "masked", "ours", [Spgemm];
    /// Gustavson's row-wise product with an accumulator chosen per row.
    Gustavson = "gustavson", "ours, after Gustavson 1978", [Spgemm];
}

impl Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        Algorithm::ALL.iter().copied().find(|a| a.name() == s).ok_or_else(|| Error::Argument {
            name: "algorithm",
            found: s.into(),
            expected: Algorithm::ALL.iter().map(|a| a.name()).collect::<Vec<_>>().join(", "),
        })
    }
}
