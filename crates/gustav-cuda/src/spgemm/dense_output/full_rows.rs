//! Full rows of C: their kernels, and B packed for them.

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

// Fewest products of an entry of C for which B is packed.
const LEAST: u32 = 4;
// Rows of B that a CTA packs in a tile, or looks for where they enter tiles.
const PACKERS: u32 = 4;
// Threads that count the pairs of a tile.
const PLACES: u32 = 1024;
// The first chips whose copy engine fills a ring.
const BULK_COPIES: (i32, i32) = (9, 0);

/// What is compiled for one problem's types and lengths of rows.
struct Kernels {
    config: Config,
    sum: usize,
    /// Bytes of shared memory of a CTA, and CTAs that the device holds at once.
    shared: usize,
    ctas: u32,
    /// Whether sums have a mark, so that rows can be taken for full.
    marks: bool,
    bounds: Kernel<Packed>,
    places: Kernel<Packed>,
    first_chunks: Kernel<Packed>,
    pack: Kernel<Packed>,
    values: Kernel<Packed>,
    full: Kernel<Packed>,
    /// Host memory for reports of kernels, not in use.
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
            places: module.kernel(c"places")?,
            first_chunks: module.kernel(c"first_chunks")?,
            pack: module.kernel(c"pack")?,
            values: module.kernel(c"values")?,
            full,
            words: Mutex::default(),
        })
    }

    /// Queues the sums of rows, with B packed.
    ///
    /// # Safety
    /// The addresses in `parameter` are valid until the stream has done the work.
    unsafe fn sum(&self, stream: &Stream, parameter: &Packed) -> Result<()> {
        let (grid, threads) = ((u64::from(self.ctas), 1), self.config.threads());
        // SAFETY: the addresses are the caller's promise.
        unsafe { self.full.launch_with_shared(stream, grid, threads, self.shared, parameter) }
    }
}

/// The kernels for full rows of C, and B packed for them.
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

    /// Fewest products of an entry of C in rows that are computed here; none where B has more
    /// entries, a tile more pairs, or a CTA more chunks to come, than are counted.
    pub(in crate::spgemm) fn least(&self, o: &Operands) -> u32 {
        let Kernels { config, sum, ctas, .. } = *self.kernels;
        // A row of a tile takes whole pairs, as many as are read at once at least.
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

    /// Whether rows can be taken for full.
    pub(in crate::spgemm) fn marks(&self) -> bool {
        self.kernels.marks
    }

    /// Packs B, for rows of C that have these arguments: its values, or, if `refillable`, where they will
    /// go, which is then done by [`FullRows::refresh`]. Rows of B whose columns do not increase are no
    /// harm: nothing is packed then, which [`FullRows::launch_taken`] reports.
    ///
    /// # Safety
    /// The addresses in `o` are valid until the device's stream has done the work.
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
        // SAFETY: there is memory for what they find.
        unsafe {
            let grid = (rows.div_ceil(u64::from(PACKERS)), 1);
            k.bounds.launch(stream, grid, 32 * PACKERS, parameter)?;
            k.places.launch(stream, (tiles, 1), PLACES, parameter)?;
            k.first_chunks.launch(stream, (1, 1), 32, parameter)?;
            k.pack.launch(stream, in_tiles(rows, tiles), 32 * PACKERS, parameter)?;
        }
        self.packed = Some(b);
        Ok(())
    }

    /// Queues putting B's values to where they are packed, if there are rows to compute here.
    ///
    /// # Safety
    /// B in `o` is that of [`FullRows::pack`], with any values, and valid until the stream has done
    /// the work.
    pub(in crate::spgemm) unsafe fn refresh(&self, stream: &Stream, o: &Operands) -> Result<()> {
        let Some(b) = &self.packed else { return Ok(()) };
        let mut parameter = b.parameter;
        parameter.arguments.set_operands(o);
        let grid = in_tiles(parameter.arguments.rows_b, parameter.tiles);
        // SAFETY: there is memory for all pairs.
        unsafe { self.kernels.values.launch(stream, grid, 32 * PACKERS, &parameter) }
    }

    /// Queues `count` rows of the list of `arguments`, from `begin` on, or all rows where there is no
    /// list. Columns of C are written unless `arguments` has none.
    ///
    /// # Safety
    /// All addresses are valid until the stream has done the work, and B is packed.
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

    /// Computes all rows of C, taken for full: values, columns and offsets. Frees the packed B, waits,
    /// and returns whether they are.
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
        // Queued meanwhile.
        drop(b);
        device.stream().synchronize()?;
        let full = word().all(|word| word.load(Ordering::Relaxed) == 0);
        words().push(wrong);
        Ok(full)
    }
}

/// CTAs that have every row of B in every tile.
fn in_tiles(rows: u64, tiles: u64) -> (u64, u64) {
    (rows, tiles.div_ceil(u64::from(PACKERS)))
}
