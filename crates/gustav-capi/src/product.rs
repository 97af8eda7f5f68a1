//! Products in one call.

use gustav::interop::dlpack::{DLTensor, Tensor, TensorMut};
use gustav::{Result, Scalar, Scale, Spmm};

use crate::dispatch::{with_indices, with_scalar};
use crate::factors::Factors;
use crate::options::{Options, gustav_options};
use crate::pattern::Arrays;
use crate::status::{guard, gustav_status, null};

/// A tensor that is read.
///
/// # Safety
/// As for [`Tensor::new`], or NULL.
pub(crate) unsafe fn read<'a>(name: &'static str, tensor: *const DLTensor) -> Result<Tensor<'a>> {
    // SAFETY: promised by the caller.
    unsafe { Tensor::new(name, tensor.as_ref().ok_or_else(|| null(name))?) }
}

/// A tensor that is written.
///
/// # Safety
/// As for [`TensorMut::new`], or NULL.
pub(crate) unsafe fn write<'a>(
    name: &'static str,
    tensor: *const DLTensor,
) -> Result<TensorMut<'a>> {
    // SAFETY: promised by the caller.
    unsafe { TensorMut::new(name, tensor.as_ref().ok_or_else(|| null(name))?) }
}

/// C = α·op(A)·B + β·C in one call, A in CSR with as many columns as the product needs, `b` and `c` dense.
///
/// A is `offsets` and `indices` as for `gustav_pattern_new`, and `values` in their order. Values, B and C
/// are of one type: float16, bfloat16 (both summed in float32), float32, float64, int32 or int64. B and C
/// are row-major or column-major, with any leading dimension; vectors are matrices of one column. C
/// overlaps no operand. `alpha` NULL is the semiring's one, `beta` NULL its zero, with which C is not read.
///
/// # Safety
/// Each tensor is NULL or one whose memory is as it says; nobody writes that of an operand during the
/// call, and nobody else uses that of C. `alpha` and `beta` are NULL or point to a number, `options` is
/// NULL or as its documentation says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gustav_spmm(
    offsets: *const DLTensor,
    indices: *const DLTensor,
    values: *const DLTensor,
    b: *const DLTensor,
    c: *const DLTensor,
    alpha: *const f64,
    beta: *const f64,
    options: *const gustav_options,
) -> gustav_status {
    guard(|| {
        // SAFETY: promised by the caller.
        let (options, values, b, c) = unsafe {
            (Options::read(options)?, read("values", values)?, read("b", b)?, write("c", c)?)
        };
        let columns = if options.transpose { c.tensor().matrix()[0] } else { b.matrix()[0] };
        // SAFETY: promised by the caller.
        let (offsets, indices) = unsafe { (offsets.as_ref(), indices.as_ref()) };
        let offsets = offsets.ok_or_else(|| null("row offsets"))?;
        let indices = indices.ok_or_else(|| null("column indices"))?;
        let dtype = values.value()?;
        // SAFETY: promised by the caller.
        let (arrays, factors) =
            unsafe { (Arrays::new(offsets, indices, columns)?, Factors::new(alpha, beta, dtype)?) };
        arrays.refuse_overlap(&c)?;
        c.refuse_overlap(&values)?;
        c.refuse_overlap(&b)?;
        let Options { device, semiring, transpose, deterministic, .. } = options;
        let threads = device.threads().clone();
        with_scalar!(dtype, |T| threads.run(|| {
            let Scale { alpha, beta } = factors.scale::<<T as Scalar>::Accum>();
            with_indices!(arrays.view()?, |p| {
                let a = p.with_values(values.slice::<T>()?)?;
                let mut product = Spmm::new(a, b.dense::<T>()?)
                    .device(device)
                    .transpose(transpose)
                    .semiring(semiring)
                    .deterministic(deterministic);
                if let Some(alpha) = alpha {
                    product = product.alpha(alpha);
                }
                product.run_into(beta.unwrap_or(semiring.zero()), c.into_dense::<T>()?)
            })
        }))
    })
}
