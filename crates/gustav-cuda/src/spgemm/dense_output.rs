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

/// Tiles of C, and how B comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns of a tile for sums of 4 bytes, half of which are used for those of 8: a multiple of
    /// 64 up to 1984, which has as many groups as are counted in 6 bits.
    pub columns: u32,
    /// Warps of a CTA that have a row each; fewer where shared memory has no room for as many.
    pub warps: u32,
    /// Pairs of groups of 32 entries of B that a warp reads at once, which a row of a tile has at
    /// least; as many as a mean row fills where it is left open.
    pub ahead: Option<u32>,
    /// Chunks of 16 pairs in the ring that packed B comes through, for sums of 4 bytes; what pays for a
    /// mean row where it is left open.
    pub chunks: Option<u32>,
    /// Eighths of the columns that have two sums in different banks, and rounds of balancing banks
    /// by them when B is packed; what pays for a mean row where it is left open.
    pub balance: Option<(u32, u32)>,
}

impl Default for Config {
    fn default() -> Self {
        Config { columns: 1024, warps: 24, ahead: None, chunks: None, balance: None }
    }
}

// Fewest products of an entry of C for which B is packed.
const LEAST: u32 = 4;
// Pairs of a chunk, and entries of one, as in the kernels.
const CHUNK: usize = 16;
const PAIR: usize = 64;
// Most pairs that are read at once.
const AHEAD: u32 = 4;
// Chunks of the ring that leave most rows, and for short rows of a tile, which drift apart more.
const CHUNKS: [u32; 2] = [11, 20];
// Rows of B in a tile that a CTA packs, and threads that look for where rows enter tiles.
const PACKERS: u32 = 4;
const BOUNDS: u32 = 128;
// Threads that count the pairs of a tile.
const PLACES: u32 = 1024;
// The first chips whose copy engine fills a ring.
const BULK_COPIES: (i32, i32) = (9, 0);

impl Config {
    /// With as many warps as have room in `shared` bytes, for sums of `sum` bytes and `mean` entries
    /// of a row of B in a tile, beside a ring if there is one.
    fn fitted(self, shared: usize, sum: usize, mean: f64, ring: bool) -> Result<Self> {
        // Rows of random matrices seldom have more.
        let filled = (mean + mean.sqrt()) / PAIR as f64;
        let ahead = self.ahead.unwrap_or((filled.ceil() as u32).clamp(1, AHEAD));
        // Where rows of a tile are short, a longer ring is worth more than banks without conflicts.
        let (eighths, rounds) = self.balance.unwrap_or(match ahead {
            1 => (1, 1),
            2 => (8, 1),
            _ => (8, 2),
        });
        let chunks = self.chunks.unwrap_or(CHUNKS[usize::from(ahead == 1)]);
        let balance = Some((eighths, rounds));
        let own = Config { ahead: Some(ahead), chunks: Some(chunks), balance, ..self };
        let Config { columns, warps, .. } = own;
        let whole = columns.is_multiple_of(64) && (64..=1984).contains(&columns);
        let counted = (1..=30).contains(&warps)
            && (1..=AHEAD).contains(&ahead)
            && eighths <= 8
            && rounds <= 16;
        // A segment of a tile fits beside a chunk that is on its way.
        let segment = (columns as usize).div_ceil(PAIR).max(ahead as usize);
        let held = (2..=32).contains(&chunks)
            && own.chunks(sum) as usize > 1 + (segment + CHUNK - 2) / CHUNK;
        let fits = |warps| Config { warps, ..own }.shared(sum, ring) <= shared;
        if whole && counted && held && fits(1) {
            let warps = (1..=warps).rev().find(|warps| fits(*warps)).unwrap_or(1);
            return Ok(Config { warps, ..own });
        }
        Err(gustav_core::Error::Argument {
            name: "config of dense-output",
            found: format!("{self:?}"),
            expected:
                "columns in multiples of 64 up to 1984, 1 to 30 warps, 1 to 4 pairs ahead, 2 \
                       to 32 chunks that hold a row of a tile and fit in shared memory, up to 8 \
                       eighths and 16 rounds"
                    .into(),
        })
    }

