//! An algorithm of SpGEMM as a plan uses it.

use std::ops::ControlFlow;

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_plan::Algorithm;

use super::sparse_operands::Operands;
use super::unsupported;
use crate::device::Device;
use crate::matrix::DeviceCsr;

/// Progress of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Tiles of C that are done.
    pub done: usize,
    /// Tiles of C in all.
    pub tiles: usize,
}

/// An algorithm prepared for one pattern of A and of B: what a plan holds.
pub(crate) trait Method<T: Scalar, I: Index, O: Index>: Send {
    /// Bytes that it holds on the device.
    fn bytes(&self) -> usize;

    /// Intermediate products, where it has counted them.
    fn products(&self) -> Option<u64> {
        None
    }

    /// Entries of C, where it has counted them.
    fn entries(&self) -> Option<u64> {
        None
    }

    /// Queues C = scale(α, A·B) as a new matrix on the device's own stream.
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the device's stream has done the work, and A and
    /// B have the patterns that the method was prepared for.
    unsafe fn execute(
        &mut self,
        device: &Device,
        operands: &Operands,
    ) -> Result<DeviceCsr<T, I, O>>;

    /// The same; calls `watch` after every part if the method computes C in parts. [`ControlFlow::Break`] stops the
    /// product.
    ///
    /// # Safety
    /// As [`Method::execute`].
    unsafe fn execute_watched(
        &mut self,
        device: &Device,
        operands: &Operands,
        watch: Watch<'_>,
    ) -> Result<DeviceCsr<T, I, O>> {
        // SAFETY: the caller's promise.
        let c = unsafe { self.execute(device, operands)? };
        report(device, watch, Progress { done: 1, tiles: 1 })?;
        Ok(c)
    }

    /// As [`Method::execute`], for a method that is not used any more: what it holds may become C's.
    ///
    /// # Safety
    /// As there.
    unsafe fn finish(
        mut self: Box<Self>,
        device: &Device,
        operands: &Operands,
    ) -> Result<DeviceCsr<T, I, O>> {
        // SAFETY: the caller's promise.
        unsafe { self.execute(device, operands) }
    }

    /// Whether it computes into the pattern of an earlier result.
    fn refills(&self) -> bool {
        true
    }

    /// Queues the values of C = scale(α, A·B) into `c`, of the pattern of an earlier result, on the
    /// device's own stream; neither allocates nor waits.
    ///
    /// # Safety
    /// As [`Method::execute`].
    unsafe fn refill(
        &mut self,
        device: &Device,
        operands: &Operands,
        c: &mut DeviceCsr<T, I, O>,
    ) -> Result<()>;
}

/// Called after every part of C; may stop the rest.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Waits for the queued parts and calls `watch`; stopping after the last part has no effect.
pub(crate) fn report(device: &Device, watch: Watch<'_>, progress: Progress) -> Result<()> {
    device.stream().synchronize()?;
    let Progress { done, tiles: of } = progress;
    match watch(progress) {
        ControlFlow::Break(()) if done < of => {
            Err(Error::Cancelled { what: "a sparse product", done, of })
        }
        _ => Ok(()),
    }
}

/// A refusal to compute into a known pattern.
pub(crate) fn no_refill(problem: &Problem, algorithm: Algorithm) -> Error {
    let backend = format!("{algorithm} into a known pattern");
    unsupported(problem, &backend, "it finds C anew", "SpgemmPlan::execute")
}
