//! Full rows of C: their kernels, and the packed B.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use gustav_core::{Problem, Result};

use super::packed::{Packed, PackedB};
use super::{Config, PAIR, marks, request};
use crate::device::{Device, PinnedBuffer, Stream};
use crate::launch::Kernel;
use crate::product::sparse_operands::Operands;
use crate::spgemm::binned::Arguments;
use crate::spgemm::types::Types;

// Fewest products per entry of C for which B is packed.
const LEAST: u32 = 4;
// Rows of B of a CTA that packs a tile, or that computes the boundaries of tiles in rows.
const PACKERS: u32 = 4;
// Threads that count the pairs of a tile.
const POSITIONS: u32 = 1024;
// The first compute capability with bulk copies, which fill the ring buffer.
const BULK_COPIES: (i32, i32) = (9, 0);

/// The kernels for one problem's types and configuration.
struct Kernels {
    config: Config,
    sum: usize,
    /// Bytes of shared memory of a CTA, and resident CTAs of the device.
    shared: usize,
    ctas: u32,
    /// Whether sums can be marked, so that all rows can be assumed full and checked.
    marks: bool,
    bounds: Kernel<Packed>,
    positions: Kernel<Packed>,
    first_chunks: Kernel<Packed>,
    pack: Kernel<Packed>,
    values: Kernel<Packed>,
    full: Kernel<Packed>,
    /// Unused host memory for reports of kernels.
    words: Mutex<Vec<PinnedBuffer<u64>>>,
}

impl Kernels {
    fn new(device: &Device, types: Types, config: Config, ring: bool) -> Result<Self> {
        let (module, sum) = (device.module(&request(types, config))?, types.sum());
        let (full, shared) = (module.kernel(c"full")?, config.shared(sum, ring));
        full.allow_shared(shared)?;
        let resident = full.resident(config.threads(), shared)?.max(1);
        let ctas = resident * device.profile().multiprocessors;
        Ok(Kernels {
            config,
            sum,
            shared,
            ctas: u32::try_from(ctas).unwrap_or(u32::MAX),
            marks: marks(types),
            bounds: module.kernel(c"bounds")?,
            positions: module.kernel(c"positions")?,
            first_chunks: module.kernel(c"first_chunks")?,
            pack: module.kernel(c"pack")?,
            values: module.kernel(c"values")?,
            full,
            words: Mutex::default(),
        })
    }

    /// Queues the kernel that sums rows, with B packed.
    ///
    /// # Safety
    /// The addresses in `parameter` are valid until the work is done.
    unsafe fn sum(&self, stream: &Stream, parameter: &Packed) -> Result<()> {
        let (grid, threads) = ((u64::from(self.ctas), 1), self.config.threads());
        // SAFETY: the addresses are the caller's promise.
        unsafe { self.full.launch_with_shared(stream, grid, threads, self.shared, parameter) }
    }
}

/// The kernels for full rows of C, and the packed B.
pub(in crate::spgemm) struct FullRows {
    kernels: Arc<Kernels>,
    packed: Option<PackedB>,
}

impl FullRows {
    pub(in crate::spgemm) fn new(
        device: &Device,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        let (types, profile) = (Types::of(problem), device.profile());
        let sum = types.sum();
        let ring = profile.compute_capability >= BULK_COPIES;
        let mean_of_b = problem.nnz_b.unwrap_or(0) as f64 / problem.inner().max(1) as f64;
        let b = (problem.columns, mean_of_b);
        let config = config.fitted(profile.shared_bytes_per_cta, sum, b, ring)?;
        let make = || Kernels::new(device, types, config, ring);
        let kernels = device.cached(&format!("{types:?} {config:?}"), make)?;
        Ok(FullRows { kernels, packed: None })
    }

    /// Fewest products per entry of rows of C that are computed here; 0 for none, if the entries of
    /// B, the pairs of a tile, or the chunks of a CTA exceed the kernels' counters.
    pub(in crate::spgemm) fn least(&self, o: &Operands) -> u32 {
        let Kernels { config, sum, ctas, .. } = *self.kernels;
        // A row of a tile takes whole pairs, at least as many as are read together.
        let pairs_in_flight = config.pairs_in_flight() as usize;
        let pairs =
            |tiles| o.b.nnz / PAIR + o.b.rows.saturating_mul(pairs_in_flight).saturating_mul(tiles);
        let tiles = o.b.cols.div_ceil(config.columns(sum) as usize);
        let chunks = pairs(tiles) / config.chunk(sum) as usize + tiles;
        let panels = o.a.rows.div_ceil(config.warps as usize);
        let of_a_cta = panels.saturating_mul(chunks) / ctas as usize + chunks;
        let counted = u32::try_from(o.b.nnz).is_ok() && pairs(1) < 1 << 26 && of_a_cta < 1 << 30;
        if counted { LEAST } else { 0 }
    }