    /// Columns of a tile for sums of `sum` bytes.
    fn columns(self, sum: usize) -> u32 {
        self.columns * 4 / sum as u32
    }

    /// Chunks of the ring for sums of `sum` bytes.
    fn chunks(self, sum: usize) -> u32 {
        (self.chunks.unwrap_or(CHUNKS[0]) * 4 / sum as u32).max(2)
    }

    /// Pairs that are read at once.
    fn ahead(self) -> u32 {
        self.ahead.unwrap_or(AHEAD)
    }

    /// Lines of 32 columns with two sums each, and rounds of balancing.
    fn balance(self, sum: usize) -> (u32, u32) {
        let (eighths, rounds) = self.balance.unwrap_or((8, 1));
        (self.columns(sum) / 32 * eighths / 8, rounds)
    }

    /// Bytes of shared memory of a CTA; the kernel does not compile where it lays out others.
    fn shared(self, sum: usize, ring: bool) -> usize {
        let (ahead, chunks) = (self.ahead() as usize, self.chunks(sum) as usize);
        let (pairs, full) = if ring { (chunks * CHUNK + ahead - 1, chunks) } else { (0, 0) };
        let sums = self.columns(sum) + 32 * (self.balance(sum).0 + 1);
        let row = sums as usize * sum + 32 * 4 * sum;
        let all = (pairs + ahead) * pair(sum) + self.warps as usize * row + 8 * (full + 1) + 4 * 33;
        all.next_multiple_of(16)
    }
}

/// Bytes of a pair of groups: values and places.
fn pair(sum: usize) -> usize {
    PAIR * (sum + 2)
}

/// Whether sums tell that nothing was added to them: see `kernels/common/absent.cuh`.
fn marks(semiring: SemiringKind, dtype: DType) -> bool {
    semiring == SemiringKind::PlusTimes && !dtype.is_integer()
}

/// What `binned` computes.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    binned::supports(problem)
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let own = Config::default();
    vec![own, Config { columns: 768, ..own }]
}

/// The source with its parameters.
pub(crate) fn request(
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: SemiringKind,
    config: Config,
) -> Request {
    let text = include_str!("../../kernels/spgemm/dense_output.cu");
    let sum = dtype.bytes().max(4);
    let (doubled, rounds) = config.balance(sum);
    binned::types(Request::new("spgemm/dense_output.cu", text), dtype, index, offset)
        .with("SEMIRING", source::semiring(semiring))
        .with("COLUMNS", config.columns(sum))
        .with("WARPS", config.warps)
        .with("AHEAD", config.ahead())
        .with("CHUNKS", config.chunks(sum))
        .with("DOUBLED", doubled)
        .with("ROUNDS", rounds)
        .with("MARKS", u32::from(marks(semiring, dtype)))
        .with("SHARED", config.shared(sum, true))
        .with("SHARED_WITHOUT_RING", config.shared(sum, false))
}

/// The kernels for full rows of C, and B packed for them.
pub(super) struct FullRows {
    config: Config,
    sum: usize,
    /// Bytes of shared memory of a CTA, and CTAs that the device holds at once.
    shared: usize,
    ctas: u32,
    rises: Kernel,
    bounds: Kernel,
    places: Kernel,
    first_chunks: Kernel,
    pack: Kernel,
    full: Kernel,
    /// For rows that are not known to be full, where sums have a mark.
    all: Option<Kernel>,
    packed: Option<PackedB>,
}

/// B packed: where its rows are, and room for its entries.
struct PackedB {
    arguments: Arguments,
    bounds: DeviceBuffer<u32>,
    segments: DeviceBuffer<u32>,
    chunks: DeviceBuffer<u32>,
    pairs: DeviceBuffer<u64>,
}

/// The parameter of the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Packed {
    arguments: Arguments,
    bounds: u64,
    segments: u64,
    chunks: u64,
    pairs: u64,
    wrong: u64,
    tiles: u64,
    ctas: u32,
}

