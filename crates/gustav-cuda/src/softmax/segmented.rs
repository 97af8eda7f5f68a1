//! `segmented`: a group of lanes for a row, or for a part of a long one. See
//! `kernels/softmax/segmented.cu`.

use gustav_core::{DType, IndexType, Operation, Problem, Result};

use crate::device::{Counters, Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::product::check_config;
use crate::product::tile::accumulator;
use crate::schedule::pattern::Pattern;
use crate::schedule::{Listing, Segments, Target};

/// How rows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Lanes of a group: a power of two up to 32.
    pub lanes: u32,
    /// Threads of a CTA: a power of two from 32 to 1024.
    pub block: u32,
    /// Rows with as many nonzeros are cut: a power of two from 32 to 4096.
    pub longest: u32,
}

/// Any softmax in floating point.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    problem.check_heads("segmented on CUDA", Operation::Softmax)
}

/// Every configuration that is worth timing.
pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    let own = Config::new(problem);
    [own.lanes, 4, 8, 32].map(|lanes| Config { lanes, ..own }).into()
}

// Rows of a window of the list, in which they go by length.
const WINDOW: u32 = 256;
// Values that a lane takes of a row of mean length.
const VALUES: usize = 4;

impl Config {
    /// For rows of the mean length.
    pub(super) fn new(problem: &Problem) -> Self {
        let mean = problem.nnz / problem.rows.max(1);
        let lanes = (mean / VALUES).next_power_of_two().clamp(2, 32) as u32;
        Config { lanes, block: 128, longest: 1024 }
    }

    fn check(&self) -> Result<()> {
        let fits = self.lanes.is_power_of_two()
            && self.lanes <= 32
            && self.block.is_power_of_two()
            && (32..=1024).contains(&self.block)
            && Segments::cuts_at(self.longest);
        check_config(
            "config of segmented",
            self,
            fits,
            "groups of 1 to 32 lanes, CTAs of 32 to 1024 threads, and rows cut at 32 to 4096 nonzeros, all powers of \
             two",
        )
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) gradient: bool,
    pub(crate) dtype: DType,
    pub(crate) position: IndexType,
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        request!("softmax/segmented.cu")
            .with_block::<Arguments>()
            .with("VALUE", self.dtype)
            .with("POSITION", self.position)
            .with("BLOCK", self.config.block)
            .with("LANES", self.config.lanes)
            .with("GRADIENT", self.gradient)
    }
}

parameter_block! {
    struct Arguments {
        segments: *const u64,
        /// The cut row of each slot, two words.
        slot_rows: *const u64,
        /// Segments.
        count: u64,
        heads: u64,
        /// Parts of cut rows, which come first.
        slots: u64,
        /// Values from a head to the next, and from a nonzero to the next.
        head: u64,
        nonzero: u64,
        /// Scores; weights (GRADIENT).
        values: *const Value,
        /// The gradient with respect to the weights (GRADIENT).
        of_weights: *const Value,
        result: *mut Value,
        /// Of every head and part, two values each; at last of the whole row at its first part.
        states: *mut Accum,
        arrivals: *mut u32,
    }
}

/// Addresses of an execution, and the strides of its arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    pub heads: usize,
    pub strides: (usize, usize),
    pub values: u64,
    /// 0 for the product itself.
    pub of_weights: u64,
    pub result: u64,
}

struct Kernels {
    parts: Kernel<Arguments>,
    softmax: Kernel<Arguments>,
}

/// The schedule on the device, room for the parts of cut rows, and the compiled kernels of the
/// product and its gradient.
pub(crate) struct Prepared {
    config: Config,
    segments: Segments,
    arrivals: Counters,
    states: DeviceBuffer<u64>,
    position: IndexType,
    dtype: DType,
    kernels: [Option<Kernels>; 2],
}

const MOST_HEADS: u64 = 65_535;

impl Prepared {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let Config { longest, .. } = config;
        let listing = Listing { longest, first: Segments::first_of(longest), window: WINDOW };
        let segments = Segments::new(pattern, problem, listing, Target::Slot)?;
        let slots = segments.slots();
        let words = |states: usize| {
            let values = states.saturating_mul(2).saturating_mul(problem.batch);
            values.saturating_mul(accumulator(problem.dtype).bytes()).div_ceil(8)
        };
        Ok(Prepared {
            config,
            arrivals: Counters::new(
                device,
                slots.saturating_mul(problem.batch),
                "arrivals of parts",
            )?,
            states: DeviceBuffer::queued(device, words(slots), "sums of parts of rows")?,
            segments,
            position: if problem.nnz < 1 << 31 { IndexType::U32 } else { IndexType::U64 },
            dtype: problem.dtype,
            kernels: [None, None],
        })
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.segments.bytes() + self.arrivals.bytes() + self.states.bytes()
    }

    /// Compiles the product or its gradient, unless that has been done.
    pub(crate) fn compile(&mut self, device: &Device, gradient: bool) -> Result<()> {
        let Prepared { config, position, dtype, .. } = *self;
        let kernels = &mut self.kernels[usize::from(gradient)];
        if kernels.is_none() {
            let module = device.module(&Variant { config, gradient, dtype, position }.request())?;
            let (parts, softmax) = (module.kernel(c"parts")?, module.kernel(c"softmax")?);
            *kernels = Some(Kernels { parts, softmax });
        }
        Ok(())
    }

    /// Queues the product, or its gradient.
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the stream has done the work, and the pattern is
    /// the one that this was prepared for.
    pub(crate) unsafe fn launch(
        &mut self,
        device: &Device,
        stream: &Stream,
        o: &Operands,
    ) -> Result<()> {
        let gradient = o.of_weights != 0;
        self.compile(device, gradient)?;
        let Some(Kernels { parts, softmax }) = &self.kernels[usize::from(gradient)] else {
            return Ok(());
        };
        self.segments.used_on(stream);
        self.arrivals.used_on(stream);
        self.states.used_on(stream);
        let Segments { list, slot_rows, count, .. } = &self.segments;
        let arguments = Arguments {
            segments: list.address(),
            slot_rows: slot_rows.address(),
            count: *count as u64,
            heads: o.heads as u64,
            slots: self.segments.slots() as u64,
            head: o.strides.0 as u64,
            nonzero: o.strides.1 as u64,
            values: o.values,
            of_weights: o.of_weights,
            result: o.result,
            states: self.states.address(),
            arrivals: self.arrivals.address(),
        };
        let Config { block, lanes, .. } = self.config;
        let heads = arguments.heads.min(MOST_HEADS);
        let grid = |segments: u64| (segments.div_ceil(u64::from(block / lanes)), heads);
        // SAFETY: the operands are the caller's promise; the schedule covers the pattern.
        unsafe {
            if arguments.slots > 0 {
                parts.launch_dependent(stream, grid(arguments.slots), block, 0, &arguments)?;
            }
            softmax.launch_dependent(stream, grid(arguments.count), block, 0, &arguments)
        }
    }
}
