//! Winners of SpMM with max or min, in device memory.

use gustav_core::{IndexType, Result, Scalar};

use super::checks;
use crate::device::order::Uses;
use crate::device::{Device, DeviceBuffer};
use crate::matrix::HeldPattern;

/// Evaluates `$body` with `$winners` as the buffer.
macro_rules! with_winners {
    ($of:ident, $from:expr, $winners:ident => $body:expr) => {
        match $from {
            $of::U32($winners) => $body,
            $of::U64($winners) => $body,
        }
    };
}

/// [`WinnersMut`](gustav_core::WinnersMut) in a device's memory: row-major and packed, whatever the
/// layout of C.
#[derive(Debug)]
pub enum DeviceWinnersMut<'v> {
    /// In 32 bits, for fewer than 2³² − 1 nonzeros.
    U32(&'v mut DeviceBuffer<u32>),
    /// In 64 bits.
    U64(&'v mut DeviceBuffer<u64>),
}

/// Winners that a gradient reads.
#[derive(Clone, Copy, Debug)]
pub enum DeviceWinners<'v> {
    /// In 32 bits.
    U32(&'v DeviceBuffer<u32>),
    /// In 64 bits.
    U64(&'v DeviceBuffer<u64>),
}

impl DeviceWinners<'_> {
    /// The type of the positions, and their number.
    pub fn description(&self) -> (IndexType, usize) {
        match self {
            DeviceWinners::U32(winners) => (IndexType::U32, winners.len()),
            DeviceWinners::U64(winners) => (IndexType::U64, winners.len()),
        }
    }

    /// Checks that they are on `device`, and do not overlap the output.
    pub(crate) fn check<T: Scalar>(
        &self,
        device: &Device,
        (name, out): (&'static str, &DeviceBuffer<T>),
    ) -> Result<()> {
        with_winners!(DeviceWinners, self, buffer => {
            checks::on(device, "winners", buffer)?;
            checks::separate((name, out), ("the winners", buffer))
        })
    }

    /// Records a read of them in `uses`, and returns their address.
    pub(crate) fn read(&self, uses: &mut Uses<'_>) -> Result<u64> {
        with_winners!(DeviceWinners, self, buffer => {
            uses.read(buffer)?;
            Ok(buffer.address())
        })
    }
}

impl<'v> From<&'v DeviceBuffer<u32>> for DeviceWinners<'v> {
    fn from(winners: &'v DeviceBuffer<u32>) -> Self {
        DeviceWinners::U32(winners)
    }
}

impl<'v> From<&'v DeviceBuffer<u64>> for DeviceWinners<'v> {
    fn from(winners: &'v DeviceBuffer<u64>) -> Self {
        DeviceWinners::U64(winners)
    }
}

impl DeviceWinnersMut<'_> {
    /// The type of the positions, and their number.
    pub fn description(&self) -> (IndexType, usize) {
        match self {
            DeviceWinnersMut::U32(winners) => (IndexType::U32, winners.len()),
            DeviceWinnersMut::U64(winners) => (IndexType::U64, winners.len()),
        }
    }

    /// Checks that they are on `device`, and overlap neither the other operands nor the pattern.
    pub(crate) fn check<T: Scalar>(
        &self,
        device: &Device,
        a: &HeldPattern,
        operands: &[(&'static str, &DeviceBuffer<T>)],
    ) -> Result<()> {
        with_winners!(DeviceWinnersMut, self, buffer => {
            checks::on(device, "winners", buffer)?;
            checks::apart_from(a, ("winners", buffer), operands)
        })
    }

    /// Records a write of them in `uses`, and returns their address.
    pub(crate) fn write(&self, uses: &mut Uses<'_>) -> Result<u64> {
        with_winners!(DeviceWinnersMut, self, buffer => {
            uses.write(buffer)?;
            Ok(buffer.address())
        })
    }
}

impl<'v> From<&'v mut DeviceBuffer<u32>> for DeviceWinnersMut<'v> {
    fn from(winners: &'v mut DeviceBuffer<u32>) -> Self {
        DeviceWinnersMut::U32(winners)
    }
}

impl<'v> From<&'v mut DeviceBuffer<u64>> for DeviceWinnersMut<'v> {
    fn from(winners: &'v mut DeviceBuffer<u64>) -> Self {
        DeviceWinnersMut::U64(winners)
    }
}
