//! `binned`: rows of C binned by their cost, each bin with an accumulator in shared memory. See
//! `kernels/spgemm/analysis.cu`, `symbolic.cu`, `offsets.cu` and `numeric.cu`.

mod arguments;
mod bins;
mod cache;
mod kernels;
mod part;
mod report;
mod request;
mod split_rows;

use std::ops::Range;
use std::sync::Arc;

use gustav_core::{Error, Index, Operation, Problem, Result, Scalar};

use super::dense_output::FullRows;
use super::masked::{MaskedSums, unordered};
use super::types::Types;
use crate::device::{Device, DeviceBuffer};
use crate::matrix::DeviceCsr;
use crate::product::sparse_method::{Method, Progress, Watch, report};
use crate::product::sparse_operands::{Operands, Sparse};
use crate::product::unsupported;
use arguments::Layout;
pub(super) use arguments::{Arguments, merged};
use cache::{Offsets, PartCache};
use kernels::Kernels;
use part::Part;

pub(super) use request::typed;
#[cfg(test)]
pub(crate) use request::{Limits, Source, request};

/// Threads of CTAs that compute one row each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// For rows of some thousand products.
    pub wide: u32,
    /// For larger rows.
    pub huge: u32,
    /// For rows with a dense accumulator.
    pub dense: u32,
    /// Most bytes of workspace. If it does not suffice for all rows, they are computed in parts of
    /// at least one row: see [`Options::workspace`](super::Options::workspace).
    pub workspace: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Config { wide: 256, huge: 512, dense: 256, workspace: None }
    }
}

impl Config {
    /// # Errors
    /// [`Error::Argument`] for sizes of CTAs that the kernels do not support.
    fn check(&self) -> Result<()> {
        let power = |threads: u32| threads.is_power_of_two() && (128..=1024).contains(&threads);
        let warps = self.dense.is_multiple_of(32) && (32..=1024).contains(&self.dense);
        if power(self.wide) && power(self.huge) && warps {
            return Ok(());
        }
        let Config { wide, huge, dense, .. } = self;
        let expected =
            "wide and huge a power of two from 128 to 1024, dense whole warps up to 1024";
        Err(Error::Argument {
            name: "config",
            found: format!("wide {wide}, huge {huge}, dense {dense}"),
            expected: expected.into(),
        })
    }
}

/// Supports every SpGEMM whose rows and columns 32 bits count.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason, nearest| Err(unsupported(problem, "binned on CUDA", reason, nearest));
    if problem.operation != Operation::Spgemm {
        return refuse("it multiplies two sparse matrices", "Problem::spgemm");
    }
    if problem.output_rows().max(problem.columns) >= u32::MAX as usize {
        return refuse("it counts rows and columns in 32 bits", "gustavson on the device cpu");
    }
    if problem.deterministic && problem.inner() >= u32::MAX as usize {
        return refuse("it keeps the order of rows of B in 32 bits", "gustavson on the device cpu");
    }
    Ok(())
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let own = Config::default();
    vec![own, Config { dense: 128, ..own }, Config { wide: 128, ..own }]
}

/// C's rows, all together or in parts.
pub(super) struct Prepared {
    kernels: Arc<Kernels>,
    problem: Problem,
    rows: Rows,
    workspace: Option<usize>,
    full: Option<FullRows>,
    /// For deterministic products: computes all sums again in a fixed order.
    in_order: Option<MaskedSums>,
    products: u64,
    nnz: u64,
    /// Whether the plan has been executed.
    executed: bool,
}

enum Rows {
    Whole(Box<Part>),
    Parts(Parts),
}

/// Parts of `step` rows.
struct Parts {
    step: usize,
    /// Bytes of workspace of the largest part.
    bytes: usize,
    /// Entries of the largest part.
    entries: u64,
    /// Bytes of a slot: of the largest cached part.
    slot_bytes: usize,
    /// Number of cached parts on the device.
    slots: usize,
    /// Bytes of the cache on the host.
    host_bytes: usize,
    /// The cached symbolic phase, for later executions.
    cache: Option<Box<PartCache>>,
    /// Whether there was no memory for a cache: every execution then repeats the symbolic phase.
    uncacheable: bool,
}

