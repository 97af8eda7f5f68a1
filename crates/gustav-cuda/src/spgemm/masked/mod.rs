//! `masked`: the entries of C = α·op(A)·B at the positions of a mask. See
//! `kernels/spgemm/masked.cu`.

mod kernels;
mod whole;

use std::sync::Arc;

use gustav_core::{Error, Index, Operation, Problem, Result, Scalar, Semiring};
use gustav_plan::heuristics::masked::{Expected, Work, reason_for_positions, reason_for_whole};
use gustav_plan::{Algorithm, Choice, Chooser};

pub(super) use self::kernels::MaskedSums;
#[cfg(test)]
pub(crate) use self::kernels::request;

use self::kernels::{Arguments, of};
use self::whole::Whole;
use super::canonical::in_order;
use super::catalog;
use super::patterns::{Patterns, typed};
use super::plan::{Factors, Options};
use crate::device::order::Uses;
use crate::device::{Device, DeviceBuffer};
use crate::matrix::scan::Scan;
use crate::matrix::{DeviceCsr, DevicePattern, DeviceValues, WeakPattern};
use crate::product::call::Common;
use crate::product::sparse_operands::Operands;
use crate::product::{Call, unsupported};

/// The method by which C is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Computes only the sums at the positions of the mask.
    Positions,
    /// Computes all of C, and selects the entries at positions of the mask.
    Whole(catalog::Config),
}

/// Supports products of two sparse matrices whose rows and columns are counted in 32 bits.
///
/// # Errors
/// [`Error::Unsupported`] for others.
pub fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason, nearest| Err(unsupported(problem, "masked on CUDA", reason, nearest));
    if problem.operation != Operation::Spgemm {
        return refuse("it multiplies two sparse matrices", "Problem::spgemm");
    }
    problem.without_output("masked on CUDA")?;
    if problem.output_rows().max(problem.columns).max(problem.inner()) >= u32::MAX as usize {
        return refuse("it counts rows and columns in 32 bits", "masked on the device cpu");
    }
    Ok(())
}

/// A plan for C⟨M⟩ = α·op(A)·B, for one pattern of A, of B and of the mask and any values: the
/// product's entries at mask entries. A mask entry without an intermediate product has no entry in
/// C. Rows of C are sorted.
///
/// Either the mask entries alone are computed, or all of C, in which they are searched, if that is
/// expected to be faster. [`Algorithm::Masked`] in [`Options`] forces the former, the name of
/// another algorithm the latter. With a limit of the workspace, all of C must fit in it; if memory
/// does not suffice for all of C, the mask entries alone are computed.
///
/// With [`Problem::deterministic`] every sum is in A's order, the same in every run.
pub struct MaskedPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    patterns: Patterns<T>,
    /// The mask, rows increasing.
    mask: DevicePattern<I, O>,
    /// Bytes of the mask, if the plan has sorted its rows.
    mask_bytes: usize,
    kernels: MaskedSums,
    scan: Arc<Scan>,
    /// Whether rows of B increase.
    ordered: bool,
    /// Computes all of C, if that was chosen.
    whole: Option<Whole<T, I, O>>,
    choice: Choice<Config>,
    /// The pattern of the last C.
    result: WeakPattern<I, O>,
}

/// C⟨M⟩ = α·op(A)·B in one call, without keeping a plan.
///
/// # Errors
/// As [`MaskedPlan::new`] and [`MaskedPlan::execute`].
pub fn multiply<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    b: &DeviceCsr<T, I, O>,
    mask: &DevicePattern<I, O>,
    problem: &Problem,
    options: &Options,
    call: Call<'_, T>,
) -> Result<DeviceCsr<T, I, O>> {
    MaskedPlan::prepare(a.pattern(), b.pattern(), mask, problem, options, true)?.execute(a, b, call)
}

impl<T: Scalar, I: Index, O: Index> MaskedPlan<T, I, O> {
    /// A plan for the positions of `mask`, which has C's shape and may be unsorted. The plan sets
    /// the types of `problem`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the inner dimensions of A and B differ or the mask does not have C's
    /// shape, [`Error::Pattern`] when `problem` was made for other patterns, [`Error::Unsupported`]
    /// as [`supports`], as the algorithm that `options` name, for a configuration in `options`, and
    /// for a deterministic product if B's rows do not increase, [`Error::Argument`] when the
    /// patterns are on two devices, [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time
    /// compiler is missing, [`Error::Device`].
    pub fn new(
        a: &DevicePattern<I, O>,
        b: &DevicePattern<I, O>,
        mask: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        Self::prepare(a, b, mask, problem, options, false)
    }

