//! Host side of `kernels/papers/spmm/padded.cuh`: the common part of `sell-p` and `ell-r`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;
use std::marker::PhantomData;

use gustav_core::{DType, Problem, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::matrix::gather::Slots;
use crate::papers;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::tile::widest_for;
use crate::schedule::pattern::Pattern;

pub(crate) const ANY_LAYOUT: bool = false;

/// The layout of a format's slots, and their assignment to threads.
pub(crate) trait Format: Send {
    /// Tile sizes.
    type Config: Copy + Send;
    /// Its two kernels: the conversion of the pattern, the product.
    const KERNELS: [&'static CStr; 2];

    /// Checks that there is a kernel for the configuration.
    fn check(config: Self::Config) -> Result<()>;

    /// The source for vectors of `vector` columns.
    fn request(dtype: DType, vector: u32, config: Self::Config) -> Request;

    /// The slots of a matrix with row offsets `offsets`.
    fn layout(offsets: &[u64], config: Self::Config) -> SlotLayout;

    /// CTAs, and threads of a CTA, for a product with `strips` strips of columns.
    fn launch(rows: u64, strips: u64, config: Self::Config) -> ((u64, u64), u32);
}

/// Slots of a converted matrix.
#[derive(Debug)]
pub(crate) struct SlotLayout {
    /// First slot of every slice, and the end; empty without slices.
    pub slices: Vec<u64>,
    /// Number of slots.
    pub slots: usize,
    /// Rows, including padding.
    pub lines: u64,
    /// Slots of every row, if there are no slices.
    pub width: u64,
}

// Threads of a CTA of the conversion.
pub(crate) const BLOCK: u32 = 256;

/// The converted pattern and the kernels compiled so far.
pub(crate) struct Prepared<F: Format> {
    config: F::Config,
    slices: DeviceBuffer<u64>,
    columns: DeviceBuffer<u32>,
    slots: Slots,
    lines: u64,
    width: u64,
    kernels: HashMap<u32, Kernel<Arguments>>,
    format: PhantomData<F>,
}

parameter_block! {
    pub(crate) struct Arguments {
        offsets: *const u32,
        indices: *const u32,
        /// First slot of every slice; null if there are no slices.
        slices: *const u64,
        /// Column of every slot.
        columns_of: *mut u32,
        /// Nonzero of every slot.
        source: *mut u32,
        values: *const Value,
        b: *const Value,
        c: *mut Value,
        rows: u64,
        /// Rows, including padding.
        lines: u64,
        /// Slots of every row, a multiple of LANES; unused with slices.
        width: u64,
        columns: u64,
        ldb: u64,
        ldc: u64,
        alpha: u64,
        beta: u64,
    }
}

impl<F: Format> Prepared<F> {
    /// Converts the pattern on the device.
    pub(crate) fn new(p: &Pattern<'_>, problem: &Problem, config: F::Config) -> Result<Self> {
        F::check(config)?;
        let device = p.device();
        let layout = F::layout(p.host_offsets()?, config);
        let slots = |what| DeviceBuffer::uninit(device, layout.slots, what);
        let prepared = Prepared {
            config,
            slices: DeviceBuffer::from_slice(device, &layout.slices, "slices of rows")?,
            columns: slots("columns of padded rows")?,
            slots: Slots::new(device, problem.dtype, slots("sources of padded rows")?)?,
            lines: layout.lines,
            width: layout.width,
            kernels: HashMap::new(),
            format: PhantomData::<F>,
        };
        let arguments = Arguments {
            offsets: p.offsets,
            indices: p.indices,
            rows: problem.rows as u64,
            ..prepared.arguments()
        };
        let module = device.module(&F::request(problem.dtype, 1, config))?;
        let grid = (layout.lines.div_ceil(u64::from(BLOCK)), 1);
        // SAFETY: there is memory for the slots of every row.
        unsafe { module.kernel(F::KERNELS[0])?.launch(device.stream(), grid, BLOCK, &arguments)? };
        device.stream().synchronize()?;
        Ok(prepared)
    }

    /// Arguments with the converted pattern only.
    fn arguments(&self) -> Arguments {
        Arguments {
            offsets: 0,
            indices: 0,
            slices: self.slices.address(),
            columns_of: self.columns.address(),
            source: self.slots.source.address(),
            values: self.slots.values(),
            b: 0,
            c: 0,
            rows: 0,
            lines: self.lines,
            width: self.width,
            columns: 0,
            ldb: 0,
            ldc: 0,
            alpha: 0,
            beta: 0,
        }
    }
}

impl<F: Format> Method for Prepared<F> {
    fn bytes(&self) -> usize {
        self.slices.bytes() + self.columns.bytes() + self.slots.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let vector = widest_for(o);
        if let Entry::Vacant(vacant) = self.kernels.entry(vector) {
            let module = device.module(&F::request(o.dtype, vector, self.config))?;
            vacant.insert(module.kernel(F::KERNELS[1])?);
        }
        Ok(())
    }

    fn converts(&self) -> bool {
        true
    }

    unsafe fn convert(&mut self, stream: &Stream, o: &Operands) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.slots.refresh(stream, o.values) }
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        self.slices.used_on(stream);
        self.columns.used_on(stream);
        let vector = widest_for(o);
        let operands = papers::PaperOperands::new(o);
        let arguments = Arguments {
            offsets: operands.offsets,
            b: operands.b,
            c: operands.c,
            rows: operands.rows,
            columns: operands.columns,
            ldb: operands.ldb,
            ldc: operands.ldc,
            alpha: operands.alpha,
            beta: operands.beta,
            ..self.arguments()
        };
        let strips = operands.columns.div_ceil(u64::from(vector));
        let (grid, block) = F::launch(operands.rows, strips, self.config);
        // SAFETY: the slots are those of the pattern, and the
        // operands are the caller's promise.
        unsafe { self.kernels[&vector].launch(stream, grid, block, &arguments) }
    }
}
