//! AVX-512.

use super::vector::Vector;

/// AVX-512 F, BW, DQ and VL; used only inside functions compiled for them.
#[derive(Clone, Copy)]
pub(super) struct Avx512;

impl Vector for Avx512 {}
