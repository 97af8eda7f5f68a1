//! A plan: one algorithm prepared for one pattern of A and of B.

use gustav_core::{Error, Index, Operation, Problem, Result, Scalar};
use gustav_plan::heuristics::cuda_spgemm;
use gustav_plan::{Algorithm, Choice, Chooser, DeviceProfile};

use super::add::Union;
use super::catalog::Config;
use super::patterns::{Patterns, typed};
use super::{binned, one_shot};
use crate::device::DeviceBuffer;
use crate::device::order::Uses;
use crate::matrix::{DeviceCsr, DevicePattern, DeviceValues, WeakPattern};
use crate::product::call::Common;
use crate::product::sparse_method::{Method, Watch};
use crate::product::sparse_operands::Operands;
use crate::product::{Call, SpgemmCall, catalog, unsupported};

// Reason if the rules choose; replaced by theirs.
const CHOSEN: &str = "auto";

/// The caller's options for a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration; `None` to let the rules choose.
    pub config: Option<Config>,
    /// Most bytes of workspace on the device besides the operands and C, including a transposed A
    /// and memory for deterministic sums. `binned` then computes parts of as many rows as fit, at
    /// least one. The first execution of a plan for several calls ([`Problem::calls`]), otherwise
    /// the second, caches the symbolic phase of the parts in page-locked host memory: up to ten
    /// bytes per row and C's offsets. Later executions copy it part by part instead of computing
    /// it.
    pub workspace: Option<usize>,
}

/// A plan for C = α·op(A)·B ⊕ β·D, for one pattern of A and of B, which it holds, and any values.
///
/// op(A) is m × k and B k × n. C holds every entry that the patterns produce exactly once; sums of
/// exactly zero stay as explicit zeros. Its rows are sorted if [`Problem::sorted`] is set. Its
/// values have type `U`: that of A and B, or of their sums.
///
/// A plan may be sent to another thread. Several plans, also of one pattern, may be executed
/// concurrently; their work is queued on the device's own stream.
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32, U: Scalar = T> {
    pub(super) patterns: Patterns<T>,
    choice: Choice<Config>,
    method: Box<dyn Method<U, I, O>>,
    refills: bool,
    /// The pattern of the last product, while it exists.
    result: WeakPattern<I, O>,
    pub(super) union: Option<Union<U, I, O>>,
}

/// The values of A and of B.
pub(super) type Factors<'v, T> = (DeviceValues<'v, T>, DeviceValues<'v, T>);

/// C = α·op(A)·B in one call, without keeping a plan.
///
/// # Errors
/// As [`SpgemmPlan::new`] and [`SpgemmPlan::execute`]; [`Error::Argument`] for a bias or a β in
/// `call`.
pub fn multiply<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    b: &DeviceCsr<T, I, O>,
    problem: &Problem,
    options: &Options,
    call: Call<'_, T>,
) -> Result<DeviceCsr<T, I, O>> {
    let common = call.product(problem.semiring)?;
    multiply_values((a.pattern(), b.pattern()), (a.values(), b.values()), problem, options, common)
}

/// The same for patterns and values.
pub(super) fn multiply_values<T: Scalar, I: Index, O: Index>(
    (a, b): (&DevicePattern<I, O>, &DevicePattern<I, O>),
    values: Factors<'_, T>,
    problem: &Problem,
    options: &Options,
    call: Common<'_, T::Accum>,
) -> Result<DeviceCsr<T, I, O>> {
    let (device, problem) = (a.device(), &typed::<T, I, O, T>(problem)?);
    let (config, _) = choose(problem, options, &device.planner_profile())?;
    if matches!(config, Config::DenseOutput(_)) && !problem.transpose_a {
        let patterns = Patterns::new(a, b, problem)?;
        let operands = patterns.begin(values.0, values.1, &call)?;
        // SAFETY: the operands are checked, and their buffers wait for the stream when they are
        // freed.
        if let Some(c) = unsafe { one_shot::multiply(device, &operands, problem, config)? } {
            patterns.end(&call)?;
            return Ok(c);
        }
    }
    SpgemmPlan::<T, I, O>::new(a, b, problem, options)?.finish_product(values, &call)
}

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    /// As [`SpgemmPlan::with_output`], with C's values in the type of A's.
    ///
    /// # Errors
    /// As there.
    pub fn new(
        a: &DevicePattern<I, O>,
        b: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        Self::with_output(a, b, problem, options)
    }
}