// Number of cached parts on the device if the limit allows it: one is computed while the other is
// copied.
const SLOTS: usize = 2;

impl Parts {
    fn of(step: usize) -> Self {
        Parts {
            step,
            bytes: 0,
            entries: 0,
            slot_bytes: 0,
            slots: 1,
            host_bytes: 0,
            cache: None,
            uncacheable: false,
        }
    }
}

/// Rows of a part: the most that fit, at least one, then evened out so that parts are about equal.
fn step_of(rows: usize, fits: impl Fn(usize) -> bool) -> usize {
    if rows <= 1 || fits(rows) {
        return rows;
    }
    let (mut most, mut too_many) = (1, rows);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        if fits(middle) { most = middle } else { too_many = middle }
    }
    rows.div_ceil(rows.div_ceil(most))
}

impl Prepared {
    /// Analysis and symbolic phase, in parts if memory or the configuration does not allow all rows
    /// at once.
    pub(super) fn new(
        device: &Device,
        o: &Operands,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        Self::with(device, o, problem, config, None)
    }

    /// The same, with full rows computed by `full`.
    pub(super) fn with(
        device: &Device,
        o: &Operands,
        problem: &Problem,
        config: Config,
        full: Option<FullRows>,
    ) -> Result<Self> {
        config.check()?;
        let types = Types::of(problem);
        let workspace = config.workspace;
        let config = Config { workspace: None, ..config };
        let make = || Kernels::new(device, types, config);
        let kernels = device.cached(&format!("{types:?} {config:?}"), make)?;
        let in_order =
            problem.deterministic.then(|| MaskedSums::new(device, problem)).transpose()?;
        let bytes = |rows: usize| {
            let order = if in_order.is_some() { MaskedSums::bytes_of(rows, rows) } else { 0 };
            let (own, offsets) = (Layout::new(rows).bytes(), (rows + 1) * o.offset_type.bytes());
            let cache = if rows < o.a.rows { SLOTS * own } else { 0 };
            cache.max(own + offsets) + order
        };
        let mut step = step_of(o.a.rows, |rows| workspace.is_none_or(|most| bytes(rows) <= most));
        // A deterministic product needs sorted columns of C as well.
        let sorted = problem.sorted || problem.deterministic;
        let problem = Problem { sorted, ..problem.clone() };
        let rows = Rows::Parts(Parts::of(step));
        let (products, nnz, executed) = (0, 0, false);
        let mut prepared =
            Prepared { kernels, problem, rows, workspace, full, in_order, products, nnz, executed };
        loop {
            let counted = prepared.count(device, o, step);
            match counted.and_then(|()| prepared.take_order(device, o.a.rows)) {
                Err(Error::OutOfMemory { .. }) if step > 1 => step = step.div_ceil(2),
                done => break done?,
            }
        }
        let left = prepared.bound();
        if let Rows::Parts(parts) = &mut prepared.rows {
            let fits = |slots: &usize| left.is_none_or(|left| slots * parts.slot_bytes <= left);
            parts.slots = Some(SLOTS).filter(fits).unwrap_or(1);
            parts.bytes = parts.bytes.max(parts.slots * parts.slot_bytes);
        }
        Ok(prepared)
    }

    /// Most bytes besides the memory for the deterministic sums.
    fn bound(&self) -> Option<usize> {
        let order = self.in_order.as_ref().map_or(0, MaskedSums::bytes);
        self.workspace.map(|most| most.saturating_sub(order))
    }

    /// Allocates the workspace for deterministic sums, for all `rows` or for the largest part.
    fn take_order(&mut self, device: &Device, rows: usize) -> Result<()> {
        let Some(in_order) = &mut self.in_order else { return Ok(()) };
        let (rows, entries, held) = match &self.rows {
            Rows::Whole(part) => (rows, self.nnz, part.bytes()),
            Rows::Parts(parts) => (parts.step.min(rows), parts.entries, parts.bytes),
        };
        let entries = usize::try_from(entries).unwrap_or(usize::MAX);
        let needed = held.saturating_add(MaskedSums::bytes_of(rows, entries));
        match self.workspace.filter(|most| needed > *most && rows > 1) {
            Some(most) => Err(Error::OutOfMemory {
                what: "deterministic sums within the limit of the workspace",
                needed: needed as u128,
                available: Some(most as u64),
            }),
            None => in_order.prepare(device, rows, entries),
        }
    }

