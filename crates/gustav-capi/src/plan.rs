//! Plans: a pattern is analysed once, the product is executed any number of times.

use std::ffi::{CString, c_char};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use gustav::cuda::Call;
use gustav::interop::dlpack::{
    DLDataType, DLManagedTensorVersioned, DLTensor, GpuTensor, Tensor, TensorMut,
};
use gustav::{
    CpuScalar, DType, Device, Error, Index, Layout, Pattern, PatternRef, Plans, Result, SddmmCall,
    SddmmPlan, SddmmRequest, SpgemmCall, SpgemmPlan, SpmmPlan, SpmmRequest, SpmvPlan, with_scalar,
};

use crate::dispatch::with_indices;
use crate::export::{Exported, export};
use crate::factors::Factors;
use crate::handle::Table;
use crate::options::{Options, gustav_options};
use crate::pattern::{Indices, gustav_pattern};
use crate::pointer::{optional, tensor, tensor_mut, written};
use crate::status::{guard, gustav_status};
use crate::stream::{Held, gustav_stream};

/// A product that was planned for patterns and a type of values, which it keeps. Threads may share one;
/// their executions run one after another.
#[allow(non_camel_case_types)]
pub struct gustav_plan {
    _opaque: (),
}

static PLANS: Table<Plan> = Table::new("plan");

