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

// By the rules, which then say why.
const CHOSEN: &str = "auto";

/// What the caller of a plan decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration, in place of the algorithm's own choice.
    pub config: Option<Config>,
    /// Most bytes of workspace on the device beside the operands and C, a transposed A and memory for a
    /// promised order of summation included; `binned` then takes as many rows at a time as these
    /// suffice for, one at least. The symbolic phase of the parts is cached in page-locked memory of the
    /// host, up to ten bytes a row and C's offsets, by the first execution of a plan for several calls
    /// ([`Problem::calls`]), else by the second; later ones copy it part by part and count nothing.
    pub workspace: Option<usize>,
}

/// A plan for C = α·op(A)·B ⊕ β·D, for one pattern of A and of B, which it holds, and any values.
///
/// op(A) is m × k and B k × n. C holds every entry that the patterns produce exactly once; sums of
/// exactly zero stay as explicit zeros. Its rows are sorted when [`Problem::sorted`] requires it. Its
/// values are of type `U`, that of A and B or of their sums.
///
/// A plan may be sent to another thread. Several plans may be executed at once, also when they were
/// made for one pattern; their work is queued on the device's own stream.
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32, U: Scalar = T> {
    pub(super) patterns: Patterns<T>,
    choice: Choice<Config>,
    method: Box<dyn Method<U, I, O>>,
    refills: bool,
    /// The pattern of the last product, as long as somebody holds it.
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
        // SAFETY: the operands are checked, and their buffers wait for the stream when they are freed.
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
    /// Looks at the patterns `a` and `b` on the device and chooses how to multiply matrices that have
    /// them. The plan sets the types of `problem`.
    ///
    /// # Errors
    /// [`Error::Shape`] when `a` and `b` do not fit together, [`Error::Pattern`] when `problem` was
    /// made for others or for a C of another type, [`Error::Unsupported`] when the algorithm named in
    /// `options` cannot compute `problem`, [`Error::Argument`] when the patterns are on two devices,
    /// [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time compiler is missing,
    /// [`Error::Device`].
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
        // What is still read of somebody else's arrays is not waited for when they are freed.
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

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the patterns; after an execution that adds D
    /// those of a product that it caches as well.
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

    /// Computes C = α·op(A)·B ⊕ β·D as a new matrix, after the work queued on the stream of the call,
    /// which then waits for it. `a` and `b` are values: matrices of the plan's patterns, or buffers in
    /// the order of their nonzeros.
    ///
    /// As long as an earlier result is there, or its pattern, C shares that pattern, where
    /// [`Problem::sorted`] or [`Problem::deterministic`] fixes the order of its entries and the
    /// algorithm can.
    ///
    /// With D, C holds the union of both patterns. Where [`Problem::calls`] says that there will be
    /// more, the product is cached for the next execution.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` or `b` belongs to another pattern, [`Error::Length`] when they are
    /// not as many as nonzeros, [`Error::Overflow`] when the entries of C outnumber the offset type,
    /// [`Error::OutOfMemory`] with the device left usable, [`Error::Cancelled`] when
    /// [`SpgemmCall::watch`] said so: the plan and the device stay usable, and the memory of C is free
    /// again; [`Error::Shape`] when D has another shape, [`Error::Argument`] when an operand is on
    /// another device or there is a β without D, [`Error::Device`].
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

    /// As [`SpgemmPlan::execute`] without D, for the last time: C takes over what of the plan's memory
    /// it can, so that less is held at once.
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

    /// Computes the values of C = α·op(A)·B ⊕ β·D into `c`, which has the pattern of the last result
    /// of [`SpgemmPlan::execute`], of the same D if there is one: nothing symbolic is done and no
    /// memory is taken, but by the second execution of a plan for a single call under a bound on its
    /// workspace (see [`Options::workspace`]), and where the plan did not cache the product that D is
    /// added to, or rows are not sorted.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`]; [`Error::Pattern`] when `c` or D has another pattern than then, or
    /// `c` shares it with another matrix and its rows are in no fixed order; [`Error::Unsupported`] for
    /// algorithms that find C anew.
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

    /// Refuses a β that is a factor of nothing.
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

    /// Whether entries of C are in the same order in every run.
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
            // SAFETY: values are as many as nonzeros of the plan's own patterns; the buffers wait for
            // the stream when they are freed.
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

    /// The values of C = α·op(A)·B into `c`.
    pub(super) fn product_into(
        &mut self,
        values: Factors<'_, T>,
        c: &mut DeviceCsr<U, I, O>,
        call: &Common<'_, T::Accum>,
    ) -> Result<()> {
        self.result.check(c.pattern().id())?;
        if !self.is_ordered() && !c.pattern().is_alone() {
            return Err(Error::Pattern {
                expected: "a C of its own, whose entries it may put in another order".into(),
                found: "of a pattern that others hold".into(),
            });
        }
        self.run(values, call, |method, device, operands| {
            let mut uses = Uses::on(device.stream()).ordered(call.ordered);
            uses.read(c.offsets())?;
            uses.read(c.indices())?;
            uses.write(c.values().buffer())?;
            // SAFETY: as in `product`; `c` has the pattern of the product.
            unsafe { method.refill(device, operands, c) }
        })
    }

    /// C for the last time.
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

    /// Does `work` between the streams of the call, as one execution of the plan.
    fn run<R>(
        &mut self,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
        work: impl FnOnce(&mut dyn Method<U, I, O>, &crate::device::Device, &Operands) -> Result<R>,
    ) -> Result<R> {
        let device = &self.patterns.device;
        let operands = self.patterns.begin(values.0, values.1, call)?;
        let done = work(&mut *self.method, device, &operands);
        // After an error too: kernels that write C may still run.
        self.patterns.end(call)?;
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
    let named = crate::product::catalog::named(problem, options.chooser, configured)?;
    let (algorithm, why) = match named {
        Some(algorithm) if configured.is_some() => (algorithm, "configured by the caller"),
        Some(algorithm) => (algorithm, "named by the caller"),
        // One algorithm respects a bound on the workspace.
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
            let backend = format!("{} with a bound on its workspace", config.algorithm());
            return Err(unsupported(problem, &backend, "it takes what it needs", "binned"));
        }
    };
    Ok((config, why))
}
