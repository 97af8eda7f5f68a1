//! Row orders of matrices on a GPU: made on the CPU, from a copy of the pattern.

use std::time::Instant;

use gustav_core::{DType, Error, Index, PatternView, Problem, Result};
use gustav_plan::orders::{Search, WarpShape};
use gustav_plan::{Order, RowOrder};

use super::DevicePattern;
use crate::Device;
use crate::explain::OrderFacts;

// Bytes of a cache line of every GPU.
const LINE: usize = 128;

/// `order` of `a`, made on the threads of `device`.
///
/// # Errors
/// [`Error::Unsupported`] for op(A) = Aᵀ; [`Error::OutOfMemory`]; what the driver refuses.
pub(super) fn of<I: Index, O: Index>(
    device: &Device,
    order: Order,
    a: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<(RowOrder, OrderFacts)> {
    if problem.transpose_a {
        return Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: format!("the row order {order}"),
            reason: "orders are made of the rows of A as stored".into(),
            nearest: "PatternView::transpose, and the product of that pattern".into(),
        });
    }
    made(device, order, &a.download()?.view(), problem.dtype)
}

/// The same of a matrix in host memory.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(super) fn made<I: Index, O: Index>(
    device: &Device,
    order: Order,
    a: &PatternView<'_, I, O>,
    dtype: DType,
) -> Result<(RowOrder, OrderFacts)> {
    let start = Instant::now();
    let shape = WarpShape { line: LINE / dtype.bytes(), ..WarpShape::default() };
    let made = device.threads().run(|| order.of(a, shape, Search::Auto))?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let facts = OrderFacts { order, bound: made.bound(), ms };
    Ok((made, facts))
}
