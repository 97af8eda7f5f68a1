//! Checks that arrays on a device are a valid pattern. See `kernels/csr/validate.cu`.

use gustav_core::{Error, Index, IndexType, Result, validate};

use crate::device::DeviceBuffer;
use crate::jit::Request;

const BLOCK: u32 = 256;
// Most CTAs per multiprocessor; larger matrices have more entries per CTA.
const CTAS: u64 = 16;

/// The source with its parameters.
pub(crate) fn request(index: IndexType, offset: IndexType) -> Request {
    request!("csr/validate.cu")
        .with_block::<Arguments>()
        .with("BLOCK", BLOCK)
        .with("INDEX", index)
        .with("OFFSET", offset)
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        /// First and last offset, first row whose offset exceeds the next one, first position of an
        /// index that is too large.
        found: *mut u64,
        rows: u64,
        entries: u64,
        columns: u64,
    }
}

/// Checks the arrays of a pattern of `nrows` × `ncols`, as [`validate::pattern`] does on the host.
/// Waits for the device's own stream.
///
/// # Errors
/// [`Error::Length`], [`Error::Offsets`] or [`Error::Index`] for the first position that is wrong,
/// [`Error::Argument`] for arrays on two devices or in use by a graph, [`Error::Device`].
pub(super) fn pattern<I: Index, O: Index>(
    nrows: usize,
    ncols: usize,
    offsets: &DeviceBuffer<O>,
    indices: &DeviceBuffer<I>,
) -> Result<()> {
    validate::length("row offsets", nrows.saturating_add(1), offsets.len())?;
    let argument = |found: &str, expected: &str| Error::Argument {
        name: "pattern",
        found: found.into(),
        expected: expected.into(),
    };
    if offsets.device() != indices.device() {
        return Err(argument("arrays on two devices", "arrays on one device"));
    }
    if !(offsets.is_alone() && indices.is_alone()) {
        return Err(argument("arrays that a graph uses", "arrays that nobody writes"));
    }
    let device = offsets.device();
    let stream = offsets.join()?;
    indices.join_on(stream)?;
    let mut found = DeviceBuffer::<u64>::queued(device, 4, "positions on the device")?;
    found.fill(0xff, stream)?;
    let arguments = Arguments {
        offsets: offsets.address(),
        indices: indices.address(),
        found: found.address(),
        rows: nrows as u64,
        entries: indices.len() as u64,
        columns: ncols as u64,
    };
    let kernel = device.module(&request(I::TYPE, O::TYPE))?.kernel(c"validate")?;
    let most = CTAS * device.profile().multiprocessors as u64;
    let work = arguments.rows.max(arguments.entries).max(1);
    let grid = (work.div_ceil(u64::from(BLOCK)).min(most), 1);
    // SAFETY: the arrays have the lengths in `arguments`, and all are alive until the stream has
    // been waited for.
    unsafe { kernel.launch(stream, grid, BLOCK, &arguments)? };
    let mut positions = [0; 4];
    found.read(&mut positions)?;
    Positions::new(positions).check(nrows, ncols, offsets, indices)
}

/// The results of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Positions {
    first: u64,
    last: u64,
    /// The first row whose offset exceeds the next one.
    back: Option<usize>,
    /// The first position of an index that is too large.
    index: Option<usize>,
}

impl Positions {
    fn new([first, last, back, index]: [u64; 4]) -> Self {
        let position = |found: u64| (found != u64::MAX).then_some(found as usize);
        Positions { first, last, back: position(back), index: position(index) }
    }

    fn check<I: Index, O: Index>(
        self,
        nrows: usize,
        ncols: usize,
        offsets: &DeviceBuffer<O>,
        indices: &DeviceBuffer<I>,
    ) -> Result<()> {
        let (index, nnz) = (self.index, indices.len());
        if self.is_right(nnz) {
            return Ok(());
        }
        let offset = |row: usize| -> Result<O> {
            let mut value = [O::truncate(0)];
            offsets.read_at(row, &mut value)?;
            Ok(value[0])
        };
        if self.first != 0 {
            return Err(Error::Offsets {
                row: 0,
                found: self.first,
                expected: "0".into(),
                reason: "the first offset must be 0",
            });
        }
        if let Some(row) = self.back {
            return Err(Error::Offsets {
                row,
                found: offset(row + 1)?.to_usize() as u64,
                expected: format!("at least {}", offset(row)?),
                reason: "offsets must not go back",
            });
        }
        if self.last != nnz as u64 {
            return Err(Error::Offsets {
                row: nrows,
                found: self.last,
                expected: format!("{nnz}, the number of column indices"),
                reason: "the last offset must equal the number of entries",
            });
        }
        let Some(position) = index else { return Ok(()) };
        let mut value = [I::truncate(0)];
        indices.read_at(position, &mut value)?;
        // The last row that begins at the position or before it.
        let (mut row, mut end) = (0, nrows);
        while end - row > 1 {
            let middle = row + (end - row) / 2;
            match offset(middle)?.to_usize() <= position {
                true => row = middle,
                false => end = middle,
            }
        }
        let value = value[0].to_usize() as u64;
        Err(Error::Index { row, position, value, bound: ncols })
    }

    fn is_right(self, nnz: usize) -> bool {
        let Positions { first, last, back, index } = self;
        first == 0 && last == nnz as u64 && back.is_none() && index.is_none()
    }
}
