//! A plan: one algorithm prepared for one pattern of A and of B.

use std::ops::ControlFlow;

use gustav_core::{Error, Index, Operation, Problem, Result, Scalar};
use gustav_plan::heuristics::cuda_spgemm;
use gustav_plan::{Algorithm, Choice, Chooser, DeviceProfile};

use super::add::Union;
use super::at_once;
use super::binned;
use super::catalog::{self, Config, Method};
use super::patterns::{Patterns, check};
use super::tiled::Progress;
use crate::DeviceCsr;
use crate::spmm::unsupported;
use crate::stream::Stream;

// By the rules, which then say why.
const CHOSEN: &str = "auto";

/// What the caller of a plan decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration, in place of the algorithm's own choice.
    pub config: Option<Config>,
    /// Most bytes of workspace on the device beside the operands and C, a transposed A and room for a
    /// promised order of summation included; `binned` then takes as many rows at a time as these
    /// suffice for, one at least. What is counted of the parts is kept in page-locked memory of the
    /// host, up to ten bytes a row and C's offsets, by the first execution of a plan for several calls
    /// ([`Problem::calls`]), else by the second; later ones copy it part by part and count nothing.
    pub workspace: Option<usize>,
}

/// A plan for C = α·op(A)·B, for one pattern of A and of B and any values.
///
/// op(A) is m × k and B k × n. C holds every entry that the patterns produce exactly once; sums of
/// exactly zero stay as explicit zeros. Its rows are sorted when [`Problem::sorted`] asks for it. Its
/// values are of type `U`, that of A and B or of their sums.
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32, U: Scalar = T> {
    pub(super) patterns: Patterns<T, I, O>,
    choice: Choice<Config>,
    method: Box<dyn Method<U, I, O>>,
    /// Entries of the last C.
    nnz: Option<usize>,
    pub(super) union: Option<Union<U, I, O>>,
}

/// C = α·op(A)·B in one call, without keeping a plan.
///
/// # Errors
/// As [`SpgemmPlan::new`] and [`SpgemmPlan::execute`].
pub fn multiply<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    alpha: T::Accum,
    b: &DeviceCsr<T, I, O>,
    problem: &Problem,
    options: &Options,
    stream: &Stream,
) -> Result<DeviceCsr<T, I, O>> {
    let device = a.device();
    check(device, problem, a, b)?;
    let (config, _) = choose(problem, options, &device.planner_profile())?;
    let tries = matches!(config, Config::DenseOutput(_)) && problem.output == T::DTYPE;
    if tries && !problem.transpose_a {
        let patterns = Patterns::new(a, b, problem)?;
        let operands = patterns.begin(a, alpha, b, stream)?;
        // SAFETY: the operands are checked, and their buffers wait for the stream when they are freed.
        if let Some(c) = unsafe { at_once::multiply(device, &operands, problem, config)? } {
            patterns.end(stream)?;
            return Ok(c);
        }
    }
    SpgemmPlan::new(a, b, problem, options)?.finish(a, alpha, b, stream)
}

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    /// As [`SpgemmPlan::with_output`], with C's values in the type of A's.
    ///
    /// # Errors
    /// As there.
    pub fn new(
        a: &DeviceCsr<T, I, O>,
        b: &DeviceCsr<T, I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        Self::with_output(a, b, problem, options)
    }
}