    /// Counts C's entries, `step` rows at a time.
    fn count(&mut self, device: &Device, o: &Operands, step: usize) -> Result<()> {
        let (mut all, mut full_rows) = (Parts::of(step), None);
        (self.products, self.nnz, self.rows) = (0, 0, Rows::Parts(Parts::of(step)));
        for rows in parts(o.a.rows, step) {
            let whole = rows.len() == o.a.rows;
            let part = self.part(device, o, rows, None)?;
            if self.in_order.is_some() && !part.is_ordered() {
                return Err(unordered(&self.problem, "binned on CUDA"));
            }
            self.products += part.products;
            self.nnz += part.entries();
            all.bytes = all.bytes.max(part.bytes());
            all.entries = all.entries.max(part.entries());
            all.slot_bytes = all.slot_bytes.max(part.held());
            all.host_bytes += cache::bytes_of(&part, &self.kernels);
            full_rows = full_rows.or(part.full_rows().copied());
            if whole {
                self.rows = Rows::Whole(Box::new(part));
            }
        }
        if let (Some(full), Some(arguments)) = (&mut self.full, full_rows) {
            // SAFETY: the operands are the caller's promise.
            match unsafe { full.pack(device, o, arguments, true) } {
                // Without memory for a packed B, full rows are computed like others.
                Err(Error::OutOfMemory { .. }) => {
                    self.full = None;
                    return self.count(device, o, step);
                }
                other => other?,
            }
        }
        if let Rows::Parts(parts) = &mut self.rows {
            *parts = all;
        }
        if o.offset_type == gustav_core::IndexType::U32 && self.nnz > u64::from(u32::MAX) {
            return Err(Error::Overflow {
                what: "row offset of C",
                need: u128::from(self.nnz),
                index_type: o.offset_type,
            });
        }
        Ok(())
    }

    /// The part of `rows`. `offsets` is the address of their offsets of C and the value of the
    /// first; without it, the part allocates them.
    fn part(
        &self,
        device: &Device,
        o: &Operands,
        rows: Range<usize>,
        offsets: Option<(u64, u64)>,
    ) -> Result<Part> {
        let o = of_rows(o, &rows);
        let full = self.full.as_ref().map_or(0, |full| full.least(&o));
        let most = self.bound();
        // SAFETY: the operands are the caller's promise, which covers their rows.
        unsafe { Part::new(device, &self.kernels, &o, &self.problem, offsets, most, full) }
    }

    /// Whether further executions are expected.
    fn is_for_several(&self) -> bool {
        self.executed || self.problem.calls > 1
    }

    /// Queues the computation of C with these offsets, which parts write as they are computed.
    /// `caches`: whether the symbolic phase of the parts is cached.
    ///
    /// # Safety
    /// As [`Method::execute`].
    unsafe fn compute<T: Scalar, I: Index, O: Index>(
        &mut self,
        device: &Device,
        o: &Operands,
        offsets: DeviceBuffer<O>,
        watch: Option<Watch<'_>>,
        caches: bool,
    ) -> Result<DeviceCsr<T, I, O>> {
        let nnz = usize::try_from(self.nnz).unwrap_or(usize::MAX);
        let indices = DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
        let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
        // SAFETY: the numeric phase fills the arrays, whose offsets increase to `nnz`.
        unsafe {
            let mut c =
                DeviceCsr::from_parts_unchecked(o.a.rows, o.b.cols, offsets, indices, values);
            self.fill(device, o, &mut c, Fill { pattern_known: false, caches }, watch)?;
            self.executed = true;
            if self.in_order.is_some() {
                self.refill(device, o, &mut c)?;
            }
            Ok(c)
        }
    }

