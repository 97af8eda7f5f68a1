//! Row orders on the device.

use gustav_core::buffer::try_vec;
use gustav_core::{Error, Result};
use gustav_plan::orders::NO_ROW;
use gustav_plan::{Order, RowOrder};

use super::pattern::Pattern;
use crate::device::{Device, DeviceBuffer};

// `kernels/papers/spmm/output_stationary.cu` uses this number.
const _: () = assert!(NO_ROW == 0xffff_ffff);

/// The plan's row order, if it is another one than the stored one.
pub(crate) fn other_than_stored<'a>(pattern: &Pattern<'a>) -> Option<&'a RowOrder> {
    pattern.order().filter(|order| order.order() != Order::Stored)
}

/// The slots of a row order, for CTAs of `warps` warps.
///
/// # Errors
/// [`Error::Argument`] for an order for other CTAs, [`Error::OutOfMemory`], [`Error::Device`].
pub(crate) fn slots(device: &Device, order: &RowOrder, warps: u32) -> Result<DeviceBuffer<u32>> {
    if order.shape().warps != warps as usize {
        return Err(Error::Argument {
            name: "row order",
            found: format!("one for {} warps", order.shape().warps),
            expected: format!("one for the {warps} warps of the configuration"),
        });
    }
    DeviceBuffer::from_slice(device, order.slots(), "an order of rows")
}

/// The rows of a row order as one list.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::Device`].
pub(crate) fn sequence(device: &Device, order: &RowOrder) -> Result<DeviceBuffer<u32>> {
    let mut rows = try_vec(order.rows(), "an order of rows")?;
    rows.extend(order.sequence());
    DeviceBuffer::from_slice(device, &rows, "an order of rows")
}