struct Plan {
    dtype: DType,
    /// Names of two operands and the result; of SpGEMM, which makes its result, those of the operands.
    names: [&'static str; 3],
    /// Of the patterns, which results must not overlap.
    extents: Vec<(&'static str, Range<usize>)>,
    explanation: CString,
    inner: Inner,
}

enum Inner {
    Dense(Mutex<Box<dyn DensePlan>>),
    Sparse(Mutex<Box<dyn SparsePlan>>),
}

/// A plan whose result is the caller's, whatever its types.
trait DensePlan: Send {
    fn execute(
        &mut self,
        operands: [Tensor<'_>; 2],
        result: TensorMut<'_>,
        factors: Factors,
    ) -> Result<()>;

    /// The same, queued on a stream.
    fn execute_on(
        &mut self,
        stream: &Held,
        operands: [GpuTensor<'_>; 2],
        result: GpuTensor<'_>,
        factors: Factors,
    ) -> Result<()>;

    /// What the plan says of itself, made where it is not yet.
    fn explain(&mut self) -> Result<String>;
}

/// A plan whose result is sparse.
trait SparsePlan: Send {
    fn execute(&mut self, values: [Tensor<'_>; 2], factors: Factors) -> Result<Product>;
}

/// Pattern and values of a sparse result.
struct Product {
    pattern: Indices,
    values: Exported,
}

/// Plans of a product with two dense matrices, one for each pair of layouts that it was executed with.
struct ByLayout<P, M> {
    plans: [Option<P>; 4],
    make: M,
}

impl<P, M: Fn(Layout, Layout) -> Result<P>> ByLayout<P, M> {
    fn new(make: M) -> Self {
        ByLayout { plans: [const { None }; 4], make }
    }

    fn get(&mut self, first: Layout, second: Layout) -> Result<&mut P> {
        match &mut self.plans[number(first, second)] {
            Some(plan) => Ok(plan),
            none => Ok(none.insert((self.make)(first, second)?)),
        }
    }

    /// As [`ByLayout::get`], of an execution on `stream`: planning waits for the device.
    fn get_on(&mut self, stream: &Held, first: Layout, second: Layout) -> Result<&mut P> {
        if self.plans[number(first, second)].is_none() && stream.stream.is_capturing() {
            return Err(Error::Unsupported {
                problem: "planning for other layouts in a graph that is being captured".into(),
                backend: "the C interface".into(),
                reason: "it waits for the device".into(),
                nearest: "an execution with these layouts before the capture".into(),
            });
        }
        self.get(first, second)
    }
}

/// Of a pair of layouts, which are four.
fn number(first: Layout, second: Layout) -> usize {
    let bit = |layout| usize::from(layout == Layout::ColumnMajor);
    2 * bit(first) + bit(second)
}

impl<T: CpuScalar, M> DensePlan for ByLayout<SpmmPlan<'static, T>, M>
where
    M: Fn(Layout, Layout) -> Result<SpmmPlan<'static, T>> + Send,
{
    fn execute(
        &mut self,
        [values, b]: [Tensor<'_>; 2],
        c: TensorMut<'_>,
        factors: Factors,
    ) -> Result<()> {
        let plan = self.get(b.layout()?, c.tensor().layout()?)?;
        let scale = factors.scale::<T::Accum>();
        plan.execute(values.slice::<T>()?, b.dense::<T>()?, c.into_dense::<T>()?, scale)
    }

    fn execute_on(
        &mut self,
        on: &Held,
        [values, b]: [GpuTensor<'_>; 2],
        c: GpuTensor<'_>,
        factors: Factors,
    ) -> Result<()> {
        let (plan, device) = (self.get_on(on, b.layout()?, c.layout()?)?, on.device()?);
        let call = Call::from(factors.scale::<T::Accum>()).on(&on.stream);
        let (values, b) = (values.vector::<T>(device)?, b.dense::<T>(device)?);
        plan.execute(&values, &b, &mut c.dense::<T>(device)?, call)
    }

    fn explain(&mut self) -> Result<String> {
        self.get(Layout::RowMajor, Layout::RowMajor).map(|plan| plan.explain().to_string())
    }
}

impl<T: CpuScalar, M> DensePlan for ByLayout<SddmmPlan<'static, T>, M>
where
    M: Fn(Layout, Layout) -> Result<SddmmPlan<'static, T>> + Send,
{
    fn execute(
        &mut self,
        [x, y]: [Tensor<'_>; 2],
        values: TensorMut<'_>,
        factors: Factors,
    ) -> Result<()> {
        let plan = self.get(x.layout()?, y.layout()?)?;
        let scale = factors.scale::<T::Accum>();
        plan.execute(x.dense::<T>()?, y.dense::<T>()?, values.into_slice::<T>()?, scale)
    }

    fn execute_on(
        &mut self,
        on: &Held,
        [x, y]: [GpuTensor<'_>; 2],
        values: GpuTensor<'_>,
        factors: Factors,
    ) -> Result<()> {
        let (plan, device) = (self.get_on(on, x.layout()?, y.layout()?)?, on.device()?);
        let call = SddmmCall::from(factors.scale::<T::Accum>()).on(&on.stream);
        let (x, y) = (x.dense::<T>(device)?, y.dense::<T>(device)?);
        plan.execute(&x, &y, &mut values.vector::<T>(device)?, call)
    }

    fn explain(&mut self) -> Result<String> {
        self.get(Layout::RowMajor, Layout::RowMajor).map(|plan| plan.explain().to_string())
    }
}

impl<T: CpuScalar> DensePlan for SpmvPlan<'static, T> {
    fn execute(
        &mut self,
        [values, x]: [Tensor<'_>; 2],
        y: TensorMut<'_>,
        factors: Factors,
    ) -> Result<()> {
        let scale = factors.scale::<T::Accum>();
        SpmvPlan::execute(self, values.slice::<T>()?, x.slice::<T>()?, y.into_slice::<T>()?, scale)
    }

    fn execute_on(
        &mut self,
        on: &Held,
        [values, x]: [GpuTensor<'_>; 2],
        y: GpuTensor<'_>,
        factors: Factors,
    ) -> Result<()> {
        let (device, scale) = (on.device()?, factors.scale::<T::Accum>());
        let (values, x) = (values.vector::<T>(device)?, x.vector::<T>(device)?);
        let mut y = y.vector::<T>(device)?;
        SpmvPlan::execute(self, &values, &x, &mut y, Call::from(scale).on(&on.stream))
    }

    fn explain(&mut self) -> Result<String> {
        Ok(SpmvPlan::explain(self).to_string())
    }
}

struct Sparse<T: CpuScalar, I: Index, O: Index> {
    plan: SpgemmPlan<'static, T, I, O>,
    wrap: fn(Pattern<I, O>) -> Indices,
}

impl<T: CpuScalar, I: Index, O: Index> SparsePlan for Sparse<T, I, O> {
    fn execute(&mut self, [a, b]: [Tensor<'_>; 2], factors: Factors) -> Result<Product> {
        let mut call = SpgemmCall::new();
        if let Some(alpha) = factors.scale::<T::Accum>().alpha {
            call = call.alpha(alpha);
        }
        let c = self.plan.execute(a.slice::<T>()?, b.slice::<T>()?, call)?;
        let pattern = (self.wrap)(c.pattern().clone());
        Ok(Product { pattern, values: Exported::values(c.into_values()) })
    }
}

/// The type of values that a caller asks for.
fn value(dtype: DLDataType) -> Result<DType> {
    dtype.value().ok_or_else(|| Error::Argument {
        name: "dtype",
        found: dtype.to_string(),
        expected: "float16, bfloat16, float32, float64, int32 or int64".into(),
    })
}

impl Plan {
    fn dense(
        mut plan: Box<dyn DensePlan>,
        dtype: DType,
        names: [&'static str; 3],
        pattern: &Indices,
        device: &Device,
    ) -> Result<Self> {
        let text = device.threads().run(|| plan.explain())?;
        let (extents, explanation) = (pattern.extents().to_vec(), to_c(text));
        Ok(Plan { dtype, names, extents, explanation, inner: Inner::Dense(Mutex::new(plan)) })
    }

    fn into_handle(self) -> *mut gustav_plan {
        PLANS.insert(self)
    }

    /// The operands of a call, which are of the plan's type.
    ///
    /// # Safety
    /// As for [`tensor`].
    unsafe fn operands<'a>(&self, at: [*const DLTensor; 2]) -> Result<[Tensor<'a>; 2]> {
        // SAFETY: promised by the caller.
        unsafe { Ok([tensor(self.names[0], at[0])?, tensor(self.names[1], at[1])?]) }
    }

    fn other_product(&self, function: &str) -> Error {
        Error::Argument {
            name: "plan",
            found: "one of another product".into(),
            expected: format!("a plan for {function}"),
        }
    }
}

/// A text for C, which has no 0 within.
fn to_c(text: String) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Plans C = α·op(A)·B + β·C for dense B and C with `columns` columns. Executed with values of A, B and C.
///
/// # Safety
/// `options` is NULL or as its documentation says; `plan` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_plan_spmm(
    pattern: *const gustav_pattern,
    columns: usize,
    dtype: DLDataType,
    options: *const gustav_options,
    plan: *mut *mut gustav_plan,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (options, plan) = unsafe { (Options::read(options)?, written("plan", plan)?) };
        let (pattern, dtype) = (Indices::of(pattern)?, value(dtype)?);
        let device = options.device.clone();
        let inner: Box<dyn DensePlan> = with_scalar!(dtype, |T| with_indices!(&*pattern, |p| {
            let p = p.clone();
            Box::new(ByLayout::new(move |b, c| {
                let request = p
                    .spmm(columns)
                    .calls(options.calls)
                    .transpose(options.transpose)
                    .semiring(options.semiring)
                    .deterministic(options.deterministic)
                    .layouts(b, c);
                Plans::<SpmmRequest<PatternRef<'static, _, _>>, T>::plan(&options.device, request)
            }))
        }));
        *plan = Plan::dense(inner, dtype, ["values", "b", "c"], &pattern, &device)?.into_handle();
        Ok(())
    })
}

/// Plans y = α·op(A)·x + β·y for packed vectors. Executed with values of A, x and y.
///
/// # Safety
/// As for `gustav_plan_spmm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_plan_spmv(
    pattern: *const gustav_pattern,
    dtype: DLDataType,
    options: *const gustav_options,
    plan: *mut *mut gustav_plan,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (options, plan) = unsafe { (Options::read(options)?, written("plan", plan)?) };
        let (pattern, dtype) = (Indices::of(pattern)?, value(dtype)?);
        let threads = options.device.threads().clone();
        let inner: Box<dyn DensePlan> =
            with_scalar!(dtype, |T| with_indices!(&*pattern, |p| threads.run(|| {
                let request = p
                    .spmv()
                    .calls(options.calls)
                    .transpose(options.transpose)
                    .semiring(options.semiring)
                    .deterministic(options.deterministic);
                let made: SpmvPlan<'static, T> = request.plan(&options.device)?;
                Ok::<_, Error>(Box::new(made) as Box<dyn DensePlan>)
            })))?;
        let names = ["values", "x", "y"];
        *plan = Plan::dense(inner, dtype, names, &pattern, &options.device)?.into_handle();
        Ok(())
    })
}

/// Plans values = α·(X·Yᵀ) + β·values at the nonzeros of a pattern, for X with as many rows as the pattern
/// and Y with as many as it has columns, both with `depth` columns. Executed with X, Y and values.
///
/// # Safety
/// As for `gustav_plan_spmm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_plan_sddmm(
    pattern: *const gustav_pattern,
    depth: usize,
    dtype: DLDataType,
    options: *const gustav_options,
    plan: *mut *mut gustav_plan,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (options, plan) = unsafe { (Options::read(options)?, written("plan", plan)?) };
        options.refuse_of_sddmm()?;
        let (pattern, dtype) = (Indices::of(pattern)?, value(dtype)?);
        let device = options.device.clone();
        let inner: Box<dyn DensePlan> = with_scalar!(dtype, |T| with_indices!(&*pattern, |p| {
            let p = p.clone();
            Box::new(ByLayout::new(move |x, y| {
                let request = p.sddmm(depth).calls(options.calls).layouts(x, y);
                Plans::<SddmmRequest<PatternRef<'static, _, _>>, T>::plan(&options.device, request)
            }))
        }));
        *plan = Plan::dense(inner, dtype, ["x", "y", "values"], &pattern, &device)?.into_handle();
        Ok(())
    })
}

/// Plans C = α·op(A)·B with three sparse matrices; with `mask` not NULL, the entries that it has and no
/// others. All patterns have indices of the same widths. Executed by `gustav_execute_spgemm`.
///
/// # Safety
/// As for `gustav_plan_spmm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_plan_spgemm(
    a: *const gustav_pattern,
    b: *const gustav_pattern,
    mask: *const gustav_pattern,
    dtype: DLDataType,
    options: *const gustav_options,
    plan: *mut *mut gustav_plan,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (options, plan) = unsafe { (Options::read(options)?, written("plan", plan)?) };
        let (a, b, dtype) = (Indices::of(a)?, Indices::of(b)?, value(dtype)?);
        let mask = if mask.is_null() { None } else { Some(Indices::of(mask)?) };
        let (inner, explanation) =
            with_scalar!(dtype, |T| options.device.threads().run(|| match (&*a, &*b, &mask) {
                (Indices::Small(a), Indices::Small(b), None) =>
                    sparse::<T, _, _>(a, b, None, &options, Indices::Small),
                (Indices::Long(a), Indices::Long(b), None) =>
                    sparse::<T, _, _>(a, b, None, &options, Indices::Long),
                (Indices::Large(a), Indices::Large(b), None) =>
                    sparse::<T, _, _>(a, b, None, &options, Indices::Large),
                (a, b, Some(mask)) => match (a, b, &**mask) {
                    (Indices::Small(a), Indices::Small(b), Indices::Small(mask)) =>
                        sparse::<T, _, _>(a, b, Some(mask), &options, Indices::Small),
                    (Indices::Long(a), Indices::Long(b), Indices::Long(mask)) =>
                        sparse::<T, _, _>(a, b, Some(mask), &options, Indices::Long),
                    (Indices::Large(a), Indices::Large(b), Indices::Large(mask)) =>
                        sparse::<T, _, _>(a, b, Some(mask), &options, Indices::Large),
                    _ => Err(other_indices()),
                },
                _ => Err(other_indices()),
            }))?;
        let (explanation, extents) = (to_c(explanation), Vec::new());
        let (names, inner) = (["values of a", "values of b", ""], Inner::Sparse(Mutex::new(inner)));
        *plan = Plan { dtype, names, extents, explanation, inner }.into_handle();
        Ok(())
    })
}

