//! `dense-output`: for a nearly dense C. A warp computes a full row of C, with a sum for every
//! column of a tile and a packed B; the other rows are computed as in `binned`. See
//! `kernels/spgemm/dense_output.cu`.

mod full_rows;
mod packed;

use gustav_core::{Index, Problem, Result, Scalar, Semiring};

use super::binned;
use super::types::Types;
use crate::device::Device;
use crate::jit::{Request, source};
use crate::matrix::DeviceCsr;
use crate::product::sparse_method::Method;
use crate::product::sparse_operands::Operands;

pub(super) use full_rows::FullRows;
use packed::Packed;

/// Tiles of C, and the copies of B to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns of a tile for sums of 4 bytes, half as many for sums of 8, a multiple of 32: up to
    /// 1984, whose groups 6 bits count; by default the number with which rows of B fill the fewest
    /// pairs.
    pub columns: Option<u32>,
    /// Warps of a CTA with a row each; fewer if shared memory is too small.
    pub warps: u32,
    /// Pairs of groups of 32 entries of B that a warp reads together, the least that a row of a
    /// tile has; by default as many as a mean row fills.
    pub pairs_in_flight: Option<u32>,
    /// The ring buffer to which packed B is copied; by default the best for a mean row.
    pub ring: Option<Ring>,
    /// How bank conflicts are avoided; by default the best for a mean row.
    pub balance: Option<Balance>,
}

/// A ring buffer in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Ring {
    /// Chunks.
    pub chunks: u32,
    /// Pairs of groups of B's entries in a chunk, for sums of 4 bytes; half of them for sums of 8.
    pub pairs: u32,
}

/// How sums are distributed over the banks of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Balance {
    /// Eighths of the columns with two sums, in different banks.
    pub eighths: u32,
    /// Rounds of choosing between the two when B is packed.
    pub rounds: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { columns: None, warps: 24, pairs_in_flight: None, ring: None, balance: None }
    }
}

// Entries of a pair, as in the kernels.
const PAIR: usize = 64;
// Candidates for the columns of a tile; the first in a tie.
const COLUMNS: [u32; 2] = [1024, 1184];
// Most pairs that are read together.
const MOST_IN_FLIGHT: u32 = 4;
// The ring buffer that leaves shared memory for the most rows.
const RING: Ring = Ring { chunks: 3, pairs: 64 };
// A longer one for short rows of a tile, where the progress of warps differs more.
const LONG_RING: Ring = Ring { chunks: 5, pairs: 64 };

impl Config {
    /// Threads of a CTA: a warp for every row, and one that fills the ring buffer.
    fn threads(self) -> u32 {
        32 * (self.warps + 1)
    }

    /// The configuration with its defaults replaced, for B with this shape: as many warps as fit in
    /// `shared` bytes with sums of `sum` bytes, beside a ring buffer if `ring`.
    fn fitted(
        self,
        shared: usize,
        sum: usize,
        (columns, mean): (usize, f64),
        ring: bool,
    ) -> Result<Self> {
        let filled = |config: Config| {
            let part = f64::from(config.columns(sum)) / columns.max(1) as f64;
            let mean = mean * part.min(1.0);
            // An upper estimate: rows of random matrices seldom have more.
            let pairs = (mean + mean.sqrt()) / PAIR as f64;
            config.pairs_in_flight.unwrap_or((pairs.ceil() as u32).clamp(1, MOST_IN_FLIGHT))
        };
        let tiles = |config: Config| columns.div_ceil(config.columns(sum).max(1) as usize);
        let choices = COLUMNS.map(|columns| Config { columns: Some(columns), ..self });
        let best = choices.into_iter().min_by_key(|c| filled(*c) as usize * tiles(*c));
        let own = best.filter(|_| self.columns.is_none()).unwrap_or(self);
        own.laid_out(shared, sum, filled(own), ring)
    }

