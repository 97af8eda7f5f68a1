//! A part of C: consecutive rows, from their analysis to their values.

use std::ops::Range;

use gustav_core::{Error, Index, Problem, Result, Scalar};

use super::arguments::{Arguments, Layout};
use super::bins::{Counters, FULL, LARGE, SYMBOLIC, UNITED};
use super::kernels::Kernels;
use super::split_rows::SplitRows;
use crate::device::{Device, DeviceBuffer};
use crate::matrix::DeviceCsr;
use crate::product::sparse_operands::Operands;
use crate::spgemm::dense_output::FullRows;

// Fewest words of a bitmask of a row of B, so that every thread of a CTA has one.
const WORDS: usize = 64;

/// Rows after their symbolic phase, with their bins of the numeric phase.
pub(super) struct Part {
    workspace: DeviceBuffer<u64>,
    /// C's offsets, if the part owns them.
    offsets: Option<DeviceBuffer<u64>>,
    arguments: Arguments,
    split_rows: Option<SplitRows>,
    numeric: Counters,
    pub products: u64,
}

impl Part {
    /// Analysis, symbolic phase and scan of the rows of A in `o`. C's offsets are written to the
    /// address in `offsets` and begin with the number there; without it, the part owns them and
    /// they begin with 0. Takes at most `most` bytes of workspace, but at least the part's layout.
    /// Rows of C with at least `full` products per entry are full rows with a bin of their own,
    /// unless `full` is 0.
    ///
    /// # Safety
    /// The operands are valid until the work is done, and there is memory for the offsets.
    pub(super) unsafe fn new(
        device: &Device,
        kernels: &Kernels,
        o: &Operands,
        problem: &Problem,
        offsets: Option<(u64, u64)>,
        most: Option<usize>,
        full: u32,
    ) -> Result<Self> {
        let layout = Layout::new(o.a.rows);
        let workspace = DeviceBuffer::queued(device, layout.words, "workspace of an SpGEMM")?;
        let words = ((o.a.rows + 1) * o.offset_type.bytes()).div_ceil(8);
        let own = || DeviceBuffer::queued(device, words, "row offsets of C on the device");
        let own = offsets.is_none().then(own).transpose()?;
        let at = own.as_ref().map_or(0, DeviceBuffer::address);
        let (address, first) = offsets.unwrap_or((at, 0));
        let mut arguments = layout.arguments(workspace.address(), address, device, o, problem);
        (arguments.full, arguments.first) = (full, first);
        let stream = device.stream();
        let [symbolic_at, numeric_at] = layout.counters(workspace.address());
        let clear = || -> Result<()> {
            // SAFETY: the words lie in the workspace.
            unsafe { DeviceBuffer::<u64>::borrowed(device, symbolic_at, layout.zeroed) }
                .fill(0, stream)
        };
        // SAFETY: the arguments describe the operands, which are the caller's promise, and the
        // workspace, which is as large as its layout requires.
        unsafe {
            clear()?;
            arguments.ordered = 1;
            let mut symbolic = kernels.analyse(stream, &mut arguments, o)?;
            if symbolic.descents() != 0 {
                clear()?;
                arguments.ordered = 0;
                symbolic = kernels.analyse(stream, &mut arguments, o)?;
            }
            let left = |held: usize| most.map(|most| most.saturating_sub(held));
            let held = workspace.bytes() + own.as_ref().map_or(0, DeviceBuffer::bytes);
            let split_rows = kernels.split_rows(device, &arguments, &symbolic, left(held))?;
            let held = held + split_rows.as_ref().map_or(0, SplitRows::bytes);
            let bits = bits_of_b(device, o, &symbolic, left(held))?;
            if let Some((words, buffer)) = &bits {
                (arguments.bits, arguments.bit_words) = (buffer.address(), *words);
                kernels.bits(stream, &arguments)?;
            }
            kernels.on_streams(stream, &symbolic, SYMBOLIC.len(), |number, stream| {
                let united = bits.is_some() && LARGE.contains(&number);
                let bin = if united {
                    &UNITED
                } else {
                    kernels.kernel_of(&SYMBOLIC, &symbolic, number, split_rows.as_ref())
                };
                kernels.count(stream, &arguments, &symbolic, number, bin, split_rows.as_ref())
            })?;
            drop(bits);
            arguments.counters = numeric_at;
            let numeric = kernels.offsets(stream, &mut arguments)?;
            let products = symbolic.products();
            Ok(Part { workspace, offsets: own, arguments, split_rows, numeric, products })
        }
    }

    /// The data that the numeric phase reads: the address of each array and its range in the part's
    /// memory, in bytes. The memory of split rows follows the workspace.
    pub(super) fn needed(&self, kernels: &Kernels) -> impl Iterator<Item = (u64, Range<usize>)> {
        let (layout, split_rows) = (self.layout(), self.split_rows.as_ref());
        let list = layout.list(self.numeric.begin(FULL + 1) as usize);
        let more = !kernels.needs_list_alone(&self.numeric, split_rows);
        let own = [Some(list), more.then(|| layout.ranges_and_costs())];
        let (at, behind) = (self.workspace.address(), self.workspace.bytes());
        let own = own.into_iter().flatten().map(move |bytes| (at + bytes.start as u64, bytes));
        let found = split_rows.into_iter().flat_map(move |split_rows| {
            let at = split_rows.found().address();
            let array = move |bytes: Range<usize>| {
                (at + bytes.start as u64, behind + bytes.start..behind + bytes.end)
            };
            split_rows.written().map(array)
        });
        own.chain(found)
    }

