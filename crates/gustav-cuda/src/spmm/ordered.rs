//! Row orders as a property of plans: which algorithms take rows through them, and the lists on the
//! device. C comes out in the caller's order.

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Problem, Result, validate};
use gustav_plan::orders::NO_ROW;
use gustav_plan::{Algorithm, Order, RowOrder};

use super::pattern::Pattern;
use super::unsupported;
use crate::{Device, DeviceBuffer};

// `kernels/spmm/output_stationary.cu` knows it by this number.
const _: () = assert!(NO_ROW == 0xffff_ffff);

/// Algorithms that take rows in another order than the stored one.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::OutputStationary, Algorithm::Segmented];

/// Whether `algorithm` takes rows in another order than the stored one.
pub fn takes_orders(algorithm: Algorithm) -> bool {
    ALGORITHMS.contains(&algorithm)
}

/// Refuses orders of other matrices, and algorithms that take rows as stored.
///
/// # Errors
/// [`Error::Length`], [`Error::Unsupported`].
pub(super) fn check(problem: &Problem, algorithm: Algorithm, order: &RowOrder) -> Result<()> {
    validate::length("rows of the order", problem.output_rows(), order.rows())?;
    if takes_orders(algorithm) {
        return Ok(());
    }
    let backend = format!("{algorithm} with the row order {}", order.order());
    let nearest = ALGORITHMS.map(Algorithm::name).join(", ");
    Err(unsupported(problem, &backend, "it takes rows as they are stored", &nearest))
}

/// The order of a plan in which rows are not as stored.
pub(crate) fn other_than_stored<'a>(pattern: &Pattern<'a>) -> Option<&'a RowOrder> {
    pattern.order().filter(|order| order.order() != Order::Stored)
}

/// The slots of an order, for CTAs of `warps` warps.
///
/// # Errors
/// [`Error::Argument`] for an order for other CTAs, [`Error::OutOfMemory`], [`Error::Device`].
pub(super) fn slots(device: &Device, order: &RowOrder, warps: u32) -> Result<DeviceBuffer<u32>> {
    if order.shape().warps != warps as usize {
        return Err(Error::Argument {
            name: "row order",
            found: format!("one for {} warps", order.shape().warps),
            expected: format!("one for the {warps} warps of the configuration"),
        });
    }
    DeviceBuffer::from_slice(device, order.slots(), "an order of rows")
}

/// The rows of an order one after another.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::Device`].
pub(crate) fn sequence(device: &Device, order: &RowOrder) -> Result<DeviceBuffer<u32>> {
    let mut rows = try_vec(order.rows(), "an order of rows")?;
    rows.extend(order.sequence());
    DeviceBuffer::from_slice(device, &rows, "an order of rows")
}
