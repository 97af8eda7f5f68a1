//! Row offsets from the numbers of entries of the rows, on the device. See `kernels/csr/scan.cu`.

use gustav_core::{Error, Index, IndexType, Result};

use crate::device::{Device, DeviceBuffer};
use crate::jit::Request;
use crate::launch::Kernel;

const BLOCK: u32 = 256;
const ITEMS: u32 = 4;

parameter_block! {
    struct Arguments {
        offsets: *mut Offset,
        rows: u64,
        /// Zero at launch: a ticket counter, then a word for every tile.
        ticket: *mut u64,
        total: *mut u64,
    }
}

/// The source with its parameters.
pub(crate) fn request(offset: IndexType) -> Request {
    request!("csr/scan.cu")
        .with_block::<Arguments>()
        .with("OFFSET", offset)
        .with("BLOCK", BLOCK)
        .with("ITEMS", ITEMS)
}

/// The kernel, for one type of row offsets.
pub(crate) struct Scan(Kernel<Arguments>);

impl Scan {
    pub(crate) fn new(device: &Device, offset: IndexType) -> Result<Self> {
        device.module(&request(offset))?.kernel(c"scan").map(Scan)
    }

    /// Replaces the numbers of entries of row i at `offsets[i + 1]` by row offsets, and returns the
    /// sum. Runs on the device's own stream and waits for it.
    ///
    /// # Errors
    /// [`Error::Overflow`] when the sum passes `O`, [`Error::OutOfMemory`], [`Error::Device`].
    pub(crate) fn sum<O: Index>(
        &self,
        device: &Device,
        offsets: &DeviceBuffer<O>,
    ) -> Result<usize> {
        let rows = offsets.len().saturating_sub(1);
        let tiles = rows.div_ceil((BLOCK * ITEMS) as usize).max(1);
        // The sum, the ticket counter, the tiles.
        let mut words = DeviceBuffer::<u64>::queued(device, 2 + tiles, "tiles of a scan")?;
        words.fill(0, device.stream())?;
        let (total, ticket) = (words.address(), words.address() + 8);
        let arguments = Arguments { offsets: offsets.address(), rows: rows as u64, ticket, total };
        // SAFETY: the offsets are as many, and so are the
        // words.
        unsafe { self.0.launch(device.stream(), (tiles as u64, 1), BLOCK, &arguments)? };
        let mut total = [0];
        words.read_at(0, &mut total)?;
        let fits = O::TYPE == IndexType::U64 || total[0] <= u64::from(u32::MAX);
        match usize::try_from(total[0]) {
            Ok(total) if fits => Ok(total),
            _ => Err(Error::Overflow {
                what: "row offset of C",
                need: u128::from(total[0]),
                index_type: O::TYPE,
            }),
        }
    }
}