fn other_indices() -> Error {
    Error::Argument {
        name: "patterns",
        found: "indices of different widths".into(),
        expected: "those of all patterns in the same widths".into(),
    }
}

fn sparse<T: CpuScalar, I: Index, O: Index>(
    a: &Pattern<I, O>,
    b: &Pattern<I, O>,
    mask: Option<&Pattern<I, O>>,
    options: &Options,
    wrap: fn(Pattern<I, O>) -> Indices,
) -> Result<(Box<dyn SparsePlan>, String)> {
    let mut request = a
        .spgemm(b)
        .calls(options.calls)
        .transpose(options.transpose)
        .semiring(options.semiring)
        .deterministic(options.deterministic);
    if let Some(mask) = mask {
        request = request.mask(mask);
    }
    let plan: SpgemmPlan<'static, T, I, O> = request.plan(&options.device)?;
    let explanation = plan.explain().to_string();
    Ok((Box::new(Sparse { plan, wrap }), explanation))
}

/// Executes a plan of SpMM (values of A, B, C), SpMV (values of A, x, y) or SDDMM (X, Y, values): two
/// operands and the result, all of the plan's type. Dense matrices are row-major or column-major with any
/// leading dimension; a plan is made for each pair of layouts when it is first seen. Values are packed
/// vectors in the order of the pattern's nonzeros. `alpha` and `beta` are as for `gustav_spmm`.
///
/// # Safety
/// As for `gustav_spmm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_execute(
    plan: *const gustav_plan,
    first: *const DLTensor,
    second: *const DLTensor,
    result: *const DLTensor,
    alpha: *const f64,
    beta: *const f64,
) -> gustav_status {
    guard(|| {
        let plan = PLANS.get(plan)?;
        let Inner::Dense(inner) = &plan.inner else {
            return Err(plan.other_product("gustav_execute"));
        };
        // SAFETY: promised by the caller.
        let (operands, result, factors) = unsafe {
            (
                plan.operands([first, second])?,
                tensor_mut(plan.names[2], result)?,
                Factors::new(alpha, beta, plan.dtype)?,
            )
        };
        for operand in &operands {
            result.refuse_overlap(operand)?;
        }
        for (name, range) in &plan.extents {
            result.refuse_range(name, range.clone())?;
        }
        // A panic leaves a workspace that may hold anything, which an execution overwrites.
        inner.lock().unwrap_or_else(PoisonError::into_inner).execute(operands, result, factors)
    })
}

