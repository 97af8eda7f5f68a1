//! Products in one call.

use gustav::interop::dlpack::DLTensor;
use gustav::{Scalar, Scale, Spmm, with_scalar};

use crate::dispatch::with_indices;
use crate::factors::Factors;
use crate::options::{Options, gustav_options};
use crate::pattern::Arrays;
use crate::pointer::{tensor, tensor_mut};
use crate::status::{guard, gustav_status};

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
            (
                Options::read(options)?,
                tensor("values", values)?,
                tensor("b", b)?,
                tensor_mut("c", c)?,
            )
        };
        let columns = if options.transpose { c.tensor().matrix()[0] } else { b.matrix()[0] };
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
