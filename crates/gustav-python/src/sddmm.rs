//! Dense × dense at the nonzeros of a pattern.

use gustav::{Device, Scalar, SddmmCall, SddmmPlan as Plan};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::element::with_scalar;
use crate::error::detached;
use crate::pattern::{Source, with_indices};
use crate::scale::Factors;
use crate::threads;

/// `out = alpha * (x @ y.T) * factors + beta * out` at the nonzeros of a pattern; factors of none are 1.
#[pyfunction]
pub fn sddmm(
    py: Python<'_>,
    pattern: &Bound<'_, PyAny>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    alpha: Option<&Bound<'_, PyAny>>,
    beta: Option<&Bound<'_, PyAny>>,
    factors: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<()> {
    let source = Source::of(pattern)?;
    let (x, y) = (Array::to_read("x", x)?, Array::to_read("y", y)?);
    let mut out = Array::to_write("out", out)?;
    let factors = factors.map(|f| Array::vector("factors", f)).transpose()?;
    for operand in source.arrays().chain([&x, &y]).chain(&factors) {
        out.refuse_overlap(operand)?;
    }
    let [_, depth] = x.shape() else {
        return Err(PyValueError::new_err("x: expected two dimensions, found one"));
    };
    let depth = *depth;
    let dtype = x.element.value("x")?;
    let scale = Factors::new(alpha, beta, dtype)?;
    let device: Device = threads::device(threads)?;
    with_scalar!(dtype, |T| detached(py, move || device.threads().run(|| {
        with_indices!(AnyRef, source.pattern()?, |p| {
            let layouts = (x.layout_of_matrix(), y.layout_of_matrix());
            let request = p.view().sddmm(depth).layouts(layouts.0, layouts.1);
            let mut plan: Plan<'_, T> = request.plan(&device)?;
            let mut call = SddmmCall::from(scale.scale::<<T as Scalar>::Accum>());
            if let Some(factors) = &factors {
                call = call.factors(factors.slice::<T>()?);
            }
            Ok(plan.execute(x.dense::<T>()?, y.dense::<T>()?, out.slice_mut::<T>()?, call)?)
        })
    })))
}