    /// Bytes of the workspace and of the memory of split rows.
    pub(super) fn held(&self) -> usize {
        self.workspace.bytes() + self.split_rows.as_ref().map_or(0, SplitRows::bytes)
    }

    /// Replaces the part's own memory by that at `at`, workspace and split rows one after the
    /// other, with C's offsets at `offsets`.
    ///
    /// # Safety
    /// The memory has the size and the contents of the old one whenever the part is computed, until
    /// that is done.
    pub(super) unsafe fn move_to(&mut self, device: &Device, at: u64, offsets: u64) {
        // SAFETY: the caller's promise.
        let there = |at, len| unsafe { DeviceBuffer::borrowed(device, at, len) };
        self.workspace = there(at, self.workspace.len());
        if let Some(split_rows) = &mut self.split_rows {
            let (words, behind) = (split_rows.found().len(), self.workspace.bytes() as u64);
            split_rows.set_found(there(at + behind, words));
        }
        self.layout().set_addresses(at, &mut self.arguments);
        self.arguments.c.offsets = offsets;
    }

    fn layout(&self) -> Layout {
        Layout::new(self.arguments.rows as usize)
    }

    /// Bytes of workspace.
    pub(super) fn bytes(&self) -> usize {
        let offsets = self.offsets.as_ref().map_or(0, DeviceBuffer::bytes);
        self.workspace.bytes() + offsets + self.split_rows.as_ref().map_or(0, SplitRows::bytes)
    }

    /// Whether columns of B's rows increase.
    pub(super) fn is_ordered(&self) -> bool {
        self.arguments.ordered != 0
    }

    /// Releases the offsets of all rows to the caller, if the part owns them.
    pub(super) fn give_offsets(&mut self) -> Option<DeviceBuffer<u64>> {
        self.offsets.take()
    }

    /// Address of the offsets of the rows.
    pub(super) fn offsets(&self) -> u64 {
        self.arguments.c.offsets
    }

    /// Entries of the rows.
    pub(super) fn entries(&self) -> u64 {
        self.numeric.entries()
    }

    /// Queues the numeric phase into C's arrays, for other operands of the same patterns. `full`
    /// has B packed if full rows have their own bin; their columns are not written if C's are
    /// `known`.
    ///
    /// # Safety
    /// As [`Part::new`], and C has the entries that the offsets imply.
    pub(super) unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &self,
        device: &Device,
        kernels: &Kernels,
        full: Option<&FullRows>,
        o: &Operands,
        c: &DeviceCsr<T, I, O>,
        known: bool,
    ) -> Result<()> {
        let mut arguments = self.arguments;
        arguments.set_operands(o);
        arguments.alpha = o.alpha;
        // SAFETY: the caller's promise.
        unsafe { self.launch(device, kernels, full, arguments, c, known) }
    }

    /// The same for the operands that the part was made for.
    ///
    /// # Safety
    /// As [`Part::fill`].
    pub(super) unsafe fn fill_own<T: Scalar, I: Index, O: Index>(
        &self,
        device: &Device,
        kernels: &Kernels,
        full: Option<&FullRows>,
        alpha: u64,
        c: &DeviceCsr<T, I, O>,
        known: bool,
    ) -> Result<()> {
        let mut arguments = self.arguments;
        arguments.alpha = alpha;
        // SAFETY: the caller's promise.
        unsafe { self.launch(device, kernels, full, arguments, c, known) }
    }

    unsafe fn launch<T: Scalar, I: Index, O: Index>(
        &self,
        device: &Device,
        kernels: &Kernels,
        full: Option<&FullRows>,
        mut arguments: Arguments,
        c: &DeviceCsr<T, I, O>,
        known: bool,
    ) -> Result<()> {
        arguments.c.indices = c.indices().address();
        arguments.c.values = c.values().address();
        kernels.on_streams(device.stream(), &self.numeric, FULL + 1, |number, stream| {
            // SAFETY: the caller's promise.
            unsafe {
                if let (FULL, Some(full)) = (number, full) {
                    let (begin, count) = (self.numeric.begin(number), self.numeric.rows(number));
                    let mut arguments = arguments;
                    // A launch of all rows needs no list; full rows all have the same columns.
                    if u64::from(count) == arguments.rows {
                        arguments.list = 0;
                    }
                    if known {
                        arguments.c.indices = 0;
                    }
                    return full.launch(stream, &arguments, begin, count);
                }
                kernels.sum(stream, &arguments, &self.numeric, number, self.split_rows.as_ref())
            }
        })
    }

    /// The arguments of the kernels, if full rows have their own bin.
    pub(super) fn full_rows(&self) -> Option<&Arguments> {
        (self.numeric.rows(FULL) > 0).then_some(&self.arguments)
    }
}

/// Cleared memory for B as bitmasks, and their words per row. `None` if bitmasks are larger than
/// indices, no rows with many products need them, or there is no memory within `most` bytes.
fn bits_of_b(
    device: &Device,
    o: &Operands,
    symbolic: &Counters,
    most: Option<usize>,
) -> Result<Option<(u32, DeviceBuffer<u32>)>> {
    let words = o.b.cols.div_ceil(32);
    let all = o.b.rows.saturating_mul(words);
    let wanted = words >= WORDS && LARGE.into_iter().any(|bin| symbolic.rows(bin) > 0);
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