impl FullRows {
    pub(super) fn new(device: &Device, problem: &Problem, config: Config) -> Result<Self> {
        let (sum, profile) = (problem.dtype.bytes().max(4), device.profile());
        let ring = profile.compute_capability >= BULK_COPIES;
        let mean_of_b = problem.nnz_b.unwrap_or(0) as f64 / problem.inner().max(1) as f64;
        let part = f64::from(config.columns(sum)) / problem.columns.max(1) as f64;
        let mean = mean_of_b * part.min(1.0);
        let config = config.fitted(profile.shared_bytes_per_cta, sum, mean, ring)?;
        let types = (problem.index_type, problem.offset_type);
        let module = device.module(&request(problem.dtype, types, problem.semiring, config))?;
        let (full, shared) = (module.kernel(c"full")?, config.shared(sum, ring));
        full.allow_shared(shared)?;
        let marks = marks(problem.semiring, problem.dtype);
        let all = marks.then(|| module.kernel(c"all")).transpose()?;
        all.as_ref().map_or(Ok(()), |all| all.allow_shared(shared))?;
        let resident = full.resident(32 * (config.warps + 2), shared)?.max(1);
        Ok(FullRows {
            config,
            sum,
            shared,
            ctas: u32::try_from(resident * profile.multiprocessors).unwrap_or(u32::MAX),
            rises: module.kernel(c"rises")?,
            bounds: module.kernel(c"bounds")?,
            places: module.kernel(c"places")?,
            first_chunks: module.kernel(c"first_chunks")?,
            pack: module.kernel(c"pack")?,
            full,
            all,
            packed: None,
        })
    }

    /// Fewest products of an entry of C in rows that are computed here; none where B has more
    /// entries, a tile more pairs, or a CTA more chunks to come, than are counted.
    pub(super) fn least(&self, o: &Operands) -> u32 {
        // A row of a tile takes whole pairs, as many as are read at once at least.
        let ahead = self.config.ahead() as usize;
        let pairs = |tiles| o.b.nnz / PAIR + o.b.rows.saturating_mul(ahead).saturating_mul(tiles);
        let tiles = self.tiles(o.b.cols as u64) as usize;
        let chunks = pairs(tiles) / CHUNK + tiles;
        let panels = o.a.rows.div_ceil(self.config.warps as usize);
        let of_a_cta = panels.saturating_mul(chunks) / self.ctas as usize + chunks;
        let counted = u32::try_from(o.b.nnz).is_ok() && pairs(1) < 1 << 26 && of_a_cta < 1 << 30;
        if counted { LEAST } else { 0 }
    }

