//! The battery: named nasty matrices × column counts × layouts × α, β × transposition, which
//! every algorithm of every backend must pass.
//!
//! [`check_spmm`], [`check_spmm_extremum`], [`check_spmv`], [`check_spgemm`], [`check_sddmm`],
//! [`check_softmax`], [`check_attention`] and those of gradients hand each case to a closure that
//! runs the kernel, compare the result with the [oracle](crate::oracle), and panic with a list of
//! the cases that failed.

mod attention;
mod covering;
mod extrema;
pub mod matrices;
mod report;
mod sddmm;
mod softmax;
mod spgemm;
mod spmm;
mod spmv;
mod storage;
pub mod values;

pub use attention::{
    AttentionCase, AttentionGradientsCase, check_attention, check_attention_gradients,
};
pub use extrema::{SpmmExtremumCase, check_spmm_extremum};
pub use sddmm::{SddmmCase, check_sddmm};
pub use softmax::{SoftmaxCase, SoftmaxGradientCase, check_softmax, check_softmax_gradient};
pub use spgemm::{SpgemmCase, check_spgemm, check_spgemm_over};
pub use spmm::{SpmmCase, check_spmm, check_spmm_over};
pub use spmv::{SpmvCase, check_spmv, check_spmv_over};

use gustav_core::Layout;

/// Depths of the battery: columns of X and Y of an SDDMM.
pub const DEPTHS: [usize; 14] = [0, 1, 3, 4, 8, 16, 31, 32, 33, 64, 100, 128, 256, 1000];

/// Column counts of the battery.
pub const COLUMNS: [usize; 15] = [1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 40, 64, 100, 128, 256];

/// How many of the combinations are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// A fixed selection in which every pair of choices occurs: every matrix with every column
    /// count, every layout with every (α, β), and so on.
    #[default]
    Covering,
    /// Every combination.
    Full,
}

/// Which (α, β) a case has; what stands for zero and one depends on the semiring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// (one, zero): the plain product. C is poisoned beforehand.
    Plain,
    /// (α, zero). C is poisoned beforehand.
    Alpha,
    /// (one, one): the product is added to C.
    Accumulate,
    /// (α, β).
    AlphaBeta,
}

impl Scaling {
    /// All of them.
    pub const ALL: [Scaling; 4] =
        [Scaling::Plain, Scaling::Alpha, Scaling::Accumulate, Scaling::AlphaBeta];
}

/// Which cases an algorithm is asked to pass. The default is everything; an algorithm that is
/// defined for less names what it takes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Every combination or a covering selection.
    pub extent: Extent,
    /// Numbers of columns of B and C.
    pub columns: Vec<usize>,
    /// Layouts of B and C.
    pub layouts: Vec<(Layout, Layout)>,
    /// Whether leading dimensions larger than needed are tried besides packed ones.
    pub padded: bool,
    /// Transposition of A.
    pub transpose_a: Vec<bool>,
    /// (α, β).
    pub scalings: Vec<Scaling>,
    /// Whether matrices with NaN, infinities and overflow are tried.
    pub nonfinite: bool,
    /// Whether matrices with unsorted or duplicate columns are tried.
    pub unsorted: bool,
    /// Whether SpGEMM must return sorted rows, may return them in any order, or both in turn.
    pub sorted: Vec<bool>,
    /// Whether the gradient of a bias that several heads of an attention share is tried.
    pub shared_gradients: bool,
    /// One of so many of these cases is taken of the products of matrices, where each takes long. A prime number takes
    /// every choice of every factor.
    pub one_of: usize,
    /// The first that is taken, so that batteries take different ones.
    pub first: usize,
}

impl Default for Settings {
    fn default() -> Self {
        use Layout::{ColumnMajor, RowMajor};
        Settings {
            extent: Extent::Covering,
            columns: COLUMNS.to_vec(),
            layouts: [RowMajor, ColumnMajor]
                .into_iter()
                .flat_map(|b| [RowMajor, ColumnMajor].map(|c| (b, c)))
                .collect(),
            padded: true,
            transpose_a: vec![false, true],
            scalings: Scaling::ALL.to_vec(),
            nonfinite: true,
            unsorted: true,
            sorted: vec![true, false],
            shared_gradients: true,
            one_of: 1,
            first: 0,
        }
    }
}

impl Settings {
    /// Every combination in place of the covering selection.
    #[must_use]
    pub fn full(self) -> Self {
        Settings { extent: Extent::Full, ..self }
    }

    /// Without transposed A.
    #[must_use]
    pub fn untransposed(self) -> Self {
        Settings { transpose_a: vec![false], ..self }
    }

    /// Only these layouts of B and C.
    #[must_use]
    pub fn layout(self, b: Layout, c: Layout) -> Self {
        Settings { layouts: vec![(b, c)], ..self }
    }

    /// The cases that are taken.
    fn taken<C>(&self, cases: Vec<C>) -> impl Iterator<Item = C> + use<C> {
        let first = self.first % self.one_of.clamp(1, cases.len().max(1));
        cases.into_iter().skip(first).step_by(self.one_of.max(1))
    }

    /// Whether matrix `m` is among those to pass.
    fn takes(&self, m: &matrices::Traits) -> bool {
        (self.nonfinite || m.finite) && (self.unsorted || m.canonical)
    }
}
