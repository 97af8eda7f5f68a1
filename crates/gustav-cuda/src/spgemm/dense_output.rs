//! `dense-output`: where C is nearly full, its full rows by a warp each, with a sum for every column
//! of a tile and B packed; the other rows as `binned` has them. See
//! `kernels/spgemm/dense_output.cu`.

use gustav_core::{DType, Index, IndexType, Problem, Result, Scalar, SemiringKind};

use super::binned::{self, Arguments};
use super::catalog::Method;
use super::operands::Operands;
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, DeviceCsr, source};

/// Tiles of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns of a tile for sums of 4 bytes, half of which are used for those of 8: a multiple of
    /// 64 up to 48,640, of which packing B keeps the banks in shared memory.
    pub columns: u32,
    /// Warps of a CTA, with a row each; fewer where shared memory has no room for as many.
    pub warps: u32,
    /// Groups of 32 entries of B that a warp reads ahead.
    pub ahead: u32,
}

impl Default for Config {
    fn default() -> Self {
        // Two CTAs of these share a multiprocessor with 228 KB of shared memory.
        Config { columns: 4096, warps: 7, ahead: 8 }
    }
}

// Fewest products of an entry of C for which B is packed.
const LEAST: u32 = 4;
// Rows of B in a tile that a CTA packs, as in the kernels.
const PACKERS: u32 = 4;

impl Config {
    /// With as many warps as have room in `shared` bytes, for sums of `sum` bytes.
    fn fitted(self, shared: usize, sum: usize) -> Result<Self> {
        let Config { columns, warps, ahead } = self;
        let room = shared / Config { warps: 1, ..self }.shared(sum);
        let whole = columns.is_multiple_of(64) && (64..=48_640).contains(&columns);
        let counted = (1..=32).contains(&warps) && (1..=16).contains(&ahead);
        if whole && counted && room > 0 {
            return Ok(Config { warps: warps.min(room as u32), ..self });
        }
        Err(gustav_core::Error::Argument {
            name: "config of dense-output",
            found: format!("{self:?}"),
            expected:
                "columns in multiples of 64 whose sums fit in shared memory, 1 to 32 warps, 1 to \
                       16 groups ahead"
                    .into(),
        })
    }

    /// Columns of a tile for sums of `sum` bytes.
    fn columns(self, sum: usize) -> u32 {
        self.columns * 4 / sum as u32
    }

    /// Bytes of shared memory of a CTA.
    fn shared(self, sum: usize) -> usize {
        self.warps as usize * (self.columns(sum) as usize + 32) * sum
    }
}

// Entries of a group.
const GROUP: usize = 32;

/// Bytes of a group: values and columns.
fn group(sum: usize) -> usize {
    GROUP * (sum + 2)
}

/// What `binned` computes.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    binned::supports(problem)
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let own = Config::default();
    vec![own, Config { columns: 2752, warps: 10, ..own }]
}

/// The source with its parameters.
pub(crate) fn request(
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: SemiringKind,
    config: Config,
) -> Request {
    let text = include_str!("../../kernels/spgemm/dense_output.cu");
    binned::types(Request::new("spgemm/dense_output.cu", text), dtype, index, offset)
        .with("SEMIRING", source::semiring(semiring))
        .with("COLUMNS", config.columns(dtype.bytes().max(4)))
        .with("WARPS", config.warps)
        .with("AHEAD", config.ahead)
}

/// The kernels for full rows of C, and B packed for them.
pub(super) struct FullRows {
    config: Config,
    sum: usize,
    pack: Kernel,
    full: Kernel,
    segments: DeviceBuffer<u64>,
    groups: DeviceBuffer<u64>,
    /// What B was packed for.
    prepared: Option<Arguments>,
}

/// The parameter of the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Packed {
    arguments: Arguments,
    segments: u64,
    groups: u64,
    tiles: u64,
}

impl FullRows {
    fn new(device: &Device, problem: &Problem, config: Config) -> Result<Self> {
        let sum = problem.dtype.bytes().max(4);
        let most = device.profile().shared_bytes_per_cta;
        let config = config.fitted(most, sum)?;
        let types = (problem.index_type, problem.offset_type);
        let module = device.module(&request(problem.dtype, types, problem.semiring, config))?;
        let full = module.kernel(c"full")?;
        full.allow_shared(config.shared(sum))?;
        Ok(FullRows {
            config,
            sum,
            pack: module.kernel(c"pack")?,
            full,
            segments: DeviceBuffer::queued(device, 0, "")?,
            groups: DeviceBuffer::queued(device, 0, "")?,
            prepared: None,
        })
    }