    /// Bytes of packed B.
    pub(super) fn bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, |b| {
            b.bounds.bytes() + b.segments.bytes() + b.chunks.bytes() + b.pairs.bytes()
        })
    }

    fn tiles(&self, columns: u64) -> u64 {
        columns.div_ceil(u64::from(self.config.columns(self.sum)))
    }

    fn parameter(&self, b: &PackedB, arguments: Arguments) -> Packed {
        Packed {
            arguments,
            bounds: b.bounds.address(),
            segments: b.segments.address(),
            chunks: b.chunks.address(),
            pairs: b.pairs.address(),
            wrong: 0,
            tiles: self.tiles(arguments.columns),
            ctas: self.ctas,
        }
    }

    /// Finds where B's rows are when they are packed, and makes room for them, for rows of C that
    /// have these arguments.
    pub(super) fn prepare(
        &mut self,
        device: &Device,
        o: &Operands,
        mut arguments: Arguments,
    ) -> Result<()> {
        arguments.set_operands(o);
        let tiles = self.tiles(arguments.columns) as usize;
        let segments = tiles.saturating_mul(o.b.rows);
        let room = |len, what| DeviceBuffer::queued(device, len, what);
        let room_of_words = |len, what| DeviceBuffer::queued(device, len, what);
        // A row of a tile fills its pairs but for the last, or takes as many as are read at once.
        let filled = segments.min(o.b.nnz).saturating_mul(self.config.ahead() as usize);
        let pairs = (o.b.nnz / PAIR).saturating_add(filled).saturating_add(CHUNK * tiles);
        let b = PackedB {
            arguments,
            bounds: room(segments.saturating_add(o.b.rows), "bounds of tiles of B")?,
            segments: room(segments, "segments of packed B")?,
            chunks: room(tiles + 1, "chunks of packed B")?,
            pairs: room_of_words(pairs.saturating_mul(pair(self.sum) / 8), "packed B")?,
        };
        let (stream, parameter) = (device.stream(), self.parameter(&b, arguments));
        let bounds = (b.bounds.len() as u64).div_ceil(u64::from(BOUNDS));
        // SAFETY: `Packed` is the kernels' parameter; there is room for what they find.
        unsafe {
            self.bounds.launch(stream, (bounds, 1), BOUNDS, &parameter)?;
            self.places.launch(stream, (parameter.tiles, 1), PLACES, &parameter)?;
            self.first_chunks.launch(stream, (1, 1), 32, &parameter)?;
        }
        self.packed = Some(b);
        Ok(())
    }

    /// Queues all rows of C, taken for full: values, columns and offsets. `wrong` is set on the device
    /// where an entry of C is, or may be, none.
    ///
    /// # Safety
    /// As [`FullRows::launch`], with C's arrays in `arguments`.
    pub(super) unsafe fn launch_all(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        wrong: u64,
    ) -> Result<()> {
        let (Some(b), Some(all)) = (&self.packed, &self.all) else { return Ok(()) };
        let parameter = Packed { wrong, ..self.parameter(b, *arguments) };
        let threads = 32 * (self.config.warps + 2);
        let grid = (u64::from(self.ctas), 1);
        // SAFETY: `Packed` is the kernels' parameter; the addresses are the caller's promise.
        unsafe { all.launch_with_shared(stream, grid, threads, self.shared, &parameter) }
    }

    /// Queues a look at B's rows, whether their columns increase; `wrong` is set where they do not.
    ///
    /// # Safety
    /// All addresses are valid until the stream has done the work.
    pub(super) unsafe fn look(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        wrong: u64,
    ) -> Result<()> {
        let parameter = Packed {
            arguments: *arguments,
            bounds: 0,
            segments: 0,
            chunks: 0,
            pairs: 0,
            wrong,
            tiles: 0,
            ctas: 0,
        };
        let grid = (arguments.rows_b.div_ceil(4), 1);
        // SAFETY: `Packed` is the kernels' parameter; the addresses are the caller's promise.
        unsafe { self.rises.launch(stream, grid, BOUNDS, &parameter) }
    }

    /// Whether rows can be taken for full.
    pub(super) fn marks(&self) -> bool {
        self.all.is_some()
    }

    /// Queues packing B's values, if there are rows to compute here.
    ///
    /// # Safety
    /// B in `o` is that of [`FullRows::prepare`], with any values, and valid until the stream has done
    /// the work.
    pub(super) unsafe fn pack(&self, stream: &Stream, o: &Operands) -> Result<()> {
        let Some(b) = &self.packed else { return Ok(()) };
        let mut arguments = b.arguments;
        arguments.set_operands(o);
        let parameter = self.parameter(b, arguments);
        let grid = (arguments.rows_b, parameter.tiles.div_ceil(u64::from(PACKERS)));
        // SAFETY: `Packed` is the kernels' parameter; there is room for all pairs.
        unsafe { self.pack.launch(stream, grid, 32 * PACKERS, &parameter) }
    }

    /// Queues `count` rows of the list of `arguments`, from `begin` on.
    ///
    /// # Safety
    /// All addresses are valid until the stream has done the work, and B is packed.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        begin: u32,
        count: u32,
    ) -> Result<()> {
        let Some(b) = &self.packed else { return Ok(()) };
        let mut arguments = *arguments;
        (arguments.begin, arguments.count) = (begin, count);
        let parameter = self.parameter(b, arguments);
        let threads = 32 * (self.config.warps + 2);
        let grid = (u64::from(self.ctas), 1);
        // SAFETY: `Packed` is the kernels' parameter; the addresses are the caller's promise.
        unsafe { self.full.launch_with_shared(stream, grid, threads, self.shared, &parameter) }
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

    unsafe fn finish(self: Box<Self>, device: &Device, o: &Operands) -> Result<DeviceCsr<T, I, O>> {
        // SAFETY: the caller's promise.
        unsafe { Box::new(self.0).finish(device, o) }
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
