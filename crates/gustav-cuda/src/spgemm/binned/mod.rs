//! `binned`: rows of C binned by what they cost, each bin with an accumulator in shared memory. See
//! `kernels/spgemm/analysis.cu`, `symbolic.cu`, `offsets.cu` and `numeric.cu`.

mod bins;
mod kernels;

use std::sync::Arc;

use gustav_core::{Error, Index, Operation, Problem, Result, Scalar};

use super::catalog::Method;
use super::operands::Operands;
use crate::spmm::unsupported;
use crate::{Device, DeviceBuffer, DeviceCsr};
use bins::{Counters, NUMERIC, SYMBOLIC, UNITED};
use kernels::{Arguments, Kernels};

#[cfg(test)]
pub(crate) use kernels::{Limits, Source, request};

// Symbolic bins of rows of many products: wide and huge.
const LARGE: [usize; 2] = [3, 4];

/// Threads of the CTAs that share a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// For rows of some thousand products.
    pub wide: u32,
    /// For larger ones.
    pub huge: u32,
    /// For those with a sum for every column.
    pub dense: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { wide: 256, huge: 512, dense: 256 }
    }
}

/// Everything that SpGEMM asks for, but for a promised order of summation; columns and rows are
/// counted in 32 bits.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason, nearest| Err(unsupported(problem, "binned on CUDA", reason, nearest));
    if problem.operation != Operation::Spgemm {
        return refuse("it multiplies two sparse matrices", "Problem::spgemm");
    }
    if problem.deterministic {
        return refuse("its order of summation depends on the run", "gustavson on the device cpu");
    }
    if problem.output_rows().max(problem.columns) >= u32::MAX as usize {
        return refuse("it counts rows and columns in 32 bits", "gustavson on the device cpu");
    }
    Ok(())
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let own = Config::default();
    vec![own, Config { dense: 128, ..own }, Config { wide: 128, ..own }]
}

/// Sizes of C's rows and the bins of the numeric phase.
pub(super) struct Prepared {
    kernels: Arc<Kernels>,
    workspace: DeviceBuffer<u64>,
    arguments: Arguments,
    numeric: Counters,
    products: u64,
}

impl Prepared {
    /// Analysis and symbolic phase.
    pub(super) fn new(
        device: &Device,
        o: &Operands,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        let types = (problem.dtype, problem.index_type, problem.offset_type, problem.semiring);
        let kernels = device
            .kept(&format!("{types:?} {config:?}"), || Kernels::new(device, problem, config))?;
        let rows = o.a.rows;
        let layout = kernels.layout(rows, o.offset_type);
        let workspace = DeviceBuffer::queued(device, layout.words, "workspace of an SpGEMM")?;
        let mut arguments = layout.arguments(workspace.address(), o, problem);
        let stream = device.stream();
        let read = |from: u64| -> Result<Counters> {
            // SAFETY: the counters lie in the workspace.
            let buffer = unsafe { DeviceBuffer::<u64>::borrowed(device, from, bins::WORDS) };
            let mut words = [0; bins::WORDS];
            buffer.read(&mut words)?;
            Ok(Counters(words))
        };
        let clear = |from: u64, words: usize| -> Result<()> {
            // SAFETY: as above.
            unsafe { DeviceBuffer::<u64>::borrowed(device, from, words) }.fill(0, stream)
        };
        // SAFETY: the arguments describe the operands, which are the caller's promise, and the
        // workspace, which is as large as its layout asks for.
        unsafe {
            clear(arguments.counters, layout.zeroed)?;
            arguments.ordered = 1;
            kernels.analyse(stream, &mut arguments, o)?;
            let mut symbolic = read(arguments.counters)?;
            if symbolic.descents() != 0 {
                clear(arguments.counters, layout.zeroed)?;
                arguments.ordered = 0;
                kernels.analyse(stream, &mut arguments, o)?;
                symbolic = read(arguments.counters)?;
            }
            let bits = bits_of_b(device, o, &symbolic)?;
            if let Some((words, buffer)) = &bits {
                (arguments.bits, arguments.bit_words) = (buffer.address(), *words);
                kernels.bits(stream, &arguments)?;
            }
            kernels.on_streams(stream, &symbolic, SYMBOLIC.len(), |number, stream| {
                let united = bits.is_some() && LARGE.contains(&number);
                let bin = if united { &UNITED } else { &SYMBOLIC[number] };
                kernels.count(stream, &arguments, &symbolic, number, bin)
            })?;
            drop(bits);
            clear(arguments.counters, layout.zeroed)?;
            kernels.offsets(stream, &arguments)?;
            let numeric = read(arguments.counters)?;
            let nnz = numeric.entries();
            if o.offset_type == gustav_core::IndexType::U32 && nnz > u64::from(u32::MAX) {
                return Err(Error::Overflow {
                    what: "row offset of C",
                    need: u128::from(nnz),
                    index_type: o.offset_type,
                });
            }
            Ok(Prepared { kernels, workspace, arguments, numeric, products: symbolic.products() })
        }
    }