    /// Bytes of packed B.
    pub(in crate::spgemm) fn bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, PackedB::bytes)
    }

    /// Whether all rows can be assumed full and checked.
    pub(in crate::spgemm) fn marks(&self) -> bool {
        self.kernels.marks
    }

    /// Packs B for rows of C with these arguments: its values or, if `refillable`, their positions,
    /// for [`FullRows::refresh`]. If columns of B's rows do not increase, nothing is packed, which
    /// [`FullRows::launch_taken`] reports.
    ///
    /// # Safety
    /// The addresses in `o` are valid until the work is done.
    pub(in crate::spgemm) unsafe fn pack(
        &mut self,
        device: &Device,
        o: &Operands,
        arguments: Arguments,
        refillable: bool,
    ) -> Result<()> {
        let (k, stream) = (&*self.kernels, device.stream());
        let b = PackedB::new(device, o, (k.config, k.sum, k.ctas), arguments, refillable)?;
        let parameter = &b.parameter;
        let (rows, tiles) = (arguments.rows_b, parameter.tiles);
        // SAFETY: there is memory for their results.
        unsafe {
            let grid = (rows.div_ceil(u64::from(PACKERS)), 1);
            k.bounds.launch(stream, grid, 32 * PACKERS, parameter)?;
            k.positions.launch(stream, (tiles, 1), POSITIONS, parameter)?;
            k.first_chunks.launch(stream, (1, 1), 32, parameter)?;
            k.pack.launch(stream, in_tiles(rows, tiles), 32 * PACKERS, parameter)?;
        }
        self.packed = Some(b);
        Ok(())
    }

    /// Queues the copy of B's values to their packed positions, if there are rows to compute here.
    ///
    /// # Safety
    /// B in `o` is that of [`FullRows::pack`], with any values, and valid until the work is done.
    pub(in crate::spgemm) unsafe fn refresh(&self, stream: &Stream, o: &Operands) -> Result<()> {
        let Some(b) = &self.packed else { return Ok(()) };
        let mut parameter = b.parameter;
        parameter.arguments.set_operands(o);
        let grid = in_tiles(parameter.arguments.rows_b, parameter.tiles);
        // SAFETY: there is memory for all pairs.
        unsafe { self.kernels.values.launch(stream, grid, 32 * PACKERS, &parameter) }
    }

    /// Queues the computation of `count` rows of the list of `arguments`, from `begin` on, or of
    /// all rows without a list. Columns of C are written unless `arguments` has no array for them.
    ///
    /// # Safety
    /// All addresses are valid until the work is done, and B is packed.
    pub(in crate::spgemm) unsafe fn launch(
        &self,
        stream: &Stream,
        arguments: &Arguments,
        begin: u32,
        count: u32,
    ) -> Result<()> {
        let Some(b) = &self.packed else { return Ok(()) };
        let mut parameter = b.parameter;
        parameter.arguments = *arguments;
        (parameter.arguments.begin, parameter.arguments.count) = (begin, count);
        // SAFETY: the caller's promise.
        unsafe { self.kernels.sum(stream, &parameter) }
    }

    /// Computes all rows of C on the assumption that they are full: values, columns and offsets.
    /// Frees the packed B, waits, and returns whether they are full.
    ///
    /// # Safety
    /// As [`FullRows::launch`], with C's arrays in `arguments`.
    pub(in crate::spgemm) unsafe fn launch_taken(
        mut self,
        device: &Device,
        arguments: &Arguments,
    ) -> Result<bool> {
        let Some(b) = self.packed.take() else { return Ok(false) };
        let words = || self.kernels.words.lock().unwrap_or_else(PoisonError::into_inner);
        let free = words().pop();
        let wrong = match free {
            Some(word) => word,
            None => PinnedBuffer::zeroed(device, 1, "whether C is full")?,
        };
        let word = || wrong.atomics().iter();
        word().for_each(|word| word.store(0, Ordering::Relaxed));
        let mut parameter = b.parameter;
        (parameter.arguments, parameter.wrong) = (*arguments, wrong.address());
        // SAFETY: the caller's promise.
        unsafe { self.kernels.sum(device.stream(), &parameter)? };
        // Queues freeing B while the kernel runs.
        drop(b);
        device.stream().synchronize()?;
        let full = word().all(|word| word.load(Ordering::Relaxed) == 0);
        words().push(wrong);
        Ok(full)
    }
}

/// A grid for every row of B in every tile.
fn in_tiles(rows: u64, tiles: u64) -> (u64, u64) {
    (rows, tiles.div_ceil(u64::from(PACKERS)))
}
