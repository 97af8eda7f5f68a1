//! The interface of SpGEMM algorithms to plans.

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
    /// Finished parts of C.
    pub done: usize,
    /// Number of parts of C.
    pub tiles: usize,
}

/// An algorithm prepared for one pattern of A and of B, owned by a plan.
pub(crate) trait Method<T: Scalar, I: Index, O: Index>: Send {
    /// Bytes that it holds on the device.
    fn bytes(&self) -> usize;

    /// Intermediate products, if it has counted them.
    fn products(&self) -> Option<u64> {
        None
    }

    /// Entries of C, if it has counted them.
    fn entries(&self) -> Option<u64> {
        None
    }

    /// Queues C = scale(α, A·B) as a new matrix on the device's own stream.
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the work is done, and A and B have the patterns
    /// that the method was prepared for.
    unsafe fn execute(
        &mut self,
        device: &Device,
        operands: &Operands,
    ) -> Result<DeviceCsr<T, I, O>>;

    /// The same; calls `watch` after every part if the method computes C in parts.
    /// [`ControlFlow::Break`] stops the product.
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

    /// As [`Method::execute`], for the last time: C may take over memory of the method.
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

    /// Whether it supports [`Method::refill`].
    fn refills(&self) -> bool {
        true
    }

    /// Queues the computation of the values of C = scale(α, A·B) in `c`, which has the pattern of
    /// an earlier result, on the device's own stream; neither allocates nor waits.
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

/// A function that is called after every part of C and may stop the product.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Waits for the queued parts and calls `watch`; a stop after the last part has no effect.
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

/// The error of algorithms without [`Method::refill`].
pub(crate) fn no_refill(problem: &Problem, algorithm: Algorithm) -> Error {
    let backend = format!("{algorithm} into a known pattern");
    unsupported(problem, &backend, "it recomputes the pattern of C", "SpgemmPlan::execute")
}