    /// Queues the numeric phase into C's arrays.
    unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &self,
        device: &Device,
        o: &Operands,
        c: &DeviceCsr<T, I, O>,
    ) -> Result<()> {
        let mut arguments = self.arguments;
        arguments.set_operands(o);
        arguments.c_indices = c.indices().address();
        arguments.c_values = c.values().address();
        arguments.alpha = o.alpha;
        let (kernels, counters) = (&self.kernels, &self.numeric);
        kernels.on_streams(device.stream(), counters, NUMERIC.len(), |number, stream| {
            // SAFETY: the caller's promise; C has as many entries as the offsets say.
            unsafe { kernels.sum(stream, &arguments, counters, number, &NUMERIC[number]) }
        })
    }
}

/// Room for B as bits, cleared, and its words a row, where bits are fewer than indices and rows of
/// many products want them.
fn bits_of_b(
    device: &Device,
    o: &Operands,
    symbolic: &Counters,
) -> Result<Option<(u32, DeviceBuffer<u32>)>> {
    let words = o.b.cols.div_ceil(32);
    let wanted = LARGE.into_iter().any(|bin| symbolic.rows(bin) > 0);
    if !wanted || o.b.rows.saturating_mul(words) > o.b.nnz {
        return Ok(None);
    }
    let mut bits = DeviceBuffer::queued(device, o.b.rows * words, "B as bits")?;
    bits.fill(0, device.stream())?;
    Ok(Some((words as u32, bits)))
}

impl<T: Scalar, I: Index, O: Index> Method<T, I, O> for Prepared {
    fn bytes(&self) -> usize {
        self.workspace.bytes()
    }

    fn products(&self) -> Option<u64> {
        Some(self.products)
    }

    unsafe fn execute(&mut self, device: &Device, o: &Operands) -> Result<DeviceCsr<T, I, O>> {
        let nnz = usize::try_from(self.numeric.entries()).unwrap_or(usize::MAX);
        let len = o.a.rows + 1;
        let mut offsets = DeviceBuffer::<O>::queued(device, len, "row offsets of C on the device")?;
        let indices = DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
        let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
        // SAFETY: the offsets lie in the workspace, and rise to `nnz`; the numeric phase fills the
        // arrays that they describe.
        unsafe {
            let own = DeviceBuffer::<O>::borrowed(device, self.arguments.c_offsets, len);
            offsets.copy_from(&own, device.stream())?;
            let c = DeviceCsr::from_parts(o.a.rows, o.b.cols, offsets, indices, values)?;
            self.fill(device, o, &c)?;
            Ok(c)
        }
    }

    unsafe fn refill(
        &mut self,
        device: &Device,
        o: &Operands,
        c: &mut DeviceCsr<T, I, O>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.fill(device, o, c) }
    }
}
