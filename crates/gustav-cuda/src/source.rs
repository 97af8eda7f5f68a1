//! Names of Rust types in the kernels' source.

use gustav_core::{IndexType, SemiringKind};

/// A semiring's template in `kernels/common/semiring.cuh`.
pub(crate) fn semiring(kind: SemiringKind) -> &'static str {
    match kind {
        SemiringKind::PlusTimes => "PlusTimes",
        SemiringKind::MinPlus => "MinPlus",
        SemiringKind::MaxTimes => "MaxTimes",
        SemiringKind::OrAnd => "OrAnd",
        SemiringKind::PlusFirst => "PlusFirst",
        SemiringKind::PlusSecond => "PlusSecond",
    }
}

/// The narrowest index type that holds every number below `bound`.
pub(crate) fn narrowest(bound: u64) -> IndexType {
    if bound <= 1 << 32 { IndexType::U32 } else { IndexType::U64 }
}