    /// Queues the computation of columns and values of C, and of the offsets of parts unless they
    /// are known.
    ///
    /// # Safety
    /// As [`Method::refill`].
    unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &mut self,
        device: &Device,
        o: &Operands,
        c: &mut DeviceCsr<T, I, O>,
        Fill { pattern_known: known, caches }: Fill,
        mut watch: Option<Watch<'_>>,
    ) -> Result<()> {
        let full = self.full.as_ref();
        if let Some(full) = full {
            // SAFETY: the caller's promise.
            unsafe { full.refresh(device.stream(), o)? };
        }
        let (address, bytes) = (c.offsets().address(), o.offset_type.bytes());
        let (step, host, slots, caches) = match &mut self.rows {
            Rows::Whole(part) => {
                // SAFETY: the caller's promise; C has the entries that the offsets imply.
                unsafe { part.fill(device, &self.kernels, full, o, c, known)? };
                return match watch {
                    Some(watch) => report(device, watch, Progress { done: 1, tiles: 1 }),
                    None => Ok(()),
                };
            }
            Rows::Parts(Parts { cache: Some(cache), step, .. }) => {
                let tiles = parts(o.a.rows, *step).count();
                return cache.each(
                    device,
                    Offsets { address, bytes, known },
                    |part, rows, number| {
                        let o = of_rows(o, rows);
                        // SAFETY: as above.
                        unsafe { part.fill(device, &self.kernels, full, &o, c, known)? };
                        match &mut watch {
                            Some(watch) => {
                                report(device, &mut **watch, Progress { done: number + 1, tiles })
                            }
                            None => Ok(()),
                        }
                    },
                );
            }
            Rows::Parts(parts) => {
                (parts.step, parts.host_bytes, parts.slots, caches && !parts.uncacheable)
            }
        };
        let new_cache = || match PartCache::new(device, host, (o.a.rows + 1) * bytes) {
            Err(Error::OutOfMemory { .. }) => Ok(None),
            other => other.map(Some),
        };
        let mut cache = if caches { new_cache()? } else { None };
        let (mut first, tiles) = (0, parts(o.a.rows, step).count());
        for (number, rows) in parts(o.a.rows, step).enumerate() {
            let at = address + (rows.start * bytes) as u64;
            let part = self.part(device, o, rows.clone(), Some((at, first)))?;
            first += part.entries();
            // SAFETY: as above; the part was made for these operands.
            unsafe { part.fill_own(device, &self.kernels, full, o.alpha, c, known)? };
            if let Some(all) = &mut cache {
                match all.save(device, &self.kernels, rows, part) {
                    Err(Error::OutOfMemory { .. }) => cache = None,
                    other => other?,
                }
            }
            if let Some(watch) = &mut watch {
                report(device, &mut **watch, Progress { done: number + 1, tiles })?;
            }
        }
        if let Some(all) = &mut cache {
            match all.complete(device, address, slots) {
                Err(Error::OutOfMemory { .. }) => cache = None,
                other => other?,
            }
        }
        if let Rows::Parts(parts) = &mut self.rows {
            parts.uncacheable |= caches && cache.is_none();
            parts.cache = cache.map(Box::new);
        }
        Ok(())
    }

    /// Queues the computation of all of C.
    ///
    /// # Safety
    /// As [`Method::execute`].
    unsafe fn make<T: Scalar, I: Index, O: Index>(
        &mut self,
        device: &Device,
        o: &Operands,
        watch: Option<Watch<'_>>,
        caches: bool,
    ) -> Result<DeviceCsr<T, I, O>> {
        let len = o.a.rows + 1;
        let mut offsets = DeviceBuffer::<O>::queued(device, len, "row offsets of C on the device")?;
        if let Rows::Whole(part) = &self.rows {
            // SAFETY: the part has the offsets of all rows.
            let own = unsafe { DeviceBuffer::<O>::borrowed(device, part.offsets(), len) };
            offsets.copy_from(&own, device.stream())?;
        }
        // SAFETY: the caller's promise, and the offsets are C's.
        unsafe { self.compute(device, o, offsets, watch, caches) }
    }
}

/// Options of filling C.
#[derive(Clone, Copy)]
struct Fill {
    /// Whether C's offsets and the columns of full rows are written already.
    pattern_known: bool,
    /// Whether the symbolic phase of parts is cached.
    caches: bool,
}