impl<T: Scalar, I: Index, O: Index, U: Scalar<Accum = T::Accum>> SpgemmPlan<T, I, O, U> {
    /// Looks at the patterns of `a` and `b` on the device and chooses how to multiply them. Work
    /// that was queued on them on other streams is waited for. `U` is [`Problem::output`].
    ///
    /// # Errors
    /// [`Error::Shape`] when `a` and `b` do not fit together, [`Error::Pattern`] when `problem` was
    /// made for others or for a C of another type, [`Error::Unsupported`] when the algorithm named in `options` cannot compute
    /// `problem`, [`Error::Argument`] when the operands are on two devices,
    /// [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time compiler is missing,
    /// [`Error::Device`].
    pub fn with_output(
        a: &DeviceCsr<T, I, O>,
        b: &DeviceCsr<T, I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let patterns = Patterns::new(a, b, problem)?;
        if problem.output != U::DTYPE {
            let name = |dtype| format!("a product with values of {dtype}");
            let (expected, found) = (name(problem.output), name(U::DTYPE));
            return Err(Error::Pattern { expected, found });
        }
        let device = &patterns.device;
        let (config, why) = choose(problem, options, &device.planner_profile())?;
        let within = beside(config, patterns.bytes());
        let method = within.prepare(device, &patterns.operands(a, b), problem)?;
        // What is still read of somebody else's arrays is not waited for when they are freed.
        if !(a.is_owned() && b.is_owned()) {
            device.stream().synchronize()?;
        }
        let reason = match why {
            CHOSEN => cuda_spgemm::reason(problem, config.algorithm(), method.products()),
            why => why.into(),
        };
        let choice = Choice { algorithm: config.algorithm(), config, reason };
        Ok(SpgemmPlan { patterns, choice, method, nnz: None, union: None })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays; after
    /// [`SpgemmPlan::execute_add`] those of a product that it keeps as well.
    pub fn workspace_bytes(&self) -> usize {
        let kept = self.union.as_ref().map_or(0, Union::bytes);
        self.method.bytes() + self.patterns.bytes() + kept
    }

    /// Intermediate products: multiplications that the patterns call for, where the algorithm
    /// counts them.
    pub fn products(&self) -> Option<u64> {
        self.method.products()
    }

    /// Entries of C, where the algorithm has counted them.
    pub(super) fn entries(&self) -> Option<u64> {
        self.method.entries()
    }

    /// Computes C = α·op(A)·B as a new matrix, after the work queued on `stream`, which then waits
    /// for it. `a` and `b` have the patterns that the plan was made for, and any values.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` or `b` has another shape or number of entries,
    /// [`Error::Overflow`] when the entries of C outnumber the offset type, [`Error::OutOfMemory`]
    /// with the device left usable, [`Error::Device`].
    pub fn execute(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<DeviceCsr<U, I, O>> {
        let operands = self.patterns.begin(a, alpha, b, stream)?;
        // SAFETY: shapes and numbers of entries are the plan's, the patterns by the caller's word
        // and the invariants of `DeviceCsr`; the buffers wait for the stream when they are freed.
        let c = unsafe { self.method.execute(&self.patterns.device, &operands) };
        // After an error too: parts of C may be under way.
        self.patterns.end(stream)?;
        self.nnz = c.as_ref().ok().map(DeviceCsr::nnz).or(self.nnz);
        c
    }

    /// The same, `watch` being told after every part of C: where the workspace is bounded or memory
    /// did not suffice, so many rows, else all of it. [`ControlFlow::Break`] stops the rest. Waits for
    /// the parts that it tells of.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`], and [`Error::Cancelled`] when `watch` said so: the plan and the
    /// device stay usable, and the memory of C is free again.
    pub fn execute_watched(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<DeviceCsr<U, I, O>> {
        let operands = self.patterns.begin(a, alpha, b, stream)?;
        // SAFETY: as in `execute`.
        let c = unsafe { self.method.execute_watched(&self.patterns.device, &operands, watch) };
        self.patterns.end(stream)?;
        self.nnz = c.as_ref().ok().map(DeviceCsr::nnz).or(self.nnz);
        c
    }

    /// As [`SpgemmPlan::execute`], for the last time: C takes over what of the plan's memory it can,
    /// so that less is held at once.
    ///
    /// # Errors
    /// As there.
    pub fn finish(
        self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<DeviceCsr<U, I, O>> {
        let operands = self.patterns.begin(a, alpha, b, stream)?;
        // SAFETY: as in `execute`.
        let c = unsafe { self.method.finish(&self.patterns.device, &operands) };
        self.patterns.end(stream)?;
        c
    }

    /// Computes the values of C = α·op(A)·B into `c`, a matrix that an earlier
    /// [`SpgemmPlan::execute`] of this plan returned: nothing symbolic is done and no memory is
    /// taken, but by the second execution of a plan for a single call under a bound on its workspace
    /// (see [`Options::workspace`]). Otherwise as there.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a`, `b` or `c` has another shape or number of entries or nothing
    /// was computed before, [`Error::Unsupported`] for algorithms that find C anew,
    /// [`Error::Device`].
    pub fn execute_into(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        c: &mut DeviceCsr<U, I, O>,
        stream: &Stream,
    ) -> Result<()> {
        self.patterns.check_result(c, self.nnz)?;
        let operands = self.patterns.begin(a, alpha, b, stream)?;
        c.join(&self.patterns.device)?;
        // SAFETY: as in `execute`; `c` has the shape and number of entries of the product, its
        // pattern by the caller's word.
        let done = unsafe { self.method.refill(&self.patterns.device, &operands, c) };
        self.patterns.end(stream)?;
        done
    }
}

/// The configuration with the bound on its workspace less what the plan holds beside it.
fn beside(config: Config, held: usize) -> Config {
    match config {
        Config::Binned(own) => {
            let workspace = own.workspace.map(|most| most.saturating_sub(held));
            Config::Binned(binned::Config { workspace, ..own })
        }
        other => other,
    }
}

/// The configuration, checked against the problem, and who chose it.
pub(super) fn choose(
    problem: &Problem,
    options: &Options,
    profile: &DeviceProfile,
) -> Result<(Config, &'static str)> {
    if problem.operation != Operation::Spgemm {
        let reason = "it multiplies two sparse matrices";
        return Err(unsupported(problem, "SpGEMM on CUDA", reason, "Problem::spgemm"));
    }
    let configured = options.config.map(|c| c.algorithm());
    let named = crate::catalog::named(problem, options.chooser, configured)?;
    let (algorithm, why) = match named {
        Some(algorithm) if configured.is_some() => (algorithm, "configured by the caller"),
        Some(algorithm) => (algorithm, "named by the caller"),
        // A bound on the workspace is kept by one algorithm.
        None if options.workspace.is_some() => (Algorithm::Binned, CHOSEN),
        None => (cuda_spgemm::choose(problem, profile), CHOSEN),
    };
    catalog::check(problem, algorithm)?;
    let own = Config::candidates(algorithm, problem).into_iter().next();
    let config = options.config.or(own).ok_or_else(|| {
        let backend = format!("{algorithm} on CUDA");
        unsupported(problem, &backend, "it has no configuration for this product", "auto")
    })?;
    let config = match (config, options.workspace) {
        (config, None) => config,
        (Config::Binned(binned), workspace) => {
            Config::Binned(binned::Config { workspace, ..binned })
        }
        (config, Some(_)) => {
            let backend = format!("{} with a bound on its workspace", config.algorithm());
            return Err(unsupported(problem, &backend, "it takes what it needs", "binned"));
        }
    };
    Ok((config, why))
}