/// As `gustav_execute`, queued on a stream of the GPU that the plan is for, in whose memory all tensors are
/// (`kDLCUDA`, `kDLCUDAManaged`): the call returns without waiting for it. The first execution with a pair of layouts
/// plans and compiles, for which it waits and which a stream that is being captured refuses; a graph that is captured
/// from later ones holds the plan.
///
/// # Safety
/// As for `gustav_execute`; memory of the tensors is not freed before the work on it is done, and work of others on it
/// is ordered before or after, by the stream or by events. While a graph is replayed, its plans are executed on no
/// other stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_execute_on(
    plan: *const gustav_plan,
    first: *const DLTensor,
    second: *const DLTensor,
    result: *const DLTensor,
    alpha: *const f64,
    beta: *const f64,
    stream: *const gustav_stream,
) -> gustav_status {
    guard(|| {
        let (plan, on) = (PLANS.get(plan)?, Held::of(stream)?);
        let Inner::Dense(inner) = &plan.inner else {
            return Err(plan.other_product("gustav_execute_on"));
        };
        // SAFETY: promised by the caller.
        let (operands, result, factors) = unsafe {
            (
                [on.tensor(plan.names[0], first)?, on.tensor(plan.names[1], second)?],
                on.tensor(plan.names[2], result)?,
                Factors::new(alpha, beta, plan.dtype)?,
            )
        };
        for operand in &operands {
            result.refuse_overlap(operand)?;
        }
        on.within(
            || plan.clone(),
            || {
                let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
                inner.execute_on(&on, operands, result, factors)
            },
        )
    })
}

