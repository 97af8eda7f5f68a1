//! The interface of SpMM and SpMV algorithms to plans.

use gustav_core::Result;

use super::operands::Operands;
use crate::device::{Device, Stream};

/// An algorithm prepared for one pattern, owned by a plan.
pub(crate) trait Method: Send {
    /// Bytes that it holds on the device.
    fn bytes(&self) -> usize;

    /// Compiles the kernels for `operands`, unless they are compiled.
    fn compile(&mut self, _device: &Device, _operands: &Operands) -> Result<()> {
        Ok(())
    }

    /// Whether it converts the values of A to a format of its own before it multiplies.
    fn converts(&self) -> bool {
        false
    }

    /// Queues the conversion, before [`Method::launch`].
    ///
    /// # Safety
    /// As [`Method::launch`].
    unsafe fn convert(&mut self, _stream: &Stream, _operands: &Operands) -> Result<()> {
        Ok(())
    }

    /// Queues C = scale(α, A·B) ⊕ scale(β, C).
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the work is done, and A has the pattern that the
    /// method was prepared for.
    unsafe fn launch(
        &mut self,
        device: &Device,
        stream: &Stream,
        operands: &Operands,
    ) -> Result<()>;
}
