//! `dcsr`: only the nonempty rows are processed, as the study of row permutations (§II-A) describes
//! it. See `kernels/papers/spmm/dcsr.cu`.

use gustav_core::buffer::try_vec;
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

pub use super::stationary::Config;
pub(crate) use super::stationary::{ANY_LAYOUT, choose, configs};

/// The kernel's source.
pub(crate) fn source() -> Request {
    request!("papers/spmm/dcsr.cu")
}

/// Supports what the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::Dcsr, papers::COLUMN_MAJOR)
}

/// The compiled kernel and the nonempty rows.
pub(crate) struct Prepared {
    config: Config,
    kernel: Kernel<Arguments>,
    filled: DeviceBuffer<u32>,
    offsets: DeviceBuffer<u32>,
}

impl Prepared {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let request = stationary::request(source(), problem.dtype, config, false);
        let kernel = device.module(&request)?.kernel(c"dcsr")?;
        let all = pattern.host_offsets()?;
        let count = all.windows(2).filter(|w| w[0] < w[1]).count();
        let mut filled = try_vec::<u32>(count, "nonempty rows")?;
        let mut offsets = try_vec::<u32>(count + 1, "their offsets")?;
        // Rows and nonzeros fit in 32 bits, see `supports`.
        for (row, range) in all.windows(2).enumerate().filter(|(_, w)| w[0] < w[1]) {
            filled.push(row as u32);
            offsets.push(range[0] as u32);
        }
        offsets.push(problem.nnz as u32);
        Ok(Prepared {
            config,
            kernel,
            filled: DeviceBuffer::from_slice(device, &filled, "nonempty rows")?,
            offsets: DeviceBuffer::from_slice(device, &offsets, "their offsets")?,
        })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.filled.bytes() + self.offsets.bytes()
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        for used in [&self.filled, &self.offsets] {
            used.used_on(stream);
        }
        let mut arguments = Arguments::new(o);
        arguments.operands.offsets = self.offsets.address();
        arguments.operands.rows = self.filled.len() as u64;
        arguments.listed = self.filled.address();
        // SAFETY: the list is that of the pattern, the operands are the caller's promise.
        unsafe { stationary::launch(&self.kernel, self.config, device, stream, &arguments) }
    }
}