impl<T: Scalar, I: Index, O: Index, U: Scalar<Accum = T::Accum>> SpgemmPlan<T, I, O, U> {
    /// Analyses the patterns `a` and `b` on the device and chooses the algorithm. The plan sets the
    /// types of `problem`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the inner dimensions of `a` and `b` differ, [`Error::Pattern`] when
    /// `problem` was made for other patterns or for a C of another type, [`Error::Unsupported`]
    /// when the algorithm named in `options` cannot compute `problem`, [`Error::Argument`] when the
    /// patterns are on two devices, [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time
    /// compiler is missing, [`Error::Device`].
    pub fn with_output(
        a: &DevicePattern<I, O>,
        b: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = &typed::<T, I, O, U>(problem)?;
        let patterns = Patterns::new(a, b, problem)?;
        let device = &patterns.device;
        let (config, why) = choose(problem, options, &device.planner_profile())?;
        let within = beside(config, patterns.bytes());
        let method = within.prepare::<U, I, O>(device, &patterns.operands(), problem)?;
        // Borrowed arrays may be freed without waiting for the work that reads them.
        if !(a.is_owned() && b.is_owned()) {
            device.stream().synchronize()?;
        }
        let reason = match why {
            CHOSEN => cuda_spgemm::reason(problem, config.algorithm(), method.products()),
            why => why.into(),
        };
        let choice = Choice { algorithm: config.algorithm(), config, reason };
        let refills = method.refills();
        let (result, union) = (WeakPattern::default(), None);
        Ok(SpgemmPlan { patterns, choice, method, refills, result, union })
    }

    /// The chosen algorithm and configuration, and the reason.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the patterns; after an execution with D
    /// including the cached product.
    pub fn workspace_bytes(&self) -> usize {
        let union = self.union.as_ref().map_or(0, Union::bytes);
        self.method.bytes() + self.patterns.bytes() + union
    }

    /// Intermediate products, which follow from the patterns, if the algorithm counts them.
    pub fn products(&self) -> Option<u64> {
        self.method.products()
    }

    /// Entries of C, if the algorithm has counted them.
    pub(super) fn entries(&self) -> Option<u64> {
        self.method.entries()
    }