    /// The same; with `once` for a single call, without caches for later ones.
    fn prepare(
        a: &DevicePattern<I, O>,
        b: &DevicePattern<I, O>,
        mask: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
        once: bool,
    ) -> Result<Self> {
        let problem = &typed::<T, I, O, T>(problem)?;
        let patterns = Patterns::<T>::new(a, b, problem)?;
        supports(problem)?;
        patterns.check_like_c("a mask", mask)?;
        let device = patterns.device.clone();
        let mut kernels = MaskedSums::new(&device, problem)?;
        kernels.prepare(&device, mask.nrows(), mask.nnz())?;
        let o = patterns.operands();
        let list = |kernels: &mut MaskedSums, mask: &DevicePattern<I, O>, ordered: bool| {
            let arguments = of(&o, mask.offsets(), mask.indices(), ordered);
            // SAFETY: the patterns are alive, and wait for the stream when they are freed.
            unsafe { kernels.list(device.stream(), &arguments, true) }
        };
        // Rows are assumed to increase until the check is done, so that the host waits only once.
        mask.join(&device)?;
        list(&mut kernels, mask, true)?;
        let (mut work, [ordered, sorted]) = kernels.counted()?;
        if problem.deterministic && !ordered {
            return Err(unordered(problem, "masked on CUDA"));
        }
        let (own, mask_bytes) = match sorted {
            true => (mask.clone(), 0),
            false => {
                let sorted = increasing::<T, I, O>(mask, problem.semiring)?;
                let bytes = sorted.bytes();
                (sorted, bytes)
            }
        };
        if !(ordered && sorted) {
            kernels.prepare(&device, own.nrows(), own.nnz())?;
            list(&mut kernels, &own, ordered)?;
            work = kernels.counted()?.0;
        }
        let (whole, choice) = choose(a, b, own.nnz(), problem, options, &work, once)?;
        if !once {
            // The arrays may be borrowed.
            device.stream().synchronize()?;
        }
        let scan = device.cached(&format!("{:?}", O::TYPE), || Scan::new(&device, O::TYPE))?;
        let (mask, result) = (own, WeakPattern::default());
        Ok(MaskedPlan { patterns, mask, mask_bytes, kernels, scan, ordered, whole, choice, result })
    }

    /// The chosen method, and the reason.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the patterns. An execution temporarily
    /// allocates a value and a byte for every mask entry, and all of C if that is computed.
    pub fn workspace_bytes(&self) -> usize {
        let whole = self.whole.as_ref().map_or(0, Whole::bytes);
        self.mask_bytes + self.kernels.bytes() + self.patterns.bytes() + whole
    }

