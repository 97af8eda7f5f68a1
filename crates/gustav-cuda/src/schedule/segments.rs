//! Rows cut into segments, listed by `kernels/schedule/segment_list.cu`.

use gustav_core::{Error, IndexType, Problem, Result};
use gustav_plan::RowLengths;
use gustav_plan::facts::row_lengths::{BINS, CUTS, FIRST_CUT_BITS};

use super::lengths::with_bins;
use super::pattern::Pattern;
use super::row_order;
use crate::device::{DeviceBuffer, Stream};
use crate::jit::Request;

// Bits of a segment's length in `kernels/schedule/segments.cuh`; asserted in segment_list.cu.
pub(super) const LENGTH_BITS: u32 = 23;
const BLOCK: u32 = 256;
// Rows of a CTA, for lists of rows in their order.
const UNSORTED: u32 = 1024;
// Allowed lengths from which whole rows are in the head of the list.
const FIRST: std::ops::RangeInclusive<u32> = Segments::LEAST_FIRST..=256;

/// The target that the entry of a part of a cut row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// Its index among the partial sums.
    Slot,
    /// Its row.
    Row,
    /// The index of its row among cut rows.
    CutRow,
}

/// Parameters of cutting and listing rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing {
    /// Rows with at least as many nonzeros are cut; allowed lengths: [`Segments::cuts_at`].
    pub longest: u32,
    /// Nonzeros from which whole rows are in the head of the list; allowed lengths:
    /// [`Segments::comes_first`].
    pub first: u32,
    /// Rows of a window, in which the other rows are sorted by length; 1 lists them in their order.
    pub window: u32,
}

/// A list of segments on the device.
pub(crate) struct Segments {
    /// Two words per segment, see `kernels/schedule/segments.cuh`.
    pub list: DeviceBuffer<u64>,
    /// The rows that are cut.
    pub cut_rows: DeviceBuffer<u64>,
    /// The cut row of each slot, two words as in `kernels/schedule/segments.cuh`.
    pub slot_rows: DeviceBuffer<u64>,
    /// Entries of the list, including empty ones.
    pub count: usize,
    /// Entries of the head: parts of cut rows, and long whole rows.
    pub long: usize,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        list: *mut u64,
        cut_rows: *mut u64,
        /// The cut row of each slot, if parts name their slot.
        slot_rows: *mut u64,
        /// Next part, next cut row, next entry of each bin of lengths.
        cursors: *mut u64,
        /// The rows in the order of the windows; null for the stored one.
        order: *const u32,
        rows: u64,
        /// First entry of the windows in the list.
        windows: u64,
        longest_bits: u32,
        first: u32,
        /// Whether parts name their row in place of their slot.
        to_rows: u32,
    }
}

impl Segments {
    /// Fewest nonzeros of whole rows in the head of the list.
    pub(crate) const LEAST_FIRST: u32 = 32;

    /// The source with its parameters.
    pub(crate) fn request(offset: IndexType, window: u32) -> Request {
        let (sorted, window) = (window > 1, Self::rows_of_cta(window));
        with_bins(request!("schedule/segment_list.cu").with_block::<Arguments>())
            .with("LENGTH_BITS", LENGTH_BITS)
            .with("OFFSET", offset)
            .with("BLOCK", BLOCK.min(window))
            .with("WINDOW", window)
            .with("SORTED", sorted)
            .with("MOST_FIRST", FIRST.end())
    }

    /// Rows that a CTA lists: those of a window, except for windows of 1.
    pub(crate) fn rows_of_cta(window: u32) -> u32 {
        if window > 1 { window } else { UNSORTED }
    }

    /// Default length of whole rows in the head of the list: an eighth of `longest`.
    pub(crate) fn first_of(longest: u32) -> u32 {
        (longest / 8).clamp(Self::LEAST_FIRST, 128)
    }

    /// Whether whole rows of `first` nonzeros and more can be in the head.
    pub(crate) fn comes_first(first: u32) -> bool {
        first.is_power_of_two() && FIRST.contains(&first)
    }

    /// Whether rows can be cut at `longest` nonzeros.
    pub(crate) fn cuts_at(longest: u32) -> bool {
        longest.is_power_of_two()
            && (FIRST_CUT_BITS..FIRST_CUT_BITS + CUTS as u32).contains(&longest.ilog2())
    }