/// The operands of these rows of C.
fn of_rows(o: &Operands, rows: &Range<usize>) -> Operands {
    let offsets = o.a.offsets + (rows.start * o.offset_type.bytes()) as u64;
    // An estimate for rows of mean length; kernels read the actual row ends.
    let nnz = (o.a.nnz as u128 * rows.len() as u128 / o.a.rows.max(1) as u128) as usize;
    Operands { a: Sparse { rows: rows.len(), nnz, offsets, ..o.a }, ..*o }
}

/// Ranges of `step` rows; one empty range if there are no rows.
fn parts(rows: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    let step = step.max(1);
    (0..rows.max(1)).step_by(step).map(move |first| first..(first + step).min(rows))
}

impl<T: Scalar, I: Index, O: Index> Method<T, I, O> for Prepared {
    fn bytes(&self) -> usize {
        let packed = self.full.as_ref().map_or(0, FullRows::bytes);
        packed
            + self.in_order.as_ref().map_or(0, MaskedSums::bytes)
            + match &self.rows {
                Rows::Whole(part) => part.bytes(),
                Rows::Parts(parts) => parts.bytes,
            }
    }

    fn products(&self) -> Option<u64> {
        Some(self.products)
    }

    fn entries(&self) -> Option<u64> {
        Some(self.nnz)
    }

    unsafe fn execute(&mut self, device: &Device, o: &Operands) -> Result<DeviceCsr<T, I, O>> {
        // SAFETY: the caller's promise.
        unsafe { self.make(device, o, None, self.is_for_several()) }
    }

    unsafe fn execute_watched(
        &mut self,
        device: &Device,
        o: &Operands,
        watch: Watch<'_>,
    ) -> Result<DeviceCsr<T, I, O>> {
        // SAFETY: the caller's promise.
        unsafe { self.make(device, o, Some(watch), self.is_for_several()) }
    }

    unsafe fn finish(
        mut self: Box<Self>,
        device: &Device,
        o: &Operands,
    ) -> Result<DeviceCsr<T, I, O>> {
        let given = match &mut self.rows {
            Rows::Whole(part) => part.give_offsets().and_then(|mut own| own.give_away()),
            Rows::Parts(_) => None,
        };
        // SAFETY: the caller's promise; the released memory has the offsets, and nobody else owns
        // it.
        unsafe {
            match given {
                Some(own) => {
                    let offsets = DeviceBuffer::<O>::owned(device, own.address, o.a.rows + 1);
                    self.compute(device, o, offsets, None, false)
                }
                None => self.make(device, o, None, false),
            }
        }
    }

    unsafe fn refill(
        &mut self,
        device: &Device,
        o: &Operands,
        c: &mut DeviceCsr<T, I, O>,
    ) -> Result<()> {
        let Some(in_order) = &mut self.in_order else {
            // SAFETY: the caller's promise.
            return unsafe {
                self.fill(device, o, c, Fill { pattern_known: true, caches: true }, None)
            };
        };
        let step = match &self.rows {
            Rows::Whole(_) => o.a.rows,
            Rows::Parts(parts) => parts.step,
        };
        for rows in parts(o.a.rows, step) {
            if let Rows::Parts(_) = &self.rows {
                in_order.forget();
            }
            // SAFETY: the caller's promise; the rows of B and of C increase.
            unsafe {
                in_order.fill(device.stream(), &of_rows(o, &rows), c, rows.start, true)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_few_as_fit_and_equal() {
        let step = |rows, most| step_of(rows, |rows| rows <= most);
        assert_eq!([step(100, 100), step(100, 99), step(100, 30), step(100, 0)], [100, 50, 25, 1]);
        assert_eq!([step(1, 0), step(101, 33)], [1, 26]);
        assert_eq!(step_of(0, |_| false), 0);
    }

    #[test]
    fn ctas_that_the_kernels_do_not_support_are_refused() {
        let own = Config::default();
        assert!(own.check().is_ok());
        for config in [
            Config { wide: 64, ..own },
            Config { wide: 384, ..own },
            Config { huge: 2048, ..own },
            Config { dense: 48, ..own },
            Config { dense: 0, ..own },
        ] {
            let words = config.check().unwrap_err().to_string();
            assert!(words.contains("power of two"), "{words}");
        }
    }
}