    /// Computes C as a new matrix, after the work queued on the stream of the call, whose later
    /// work waits for it. `a` and `b` are values: matrices of the plan's patterns, or buffers in
    /// the order of their nonzeros. While an earlier result or its pattern exists, C shares that
    /// pattern.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` or `b` belongs to another pattern, [`Error::Length`] for another
    /// number of values, [`Error::Argument`] for a bias or a β in `call`, [`Error::OutOfMemory`]
    /// with the device left usable, [`Error::Device`].
    pub fn execute<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        call: Call<'_, T>,
    ) -> Result<DeviceCsr<T, I, O>> {
        let (values, call) = ((a.into(), b.into()), call.product(self.patterns.problem.semiring)?);
        if let Some(pattern) = self.result.upgrade() {
            let what = "values of C on the device";
            let values_of_c = DeviceBuffer::queued(&self.patterns.device, pattern.nnz(), what)?;
            let mut c = DeviceCsr::from_pattern(&pattern, values_of_c)?;
            match self.fill(values, &mut c, &call) {
                // There may be enough memory for the mask entries alone.
                Err(Error::OutOfMemory { .. }) => {}
                done => return done.map(|()| c),
            }
        }
        let c = match self.whole.take() {
            None => self.sum(values, &call),
            Some(mut whole) => match self.find(&mut whole, values, &call) {
                Err(Error::OutOfMemory { what, .. }) if !whole.is_named() => {
                    drop(whole);
                    let reason = format!("no memory for {what} beside all of C");
                    self.choice = by_positions(reason);
                    self.sum(values, &call)
                }
                done => {
                    self.whole = Some(whole);
                    done
                }
            },
        }?;
        self.result = c.pattern().downgrade();
        Ok(c)
    }

    /// C from the sums at its positions.
    fn sum(
        &mut self,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
    ) -> Result<DeviceCsr<T, I, O>> {
        let o = self.patterns.begin(values.0, values.1, call)?;
        self.mask.join(&self.patterns.device)?;
        let found = Found::new(&self.patterns.device, &self.mask)?;
        let arguments = found.set_in(self.arguments(&o));
        // SAFETY: the arguments describe arrays that are alive, and wait for the stream when freed.
        let summed = unsafe { self.kernels.sum(self.patterns.device.stream(), &arguments) };
        let c = summed.and_then(|()| self.collect(found, arguments));
        // Also after an error: kernels may still run.
        self.patterns.end(call)?;
        c
    }

    /// C from all of C.
    fn find(
        &mut self,
        whole: &mut Whole<T, I, O>,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
    ) -> Result<DeviceCsr<T, I, O>> {
        let all = whole.multiply(&self.patterns.problem, values, call)?;
        let device = &self.patterns.device;
        self.mask.join(device)?;
        let found = Found::new(device, &self.mask)?;
        let arguments = found.set_in(whole::among(&all, self.mask.offsets(), self.mask.indices()));
        // SAFETY: as in `sum`; rows of C increase.
        unsafe { self.kernels.find(device.stream(), &arguments)? };
        let c = self.collect(found, arguments)?;
        if self.patterns.problem.calls > 1 {
            whole.cache(all);
        }
        self.patterns.end(call)?;
        Ok(c)
    }

    /// The operands and the mask's positions.
    fn arguments(&self, o: &Operands) -> Arguments {
        of(o, self.mask.offsets(), self.mask.indices(), self.ordered)
    }

    /// C from the values at the positions.
    fn collect(
        &mut self,
        found: Found<T, O>,
        mut arguments: Arguments,
    ) -> Result<DeviceCsr<T, I, O>> {
        let Patterns { device, problem, .. } = &self.patterns;
        let Found { values: sums, has_product, offsets } = found;
        let nnz = self.scan.sum(device, &offsets)?;
        let what = "column indices of C on the device";
        let mut indices = DeviceBuffer::<I>::queued(device, nnz, what)?;
        let values = if nnz == self.mask.nnz() {
            indices.copy_from(self.mask.indices(), device.stream())?;
            sums
        } else {
            let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
            let c = &mut arguments.c;
            (c.indices, c.values) = (indices.address(), values.address());
            // SAFETY: the arrays of the arguments are valid; C has as many entries as there are
            // positions with a product.
            unsafe { self.kernels.keep(device.stream(), &arguments)? };
            values
        };
        drop(has_product);
        let (rows, columns) = (problem.output_rows(), problem.columns);
        // SAFETY: the offsets increase to the number of entries, which are at positions of the
        // mask.
        Ok(unsafe { DeviceCsr::from_parts_unchecked(rows, columns, offsets, indices, values) })
    }

    /// Computes the values of `c`, which has the pattern of the last result of
    /// [`MaskedPlan::execute`], without a symbolic phase. Allocates nothing, unless all of C is
    /// computed and [`Problem::calls`] did not request caching. Otherwise as there.
    ///
    /// # Errors
    /// As there; [`Error::Pattern`] when `c` has another pattern, or there was no earlier result.
    pub fn execute_into<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        c: &mut DeviceCsr<T, I, O>,
        call: Call<'_, T>,
    ) -> Result<()> {
        let call = call.product(self.patterns.problem.semiring)?;
        self.fill((a.into(), b.into()), c, &call)
    }

    fn fill(
        &mut self,
        values: Factors<'_, T>,
        c: &mut DeviceCsr<T, I, O>,
        call: &Common<'_, T::Accum>,
    ) -> Result<()> {
        self.result.check(c.pattern().id())?;
        let device = self.patterns.device.clone();
        let join = |c: &DeviceCsr<T, I, O>| -> Result<()> {
            c.pattern().join(&device)?;
            Uses::on(device.stream()).ordered(call.ordered).write(c.values().buffer())
        };
        // C's own positions are those of the mask with a product.
        let done = match &mut self.whole {
            Some(whole) => {
                let all = whole.refill(&self.patterns.problem, values, call)?;
                join(c)?;
                let mut arguments = whole::among(&all, c.offsets(), c.indices());
                arguments.values = c.values().address();
                // SAFETY: the matrices are alive and wait for the stream when freed.
                let found = unsafe { self.kernels.find(device.stream(), &arguments) };
                if self.patterns.problem.calls > 1 {
                    whole.cache(all);
                }
                found
            }
            None => {
                let o = self.patterns.begin(values.0, values.1, call)?;
                join(c)?;
                // SAFETY: as above.
                unsafe { self.kernels.fill(device.stream(), &o, c, 0, self.ordered) }
            }
        };
        // Also after an error: kernels that write C may still run.
        self.patterns.end(call)?;
        done
    }
}

