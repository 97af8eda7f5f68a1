//! `output-stationary`: one CTA per strip of columns of C, as the study of row permutations (§II-B)
//! describes it. See `kernels/papers/spmm/output_stationary.cu`.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

use super::stationary::{self, Arguments};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;
use crate::schedule::row_order;

pub use super::stationary::Config;
pub(crate) use super::stationary::{ANY_LAYOUT, choose, configs};

/// The kernel's source.
pub(crate) fn source() -> Request {
    request!("papers/spmm/output_stationary.cu")
}

/// Supports what the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::OutputStationary, papers::COLUMN_MAJOR)
}

/// The compiled kernel, and the slots of the plan's row order.
pub(crate) struct Prepared {
    config: Config,
    kernel: Kernel<Arguments>,
    slots: Option<DeviceBuffer<u32>>,
}

impl Prepared {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let (device, order) = (pattern.device(), pattern.order());
        let request = stationary::request(source(), problem.dtype, config, order.is_some());
        let kernel = device.module(&request)?.kernel(c"output_stationary")?;
        let slots = order.map(|order| row_order::slots(device, order, config.warps)).transpose()?;
        Ok(Prepared { config, kernel, slots })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.slots.as_ref().map_or(0, DeviceBuffer::bytes)
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let mut arguments = Arguments::new(o);
        if let Some(slots) = &self.slots {
            slots.used_on(stream);
            arguments.listed = slots.address();
            arguments.operands.rows = slots.len() as u64;
        }
        // SAFETY: slots hold rows of the pattern or none; the operands are the caller's promise.
        unsafe { stationary::launch(&self.kernel, self.config, device, stream, &arguments) }
    }
}