    /// Checks that words of cut rows can name all slots.
    pub(super) fn check_slots(slots: usize) -> Result<()> {
        match u32::try_from(slots) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Overflow {
                what: "parts of cut rows",
                need: slots as u128,
                index_type: IndexType::U32,
            }),
        }
    }

    /// Checks that segments can name all rows.
    pub(super) fn check_rows(rows: usize) -> Result<()> {
        if (rows as u64) < 1 << (63 - LENGTH_BITS) {
            return Ok(());
        }
        Err(Error::Overflow {
            what: "rows of a segment list",
            need: rows as u128,
            index_type: IndexType::U32,
        })
    }

    /// Queues the computation of the list on the device's stream; the caller orders its uses.
    pub(crate) fn new(
        p: &Pattern<'_>,
        problem: &Problem,
        listing: Listing,
        target: Target,
    ) -> Result<Self> {
        let lengths = p.lengths()?;
        let (device, rows) = (p.device(), problem.output_rows());
        Self::check_rows(rows)?;
        if rows != p.rows {
            return Err(Error::Pattern {
                expected: format!("{rows} rows"),
                found: format!("{} rows", p.rows),
            });
        }
        // The kernel has no names of cut rows.
        assert_ne!(target, Target::CutRow, "only lists by tile name cut rows");
        let Listing { longest, first, window } = listing;
        let longest_bits = longest.ilog2();
        // Whole rows in their order are not in the head.
        let first = if window == 1 { longest } else { first.min(longest) };
        let (parts, cut) = lengths.cut(longest_bits);
        let slots = if target == Target::Slot { parts } else { 0 };
        Self::check_slots(slots)?;
        // Parts of cut rows, then whole rows from the longest bin to the shortest.
        let mut cursors = vec![0u64; 2 + BINS];
        let bins = RowLengths::bin(u64::from(first))..RowLengths::bin(u64::from(longest));
        let mut next = parts as u64;
        for bin in bins.rev() {
            cursors[2 + bin] = next;
            next += lengths.bins()[bin];
        }
        let rows_of_cta = Self::rows_of_cta(window);
        let windows = rows.div_ceil(rows_of_cta as usize);
        let count = next as usize + windows * rows_of_cta as usize;
        let mut made = Segments {
            list: DeviceBuffer::queued(device, 2 * count, "segments")?,
            cut_rows: DeviceBuffer::queued(device, cut, "cut rows")?,
            slot_rows: DeviceBuffer::queued(device, 2 * slots, "parts of cut rows")?,
            count,
            long: next as usize,
        };
        made.list.fill(0, device.stream())?;
        let mut on_device =
            DeviceBuffer::queued(device, cursors.len(), "cursors of a segment list")?;
        on_device.write(&cursors)?;
        let order = row_order::other_than_stored(p)
            .map(|order| row_order::sequence(device, order))
            .transpose()?;
        let kernel =
            device.module(&Self::request(problem.offset_type, window))?.kernel(c"segment_list")?;
        let arguments = Arguments {
            offsets: p.offsets,
            list: made.list.address(),
            cut_rows: made.cut_rows.address(),
            slot_rows: made.slot_rows.address(),
            cursors: on_device.address(),
            order: order.as_ref().map_or(0, DeviceBuffer::address),
            rows: rows as u64,
            windows: next,
            longest_bits,
            first,
            to_rows: u32::from(target == Target::Row),
        };
        // SAFETY: the counts of `lengths` are those of the
        // same offsets, so that every index is inside its array; freed buffers wait for the stream.
        unsafe {
            kernel.launch(
                device.stream(),
                (windows as u64, 1),
                BLOCK.min(rows_of_cta),
                &arguments,
            )?
        };
        Ok(made)
    }

    /// Slots for the sums of parts of cut rows.
    pub(crate) fn slots(&self) -> usize {
        self.slot_rows.len() / 2
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.list.bytes() + self.cut_rows.bytes() + self.slot_rows.bytes()
    }

    pub(crate) fn used_on(&self, stream: &Stream) {
        self.list.used_on(stream);
        self.cut_rows.used_on(stream);
        self.slot_rows.used_on(stream);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::device::Device;
    use crate::matrix::DeviceCsr;
    use gustav_core::Csr;

    fn check_coverage(device: &Device, offsets: &[u32], listing: Listing, target: Target) {
        let (rows, nnz) = (offsets.len() - 1, *offsets.last().expect("offsets") as usize);
        let a = Csr::<f32>::new(rows, 1, offsets.to_vec(), vec![0u32; nnz], vec![1.0; nnz])
            .expect("a matrix");
        let a = DeviceCsr::upload(device, &a.view()).expect("A");
        let pattern = Pattern::new(a.pattern()).expect("a pattern");
        let s = Segments::new(&pattern, &a.pattern().spmm(1).problem, listing, target)
            .expect("segments");
        check_list(&s, offsets, listing.longest, target);
        if listing.window == 1 {
            check_order(&s);
        }
    }

    /// Checks that every nonzero of every row is in exactly one segment that names its row.
    pub(in crate::schedule) fn check_list(
        s: &Segments,
        offsets: &[u32],
        longest: u32,
        target: Target,
    ) {
        let (rows, nnz) = (offsets.len() - 1, *offsets.last().expect("offsets") as usize);
        let (list, cut_rows) =
            (s.list.to_host().expect("list"), s.cut_rows.to_host().expect("cuts"));
        let slot_rows = s.slot_rows.to_host().expect("slots");
        // Slots of a row follow each other, and each names all of them.
        let mut slots_of_rows = std::collections::HashMap::new();
        for (slot, words) in slot_rows.chunks_exact(2).enumerate() {
            let (first, count) = (words[1] as u32 as usize, (words[1] >> 32) as usize);
            assert!((first..first + count).contains(&slot));
            assert_eq!(*slots_of_rows.entry(words[0]).or_insert((first, count)), (first, count));
        }
        if target == Target::Slot {
            assert_eq!(slots_of_rows.len(), cut_rows.len());
            assert_eq!(slots_of_rows.values().map(|slots| slots.1).sum::<usize>(), s.slots());
        }
        let mut owner = vec![usize::MAX; nnz];
        let mut written = vec![0; rows];
        for row in cut_rows.iter() {
            written[*row as usize] += 1;
        }
        for pair in list.chunks_exact(2).filter(|pair| pair[1] != 0) {
            let named = (pair[1] >> (LENGTH_BITS + 1)) as usize - 1;
            let length = (pair[1] & ((1 << LENGTH_BITS) - 1)) as usize;
            let cut = pair[1] >> LENGTH_BITS & 1 == 1;
            let row = match target {
                Target::Slot if cut => slot_rows[2 * named] as usize,
                Target::CutRow if cut => cut_rows[named] as usize,
                _ => named,
            };
            assert!(length <= longest as usize);
            written[row] += usize::from(!cut);
            for position in pair[0] as usize..pair[0] as usize + length {
                assert!((offsets[row] as usize..offsets[row + 1] as usize).contains(&position));
                assert_eq!(owner[position], usize::MAX, "a nonzero in two segments");
                owner[position] = row;
            }
        }
        assert!(owner.iter().all(|o| *o != usize::MAX), "a nonzero in no segment");
        assert!(written.iter().all(|w| *w == 1), "a row is written once");
    }

    /// Checks that whole rows are in their order.
    fn check_order(s: &Segments) {
        let list = s.list.to_host().expect("list");
        let rows = list
            .chunks_exact(2)
            .map(|pair| pair[1])
            .filter(|w| w >> LENGTH_BITS & 1 == 0 && *w != 0);
        assert!(rows.map(|word| word >> (LENGTH_BITS + 1)).is_sorted());
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn segments_hold_every_nonzero_once() {
        let device = Device::cuda(0).expect("a CUDA device");
        let hub = [0u32, 0, 3, 3, 5003, 5010, 5010];
        let ragged: Vec<u32> = (0..1500u32).map(|r| r * r / 30).collect();
        let even: Vec<u32> = (0..3000u32).map(|r| r * 64).collect();
        for offsets in [&hub[..], &ragged[..], &even[..], &[0], &[0, 0], &[0, 64, 128]] {
            for longest in [32, 64, 256, 1024, 4096] {
                for (first, window, target) in [
                    (32, 1024, Target::Slot),
                    (128, 1024, Target::Row),
                    (256, 32, Target::Slot),
                    (32, 1, Target::Slot),
                    (64, 1, Target::Row),
                ] {
                    check_coverage(&device, offsets, Listing { longest, first, window }, target);
                }
            }
        }
    }
}