/// `mask` with increasing columns, each position once.
fn increasing<T: Scalar, I: Index, O: Index>(
    mask: &DevicePattern<I, O>,
    semiring: Semiring,
) -> Result<DevicePattern<I, O>> {
    // Values do not matter: entries of value zero are kept.
    let values = DeviceBuffer::<T>::zeros(mask.device(), mask.nnz(), "values of a mask")?;
    let sorted = in_order(&DeviceCsr::from_pattern(mask, values)?, semiring)?;
    Ok(sorted.into_parts().0)
}

/// The values at the positions of a mask.
struct Found<T, O> {
    values: DeviceBuffer<T>,
    /// Whether a position has an intermediate product.
    has_product: DeviceBuffer<u8>,
    /// Number of such positions of every row, then C's offsets.
    offsets: DeviceBuffer<O>,
}

impl<T: Scalar, O: Index> Found<T, O> {
    /// Memory for the values at the positions of `mask`.
    fn new<I: Index>(device: &Device, mask: &DevicePattern<I, O>) -> Result<Self> {
        let (rows, count) = (mask.nrows(), mask.nnz());
        let what = "row offsets of C on the device";
        let mut offsets = DeviceBuffer::<O>::queued(device, rows + 1, what)?;
        offsets.fill(0, device.stream())?;
        Ok(Found {
            values: DeviceBuffer::queued(device, count, "values at the positions of a mask")?,
            has_product: DeviceBuffer::queued(device, count.max(1), "marks of mask entries")?,
            offsets,
        })
    }

    /// `arguments` with these arrays.
    fn set_in(&self, mut arguments: Arguments) -> Arguments {
        (arguments.values, arguments.present) = (self.values.address(), self.has_product.address());
        arguments.c.offsets = self.offsets.address();
        arguments
    }
}

/// Chooses the method for a mask with `positions` entries.
fn choose<T: Scalar, I: Index, O: Index>(
    a: &DevicePattern<I, O>,
    b: &DevicePattern<I, O>,
    positions: usize,
    problem: &Problem,
    options: &Options,
    work: &Work,
    once: bool,
) -> Result<(Option<Whole<T, I, O>>, Choice<Config>)> {
    let alone = || (None, by_positions(reason_for_positions(positions)));
    let named = match (options.config, options.chooser) {
        (None, Chooser::Named(Algorithm::Masked)) => return Ok(alone()),
        (None, Chooser::Auto) => false,
        _ => true,
    };
    if !named && !Expected::new(problem, positions, work).prefers_whole() {
        return Ok(alone());
    }
    let (whole, config) = match Whole::new(a, b, problem, options, named, once) {
        Err(Error::OutOfMemory { .. }) if !named => return Ok(alone()),
        other => other?,
    };
    let reason = match named {
        true => {
            format!("named by the caller: {positions} positions of the mask are found in all of C")
        }
        false => reason_for_whole(positions, work),
    };
    let choice = Choice { algorithm: config.algorithm(), config: Config::Whole(config), reason };
    Ok((Some(whole), choice))
}

fn by_positions(reason: String) -> Choice<Config> {
    Choice { algorithm: Algorithm::Masked, config: Config::Positions, reason }
}

/// The error for a deterministic product if rows of B do not increase.
pub(super) fn unordered(problem: &Problem, backend: &str) -> Error {
    let reason = "columns of B repeat or are unsorted, and such sums are added atomically";
    unsupported(problem, backend, reason, "Csr::canonicalize of B first")
}
