//! An algorithm of SpMM or SpMV as a plan uses it.

use gustav_core::Result;

use super::operands::Operands;
use crate::device::{Device, Stream};

/// An algorithm prepared for one pattern: what a plan holds.
pub(crate) trait Method: Send {
    /// Bytes that it holds on the device.
    fn bytes(&self) -> usize;

    /// Compiles what `operands` need, unless that has been done.
    fn compile(&mut self, _device: &Device, _operands: &Operands) -> Result<()> {
        Ok(())
    }

    /// Whether it brings the values of A into an order of its own before it multiplies.
    fn converts(&self) -> bool {
        false
    }

    /// Queues that, before [`Method::launch`].
    ///
    /// # Safety
    /// As [`Method::launch`].
    unsafe fn convert(&mut self, _stream: &Stream, _operands: &Operands) -> Result<()> {
        Ok(())
    }

    /// Queues C = scale(α, A·B) ⊕ scale(β, C).
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the stream has done the work, and A has the
    /// pattern that the method was prepared for.
    unsafe fn launch(
        &mut self,
        device: &Device,
        stream: &Stream,
        operands: &Operands,
    ) -> Result<()>;
}