    /// Computes C = α·op(A)·B ⊕ β·D as a new matrix, after the work queued on the stream of the
    /// call, whose later work waits for it. `a` and `b` are values: matrices of the plan's
    /// patterns, or buffers in the order of their nonzeros.
    ///
    /// While an earlier result or its pattern exists, C shares that pattern, if [`Problem::sorted`]
    /// or [`Problem::deterministic`] fixes the order of its entries and the algorithm supports it.
    ///
    /// With D, C holds the union of both patterns. If [`Problem::calls`] announces more executions,
    /// the product is cached for the next one.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` or `b` belongs to another pattern, [`Error::Length`] for another
    /// number of values, [`Error::Overflow`] when the entries of C outnumber the offset type,
    /// [`Error::OutOfMemory`], after which the device stays usable, [`Error::Cancelled`] when
    /// [`SpgemmCall::watch`] stopped it: the plan and the device stay usable, and the memory of C
    /// is freed; [`Error::Shape`] when D has another shape, [`Error::Argument`] when an operand is
    /// on another device or there is a β without D, [`Error::Device`].
    pub fn execute<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        call: SpgemmCall<'_, T, I, O, U>,
    ) -> Result<DeviceCsr<U, I, O>> {
        let (values, SpgemmCall { common, add, watch }) = ((a.into(), b.into()), call);
        match add {
            Some(d) => self.execute_add(values, d, &common),
            None => {
                self.check_unread(&common)?;
                self.product(values, &common, watch)
            }
        }
    }

    /// As [`SpgemmPlan::execute`] without D, for the last time: C takes over memory of the plan
    /// where possible, which reduces the peak.
    ///
    /// # Errors
    /// As there; [`Error::Argument`] for a bias or a β in `call`.
    pub fn finish<'v>(
        self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        call: Call<'_, T>,
    ) -> Result<DeviceCsr<U, I, O>> {
        let common = call.product(self.patterns.problem.semiring)?;
        self.finish_product((a.into(), b.into()), &common)
    }

    /// Computes the values of C = α·op(A)·B ⊕ β·D in `c`, which has the pattern of the last result
    /// of [`SpgemmPlan::execute`], with the same D if there is one. There is no symbolic phase and
    /// no allocation, except in the second execution of a plan for a single call with a limit of
    /// its workspace (see [`Options::workspace`]), and if the plan did not cache the product to
    /// which D is added, or rows are not sorted.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`]; [`Error::Pattern`] when `c` or D has another pattern than in
    /// that execution, or `c` shares its pattern with another matrix and the order of its rows is
    /// not fixed; [`Error::Unsupported`] for algorithms that recompute the pattern of C.
    pub fn execute_into<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        c: &mut DeviceCsr<U, I, O>,
        call: SpgemmCall<'_, T, I, O, U>,
    ) -> Result<()> {
        let (values, SpgemmCall { common, add, .. }) = ((a.into(), b.into()), call);
        match add {
            Some(d) => self.execute_add_into(values, d, c, &common),
            None => {
                self.check_unread(&common)?;
                self.product_into(values, c, &common)
            }
        }
    }

    /// Checks that there is no β other than zero without D.
    fn check_unread(&self, call: &Common<'_, T::Accum>) -> Result<()> {
        let semiring = self.patterns.problem.semiring;
        if call.beta(semiring) == semiring.zero() {
            return Ok(());
        }
        Err(Error::Argument {
            name: "beta",
            found: "a factor without a D".into(),
            expected: "SpgemmCall::add".into(),
        })
    }

    /// Whether the order of C's entries is the same in every run.
    fn is_ordered(&self) -> bool {
        self.patterns.problem.sorted || self.patterns.problem.deterministic
    }

    /// C = α·op(A)·B.
    pub(super) fn product(
        &mut self,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
        watch: Option<Watch<'_>>,
    ) -> Result<DeviceCsr<U, I, O>> {
        let known = match watch.is_none() && self.refills && self.is_ordered() {
            true => self.result.upgrade(),
            false => None,
        };
        if let Some(pattern) = known {
            let what = "values of C on the device";
            let values_of_c = DeviceBuffer::queued(&self.patterns.device, pattern.nnz(), what)?;
            let mut c = DeviceCsr::from_pattern(&pattern, values_of_c)?;
            self.product_into(values, &mut c, call)?;
            return Ok(c);
        }
        let c = self.run(values, call, |method, device, operands| {
            // SAFETY: values are as many as nonzeros of the plan's own patterns; the buffers wait
            // for the stream when they are freed.
            unsafe {
                match watch {
                    Some(watch) => method.execute_watched(device, operands, watch),
                    None => method.execute(device, operands),
                }
            }
        })?;
        self.result = c.pattern().downgrade();
        Ok(c)
    }

    /// Computes the values of C = α·op(A)·B in `c`.
    pub(super) fn product_into(
        &mut self,
        values: Factors<'_, T>,
        c: &mut DeviceCsr<U, I, O>,
        call: &Common<'_, T::Accum>,
    ) -> Result<()> {
        self.result.check(c.pattern().id())?;
        let is_ordered = self.is_ordered();
        if !is_ordered {
            // The plan's own reference to the pattern does not count.
            self.result = WeakPattern::default();
            let is_own = c.forget_order();
            self.result = c.pattern().downgrade();
            if !is_own {
                return Err(Error::Pattern {
                    expected: "a C of its own, whose entries it may put in another order".into(),
                    found: "of a pattern that others hold".into(),
                });
            }
        }
        self.run(values, call, |method, device, operands| {
            let mut uses = Uses::on(device.stream()).ordered(call.ordered);
            uses.read(c.offsets())?;
            match is_ordered {
                true => uses.read(c.indices())?,
                false => uses.write(c.indices())?,
            }
            uses.write(c.values().buffer())?;
            // SAFETY: as in `product`; `c` has the pattern of the product.
            unsafe { method.refill(device, operands, c) }
        })
    }

    /// Computes C for the last time.
    pub(super) fn finish_product(
        self,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
    ) -> Result<DeviceCsr<U, I, O>> {
        let SpgemmPlan { patterns, method, .. } = self;
        let operands = patterns.begin(values.0, values.1, call)?;
        // SAFETY: as in `product`.
        let c = unsafe { method.finish(&patterns.device, &operands) };
        patterns.end(call)?;
        c
    }

    /// Runs `work` as one execution of the plan, ordered with the stream of the call.
    fn run<R>(
        &mut self,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
        work: impl FnOnce(&mut dyn Method<U, I, O>, &crate::device::Device, &Operands) -> Result<R>,
    ) -> Result<R> {
        let device = &self.patterns.device;
        let operands = self.patterns.begin(values.0, values.1, call)?;
        let done = work(&mut *self.method, device, &operands);
        // Also after an error: kernels that write C may still run.
        self.patterns.end(call)?;
        done
    }
}

/// The configuration with the limit of its workspace reduced by the plan's other memory.
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
    let named = crate::product::catalog::named(problem, options.chooser, configured)?;
    let (algorithm, why) = match named {
        Some(algorithm) if configured.is_some() => (algorithm, "configured by the caller"),
        Some(algorithm) => (algorithm, "named by the caller"),
        // Only one algorithm supports a limit of the workspace.
        None if options.workspace.is_some() => (Algorithm::Binned, CHOSEN),
        None => (cuda_spgemm::choose(problem, profile), CHOSEN),
    };
    catalog::check(super::catalog(), problem, algorithm)?;
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
            let backend = format!("{} with a limit of its workspace", config.algorithm());
            return Err(unsupported(problem, &backend, "its workspace has no limit", "binned"));
        }
    };
    Ok((config, why))
}