    /// Fewest products of an entry of C in rows that are computed here; none where B has more
    /// entries than are counted in 32 bits.
    pub(super) fn least(&self, o: &Operands) -> u32 {
        if u32::try_from(o.b.nnz).is_ok() { LEAST } else { 0 }
    }

    /// Bytes of packed B.
    pub(super) fn bytes(&self) -> usize {
        self.segments.bytes() + self.groups.bytes()
    }

    fn tiles(&self, columns: u64) -> u64 {
        columns.div_ceil(u64::from(self.config.columns(self.sum)))
    }

    fn packed(&self, arguments: Arguments) -> Packed {
        let tiles = self.tiles(arguments.columns);
        let (segments, groups) = (self.segments.address(), self.groups.address());
        Packed { arguments, segments, groups, tiles }
    }

    /// Makes room for a packed B, for rows that have these arguments.
    pub(super) fn prepare(
        &mut self,
        device: &Device,
        o: &Operands,
        arguments: Arguments,
    ) -> Result<()> {
        // Every row of B in every tile may waste part of a group.
        let segments = self.tiles(arguments.columns) as usize * o.b.rows;
        let groups = o.b.nnz / GROUP + segments;
        self.segments = DeviceBuffer::queued(device, segments, "segments of packed B")?;
        let words = groups * group(self.sum) / 8;
        self.groups = DeviceBuffer::queued(device, words, "packed B")?;
        self.prepared = Some(arguments);
        Ok(())
    }

    /// Queues packing B's values, if there are rows to compute here.
    ///
    /// # Safety
    /// B in `o` is that of [`FullRows::prepare`], with any values, and valid until the stream has done
    /// the work.
    pub(super) unsafe fn pack(&self, stream: &Stream, o: &Operands) -> Result<()> {
        let Some(mut arguments) = self.prepared else { return Ok(()) };
        arguments.set_operands(o);
        let packed = self.packed(arguments);
        let grid = (arguments.rows_b, packed.tiles.div_ceil(u64::from(PACKERS)));
        // SAFETY: `Packed` is the kernels' parameter; there is room for all groups.
        unsafe { self.pack.launch(stream, grid, 32 * PACKERS, &packed) }
    }

    /// Queues the `count` rows in bin `bin` of `arguments`.
    ///
    /// # Safety
    /// All addresses are valid until the stream has done the work, and B is packed.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        bin: usize,
        count: u32,
    ) -> Result<()> {
        let mut arguments = *arguments;
        (arguments.bin, arguments.count) = (bin as u32, count);
        let panels = count.div_ceil(self.config.warps);
        let packed = self.packed(arguments);
        let grid = (packed.tiles * u64::from(panels), 1);
        let (threads, shared) = (32 * self.config.warps, self.config.shared(self.sum));
        // SAFETY: `Packed` is the kernels' parameter; the addresses are the caller's promise.
        unsafe { self.full.launch_with_shared(stream, grid, threads, shared, &packed) }
    }
}

/// `binned` with the full rows of C apart.
pub(super) struct Prepared(binned::Prepared);

impl Prepared {
    pub(super) fn new(
        device: &Device,
        o: &Operands,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        let full = FullRows::new(device, problem, config)?;
        let rest = binned::Config::default();
        binned::Prepared::with(device, o, problem, rest, Some(full)).map(Prepared)
    }
}

impl<T: Scalar, I: Index, O: Index> Method<T, I, O> for Prepared {
    fn bytes(&self) -> usize {
        Method::<T, I, O>::bytes(&self.0)
    }

    fn products(&self) -> Option<u64> {
        Method::<T, I, O>::products(&self.0)
    }

    unsafe fn execute(&mut self, device: &Device, o: &Operands) -> Result<DeviceCsr<T, I, O>> {
        // SAFETY: the caller's promise.
        unsafe { self.0.execute(device, o) }
    }

    unsafe fn refill(
        &mut self,
        device: &Device,
        o: &Operands,
        c: &mut DeviceCsr<T, I, O>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.refill(device, o, c) }
    }
}