    /// The same with `pairs_in_flight` pairs read together.
    fn laid_out(self, shared: usize, sum: usize, pairs_in_flight: u32, ring: bool) -> Result<Self> {
        // For short rows of a tile, a longer ring buffer pays more than avoiding bank conflicts.
        let balance = self.balance.unwrap_or(match pairs_in_flight {
            1 => Balance { eighths: 1, rounds: 1 },
            2 => Balance { eighths: 8, rounds: 1 },
            _ => Balance { eighths: 8, rounds: 2 },
        });
        let Ring { chunks, pairs } =
            self.ring.unwrap_or(if pairs_in_flight == 1 { LONG_RING } else { RING });
        let own = Config {
            pairs_in_flight: Some(pairs_in_flight),
            ring: Some(Ring { chunks, pairs }),
            balance: Some(balance),
            ..self
        };
        let (columns, warps) = (own.columns.unwrap_or(COLUMNS[0]), own.warps);
        let whole = columns.is_multiple_of(32) && (64..=1984).contains(&columns);
        let counted = (1..=30).contains(&warps)
            && (1..=MOST_IN_FLIGHT).contains(&pairs_in_flight)
            && balance.eighths <= 8
            && balance.rounds <= 16;
        // A segment of a tile must fit beside a chunk that is in flight.
        let segment = (own.columns(sum) as usize).div_ceil(PAIR).max(pairs_in_flight as usize);
        let held = (2..=32).contains(&chunks)
            && (MOST_IN_FLIGHT..=64).contains(&pairs)
            && chunks > 1 + (segment as u32 + own.chunk(sum) - 2) / own.chunk(sum);
        let fits = |warps| Config { warps, ..own }.shared(sum, ring) <= shared;
        if whole && counted && held && fits(1) {
            let warps = (1..=warps).rev().find(|warps| fits(*warps)).unwrap_or(1);
            return Ok(Config { warps, ..own });
        }
        Err(gustav_core::Error::Argument {
            name: "config of dense-output",
            found: format!("{self:?}"),
            expected:
                "columns in multiples of 32 from 64 to 1984, 1 to 30 warps, 1 to 4 pairs in flight, 2 \
                       to 32 chunks of 4 to 64 pairs that hold a row of a tile and fit in \
                       shared memory, up to 8 eighths and 16 rounds"
                    .into(),
        })
    }

    /// Columns of a tile for sums of `sum` bytes.
    fn columns(self, sum: usize) -> u32 {
        self.columns.unwrap_or(COLUMNS[0]) * 4 / sum as u32 / 32 * 32
    }

    /// Chunks of the ring buffer.
    fn chunks(self) -> u32 {
        self.ring.unwrap_or(RING).chunks
    }

    /// Pairs of a chunk for sums of `sum` bytes.
    fn chunk(self, sum: usize) -> u32 {
        (self.ring.unwrap_or(RING).pairs * 4 / sum as u32).max(MOST_IN_FLIGHT)
    }

    /// Pairs that are read together.
    fn pairs_in_flight(self) -> u32 {
        self.pairs_in_flight.unwrap_or(MOST_IN_FLIGHT)
    }

    /// Lines of 32 columns with two sums each, and rounds of balancing.
    fn balance(self, sum: usize) -> (u32, u32) {
        let Balance { eighths, rounds } = self.balance.unwrap_or(Balance { eighths: 8, rounds: 1 });
        (self.columns(sum) / 32 * eighths / 8, rounds)
    }

    /// Bytes of shared memory of a CTA; the kernel asserts the same number.
    fn shared(self, sum: usize, ring: bool) -> usize {
        let (pairs_in_flight, chunk) = (self.pairs_in_flight() as usize, self.chunk(sum) as usize);
        let chunks = if ring { self.chunks() as usize } else { 0 };
        let pairs = if ring { chunks * chunk + pairs_in_flight - 1 } else { 0 };
        let sums = self.columns(sum) + 32 * (self.balance(sum).0 + 1);
        let row = sums as usize * sum + 32 * 4 * sum;
        let all = (pairs + pairs_in_flight) * pair(sum)
            + self.warps as usize * row
            + 2 * 8 * (chunks + 1);
        all.next_multiple_of(16)
    }
}

/// Bytes of a pair of groups: values and positions.
fn pair(sum: usize) -> usize {
    PAIR * (sum + 2)
}

/// Whether a sum can hold a mark of "nothing added yet": see `kernels/common/absent.cuh`.
fn marks(types: Types) -> bool {
    types.semiring == Semiring::PlusTimes && !types.dtype.is_integer()
}

/// Supports what `binned` supports.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    binned::supports(problem)
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let own = Config::default();
    vec![own, Config { columns: Some(768), ..own }]
}

/// The source with its parameters.
pub(crate) fn request(types: Types, config: Config) -> Request {
    let sum = types.sum();
    let (doubled, rounds) = config.balance(sum);
    binned::typed(request!("spgemm/dense_output.cu").with_block::<Packed>(), types)
        .with("SEMIRING", source::semiring(types.semiring))
        .with("COLUMNS", config.columns(sum))
        .with("WARPS", config.warps)
        .with("IN_FLIGHT", config.pairs_in_flight())
        .with("CHUNKS", config.chunks())
        .with("CHUNK", config.chunk(sum))
        .with("DOUBLED", doubled)
        .with("ROUNDS", rounds)
        .with("MARKS", u32::from(marks(types)))
        .with("SHARED", config.shared(sum, true))
        .with("SHARED_WITHOUT_RING", config.shared(sum, false))
}

/// `binned` with a bin of its own for full rows of C.
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
