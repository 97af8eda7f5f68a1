//! The types of values that are measured.

use gustav_core::Arith;

/// A type that every engine multiplies.
pub(crate) trait Value: Arith + gustav_cpu::CpuScalar + CrateValue {}

impl Value for f32 {}
impl Value for f64 {}

#[cfg(feature = "peers")]
pub(crate) use crate::engine::CrateValue;

/// What a type needs for the crates that are compiled in: nothing without them.
#[cfg(not(feature = "peers"))]
pub(crate) trait CrateValue {}
#[cfg(not(feature = "peers"))]
impl<T> CrateValue for T {}
