//! Where SpMM with max or min writes which nonzeros won.

use gustav_core::IndexType;

use crate::device::DeviceBuffer;

/// [`WinnersMut`](gustav_core::WinnersMut) in a device's memory: row-major and packed, whatever the layout of C.
#[derive(Debug)]
pub enum DeviceWinnersMut<'v> {
    /// In 32 bits, of fewer than 2³² − 1 nonzeros.
    U32(&'v mut DeviceBuffer<u32>),
    /// In 64 bits.
    U64(&'v mut DeviceBuffer<u64>),
}

impl DeviceWinnersMut<'_> {
    /// Type of the positions, and their number.
    pub fn description(&self) -> (IndexType, usize) {
        match self {
            DeviceWinnersMut::U32(winners) => (IndexType::U32, winners.len()),
            DeviceWinnersMut::U64(winners) => (IndexType::U64, winners.len()),
        }
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

/// Evaluates `$body` with `$winners` as the buffer.
macro_rules! with_winners {
    ($of:expr, $winners:ident => $body:expr) => {
        match $of {
            $crate::product::winners::DeviceWinnersMut::U32($winners) => $body,
            $crate::product::winners::DeviceWinnersMut::U64($winners) => $body,
        }
    };
}
pub(crate) use with_winners;