/// Executes a plan of SpGEMM: to `pattern`, if it is not NULL, a handle of C's pattern, the same in every
/// execution, which the caller frees; to `values` its values, which the caller frees by their deleter.
///
/// # Safety
/// As for `gustav_spmm`; `pattern` is NULL or can be written, as is `values`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_execute_spgemm(
    plan: *const gustav_plan,
    values_of_a: *const DLTensor,
    values_of_b: *const DLTensor,
    alpha: *const f64,
    pattern: *mut *mut gustav_pattern,
    values: *mut *mut DLManagedTensorVersioned,
) -> gustav_status {
    guard(|| {
        let plan = PLANS.get(plan)?;
        let Inner::Sparse(inner) = &plan.inner else {
            return Err(plan.other_product("gustav_execute_spgemm"));
        };
        // SAFETY: promised by the caller.
        let (operands, factors, pattern, values) = unsafe {
            (
                plan.operands([values_of_a, values_of_b])?,
                Factors::new(alpha, std::ptr::null(), plan.dtype)?,
                optional("pattern", pattern)?,
                written("values", values)?,
            )
        };
        let product =
            inner.lock().unwrap_or_else(PoisonError::into_inner).execute(operands, factors)?;
        if let Some(pattern) = pattern {
            *pattern = product.pattern.into_handle();
        }
        *values = export(product.values);
        Ok(())
    })
}

/// What a plan does, and why: algorithm, configuration, facts and workspace, as text of some lines. It is
/// valid until the plan is freed and no call uses it.
///
/// # Safety
/// `text` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_plan_explain(
    plan: *const gustav_plan,
    text: *mut *const c_char,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let text = unsafe { written("text", text)? };
        *text = PLANS.get(plan)?.explanation.as_ptr();
        Ok(())
    })
}

/// Frees the handle. NULL is nothing, a handle that was freed before is `GUSTAV_INVALID`.
#[unsafe(no_mangle)]
pub extern "C" fn gustav_plan_free(plan: *mut gustav_plan) -> gustav_status {
    guard(|| PLANS.remove(plan))
}
