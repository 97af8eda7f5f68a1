//! The kernels compiled for every type of values, once and in this crate.

use gustav_core::{Semiring, bf16, f16};

use super::segmented;
use crate::arch::Isa;
use crate::arch::vector::Dispatch;
use crate::softmax::segmented as softmax;

/// A type of values that attention and softmax are compiled for. Plans refuse integers: their
/// kernels do nothing.
pub trait AttentionKernels: Dispatch {
    /// A step of an attention or of its gradients.
    ///
    /// # Safety
    /// `isa` is available, and the operands fit the pattern of the task's part.
    #[doc(hidden)]
    unsafe fn attend(isa: Isa, task: segmented::Task<'_, Self>);

    /// A step of a softmax or of its gradient.
    ///
    /// # Safety
    /// As [`AttentionKernels::attend`].
    #[doc(hidden)]
    unsafe fn soften(isa: Isa, task: softmax::Task<'_, Self>);
}

macro_rules! compiled {
    ($($t:ty),*) => {$(
        impl AttentionKernels for $t {
            unsafe fn attend(isa: Isa, task: segmented::Task<'_, Self>) {
                // SAFETY: promised by the caller.
                unsafe { Self::vectorize(isa, Semiring::PlusTimes, task) }
            }
            unsafe fn soften(isa: Isa, task: softmax::Task<'_, Self>) {
                // SAFETY: promised by the caller.
                unsafe { Self::vectorize(isa, Semiring::PlusTimes, task) }
            }
        }
    )*};
}

macro_rules! without {
    ($($t:ty),*) => {$(
        impl AttentionKernels for $t {
            unsafe fn attend(_: Isa, _: segmented::Task<'_, Self>) {}
            unsafe fn soften(_: Isa, _: softmax::Task<'_, Self>) {}
        }
    )*};
}

compiled!(f16, bf16, f32, f64);
without!(i32, i64);
