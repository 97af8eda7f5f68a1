//! The common part of `shared-row` and `dense-naive`: they compute rows of a dense C, which is then
//! converted to CSR. If C does not fit in memory, it is computed in panels of rows, twice: once to
//! count entries, once to write them.

use std::ops::Range;

use gustav_core::{Index, Problem, Result, Scalar};
use gustav_plan::Algorithm;

use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::DeviceCsr;
use crate::matrix::compress::{Compress, Entries, Panel};
use crate::product::sparse_method::{Method, no_refill};
use crate::product::sparse_operands::Operands;

/// An algorithm that computes rows of a dense C.
pub(crate) trait DenseRows: Send + Sized {
    /// Its tile sizes.
    type Config;

    /// Prepares the algorithm for the patterns of `operands`.
    fn new(
        device: &Device,
        operands: &Operands,
        problem: &Problem,
        config: Self::Config,
    ) -> Result<Self>;

    /// Bytes that it holds on the device.
    fn bytes(&self) -> usize;

    /// Whether the pattern of C follows from those of A and B, so that its values can be computed anew.
    fn refills(&self) -> bool {
        true
    }

    /// Queues the first work of an execution.
    ///
    /// # Safety
    /// As [`Method::execute`].
    unsafe fn begin(&mut self, _stream: &Stream, _operands: &Operands) -> Result<()> {
        Ok(())
    }

    /// Queues rows `rows` of C = α·A·B, row-major from `c` on with leading dimension `ldc`;
    /// elements that are not in the pattern of C become minus zero.
    ///
    /// # Safety
    /// As [`Method::execute`]; `c` is large enough.
    unsafe fn rows(
        &mut self,
        stream: &Stream,
        operands: &Operands,
        rows: Range<usize>,
        c: u64,
        ldc: usize,
    ) -> Result<()>;
}

/// Such an algorithm with a dense panel of C, as a [`Method`] with a result in CSR.
pub(crate) struct ThroughDense<K> {
    rows: K,
    problem: Problem,
    compress: Compress,
    panel: DeviceBuffer<u8>,
    height: usize,
}

// A panel takes at most the free memory ÷ this, so that C in CSR form fits beside it.
const PART: usize = 4;

impl<K: DenseRows> ThroughDense<K> {
    pub(crate) fn new(
        device: &Device,
        operands: &Operands,
        problem: &Problem,
        config: K::Config,
    ) -> Result<Self> {
        let rows = K::new(device, operands, problem, config)?;
        let compress = Compress::new(device, operands.dtype, Entries::Pattern)?;
        let line = operands.b.cols.saturating_mul(operands.dtype.bytes()).max(1);
        let height = (device.memory()?.0 / PART / line).clamp(1, operands.a.rows.max(1));
        let bytes = height.saturating_mul(line);
        let panel = DeviceBuffer::uninit(device, bytes, "a dense panel of C on the device")?;
        Ok(ThroughDense { rows, problem: problem.clone(), compress, panel, height })
    }

    /// The panels of C from top to bottom, all in the same memory.
    fn panels(&self, o: &Operands) -> impl ExactSizeIterator<Item = Panel> + Clone + use<K> {
        let (dense, height) = (self.panel.address(), self.height);
        let (rows, columns) = (o.a.rows, o.b.cols);
        (0..rows.div_ceil(height)).map(move |k| Panel {
            rows: k * height..rows.min((k + 1) * height),
            columns,
            dense,
            ld: columns,
        })
    }
}

impl<K: DenseRows, T: Scalar, I: Index, O: Index> Method<T, I, O> for ThroughDense<K> {
    fn bytes(&self) -> usize {
        self.rows.bytes() + self.panel.bytes()
    }

    unsafe fn execute(&mut self, device: &Device, o: &Operands) -> Result<DeviceCsr<T, I, O>> {
        let (stream, panels) = (device.stream(), self.panels(o));
        let rows = &mut self.rows;
        // SAFETY: the operands are the caller's promise; the panel is large enough.
        unsafe {
            rows.begin(stream, o)?;
            self.compress.csr(o.a.rows, o.b.cols, panels, |p| {
                rows.rows(stream, o, p.rows.clone(), p.dense, p.ld)
            })
        }
    }

    fn refills(&self) -> bool {
        self.rows.refills()
    }

    unsafe fn refill(
        &mut self,
        device: &Device,
        o: &Operands,
        c: &mut DeviceCsr<T, I, O>,
    ) -> Result<()> {
        if !self.rows.refills() {
            return Err(no_refill(&self.problem, Algorithm::DenseNaive));
        }
        let csr = [c.offsets().address(), c.indices().address(), c.values().address()];
        let stream = device.stream();
        // SAFETY: the operands are the caller's promise; the panel is large enough, and C's offsets
        // are those of the same pattern.
        unsafe {
            self.rows.begin(stream, o)?;
            for panel in self.panels(o) {
                self.rows.rows(stream, o, panel.rows.clone(), panel.dense, panel.ld)?;
                self.compress.fill(stream, &panel, csr)?;
            }
        }
        Ok(())
    }
}
