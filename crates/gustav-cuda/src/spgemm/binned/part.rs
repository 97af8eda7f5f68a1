//! Some rows of C from their analysis to their values.

use gustav_core::{Error, Index, Problem, Result, Scalar};

use super::bins::{Counters, NUMERIC, SYMBOLIC, UNITED, WORDS};
use super::kernels::{Arguments, Kernels};
use crate::spgemm::operands::Operands;
use crate::{Device, DeviceBuffer, DeviceCsr};

// Symbolic bins of rows of many products: wide and huge.
const LARGE: [usize; 2] = [3, 4];

/// Rows whose entries are counted, and their bins of the numeric phase.
pub(super) struct Part {
    workspace: DeviceBuffer<u64>,
    arguments: Arguments,
    numeric: Counters,
    pub products: u64,
}

impl Part {
    /// Analysis, symbolic phase and scan of the rows of A in `o`. C's offsets go to an address and
    /// rise from a number, both in `offsets`, or stay in the workspace and rise from 0. `most`
    /// bytes of workspace are taken, the part's layout at least.
    ///
    /// # Safety
    /// The operands are valid until the device's stream has done the work, and there is room for
    /// the offsets.
    pub(super) unsafe fn new(
        device: &Device,
        kernels: &Kernels,
        o: &Operands,
        problem: &Problem,
        offsets: Option<(u64, u64)>,
        most: Option<usize>,
    ) -> Result<Self> {
        let layout = kernels.layout(o.a.rows, o.offset_type);
        let workspace = DeviceBuffer::queued(device, layout.words, "workspace of an SpGEMM")?;
        let mut arguments = layout.arguments(workspace.address(), o, problem);
        if let Some((place, first)) = offsets {
            (arguments.c_offsets, arguments.first) = (place, first);
        }
        let stream = device.stream();
        let at = arguments.counters;
        let read = || -> Result<Counters> {
            // SAFETY: the counters lie in the workspace.
            let buffer = unsafe { DeviceBuffer::<u64>::borrowed(device, at, WORDS) };
            let mut words = [0; WORDS];
            buffer.read(&mut words)?;
            Ok(Counters(words))
        };
        let clear = || -> Result<()> {
            // SAFETY: as above.
            unsafe { DeviceBuffer::<u64>::borrowed(device, at, layout.zeroed) }.fill(0, stream)
        };
        // SAFETY: the arguments describe the operands, which are the caller's promise, and the
        // workspace, which is as large as its layout asks for.
        unsafe {
            clear()?;
            arguments.ordered = 1;
            kernels.analyse(stream, &mut arguments, o)?;
            let mut symbolic = read()?;
            if symbolic.descents() != 0 {
                clear()?;
                arguments.ordered = 0;
                kernels.analyse(stream, &mut arguments, o)?;
                symbolic = read()?;
            }
            let bits =
                bits_of_b(device, o, &symbolic, most.map(|m| m.saturating_sub(workspace.bytes())))?;
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
            clear()?;
            kernels.offsets(stream, &arguments)?;
            let numeric = read()?;
            Ok(Part { workspace, arguments, numeric, products: symbolic.products() })
        }
    }

    /// Bytes of workspace.
    pub(super) fn bytes(&self) -> usize {
        self.workspace.bytes()
    }

    /// Where the offsets of the rows are.
    pub(super) fn offsets(&self) -> u64 {
        self.arguments.c_offsets
    }

    /// Entries of the rows.
    pub(super) fn entries(&self) -> u64 {
        self.numeric.entries()
    }

    /// Queues the numeric phase into C's arrays, for other operands of the same patterns.
    ///
    /// # Safety
    /// As [`Part::new`], and C has the entries that the offsets say.
    pub(super) unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &self,
        device: &Device,
        kernels: &Kernels,
        o: &Operands,
        c: &DeviceCsr<T, I, O>,
    ) -> Result<()> {
        let mut arguments = self.arguments;
        arguments.set_operands(o);
        // SAFETY: the caller's promise.
        unsafe { self.launch(device, kernels, arguments, o.alpha, c) }
    }

    /// The same for the operands that the part was made for.
    ///
    /// # Safety
    /// As [`Part::fill`].
    pub(super) unsafe fn fill_own<T: Scalar, I: Index, O: Index>(
        &self,
        device: &Device,
        kernels: &Kernels,
        alpha: u64,
        c: &DeviceCsr<T, I, O>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(device, kernels, self.arguments, alpha, c) }
    }

    unsafe fn launch<T: Scalar, I: Index, O: Index>(
        &self,
        device: &Device,
        kernels: &Kernels,
        mut arguments: Arguments,
        alpha: u64,
        c: &DeviceCsr<T, I, O>,
    ) -> Result<()> {
        arguments.c_indices = c.indices().address();
        arguments.c_values = c.values().address();
        arguments.alpha = alpha;
        kernels.on_streams(device.stream(), &self.numeric, NUMERIC.len(), |number, stream| {
            // SAFETY: the caller's promise.
            unsafe { kernels.sum(stream, &arguments, &self.numeric, number, &NUMERIC[number]) }
        })
    }
}

/// Room for B as bits, cleared, and its words a row, where bits are fewer than indices, rows of
/// many products want them and memory has room, at most `most` bytes.
fn bits_of_b(
    device: &Device,
    o: &Operands,
    symbolic: &Counters,
    most: Option<usize>,
) -> Result<Option<(u32, DeviceBuffer<u32>)>> {
    let words = o.b.cols.div_ceil(32);
    let all = o.b.rows.saturating_mul(words);
    let wanted = LARGE.into_iter().any(|bin| symbolic.rows(bin) > 0);
    if !wanted || all > o.b.nnz || most.is_some_and(|most| 4 * all > most) {
        return Ok(None);
    }
    let mut bits = match DeviceBuffer::queued(device, all, "B as bits") {
        Err(Error::OutOfMemory { .. }) => return Ok(None),
        other => other?,
    };
    bits.fill(0, device.stream())?;
    Ok(Some((words as u32, bits)))
}
