//! Rows in their order, one group of lanes per row, long rows cut into parts. See
//! `kernels/spmv/segmented.cu`.

use gustav_core::{DType, IndexType, Problem, Result, Semiring};
use gustav_plan::heuristics::cuda_spmv;

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::{Request, source};
use crate::launch::Kernel;
use crate::product::check_config;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::slices::Slices;
use crate::schedule::pattern::Pattern;

// Bytes of an entry in the list of parts.
const ENTRY: usize = 32;

/// The shape of a group and of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct InOrder {
    /// Lanes that share a row: a power of two up to 32.
    pub lanes: u32,
    /// Nonzeros that a lane loads before it uses the first.
    pub loads_in_flight: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Rows with more nonzeros than this are cut.
    pub longest: u32,
    /// Most nonzeros of a part of a cut row.
    pub part: u32,
}

impl InOrder {
    /// The configuration of a tuning.
    pub(super) fn new(tuning: &cuda_spmv::InOrder) -> Self {
        let cuda_spmv::InOrder { lanes, longest, part } = *tuning;
        InOrder { lanes, loads_in_flight: 4, threads: 128, longest, part }
    }
}

/// The compiled kernel, and the parts of long rows.
pub(in crate::spmv) struct Prepared {
    config: InOrder,
    kernel: Kernel<Arguments>,
    part_ctas: u64,
    list: PartList,
}

/// The list of parts, and memory for their sums.
struct PartList {
    parts: DeviceBuffer<u64>,
    done: DeviceBuffer<u32>,
    partials: DeviceBuffer<u64>,
    number: DeviceBuffer<u64>,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        values: *const Value,
        x: *const Value,
        y: *mut Value,
        parts: *mut Part,
        /// Number of finished parts of a row, at the index of its first part.
        done: *mut u32,
        /// Sums of parts.
        partials: *mut Accum,
        /// Number of parts.
        part_number: *mut u64,
        part_ctas: u64,
        rows: u64,
        nonzeros: u64,
        slices: Slices,
        alpha: u64,
        beta: u64,
    }
}

/// The source with its parameters; `parts` if there may be a row to cut.
pub(crate) fn request(
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: Semiring,
    config: InOrder,
    parts: bool,
) -> Request {
    request!("spmv/segmented.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("SEMIRING", source::semiring(semiring))
        .with("LANES", config.lanes)
        .with("IN_FLIGHT", config.loads_in_flight)
        .with("THREADS", config.threads)
        .with("LIMIT", config.longest)
        .with("PART", config.part)
        .with("PARTS", parts)
}

impl Prepared {
    pub(super) fn new(pattern: &Pattern<'_>, p: &Problem, config: InOrder) -> Result<Self> {
        let fits = config.lanes.is_power_of_two()
            && config.lanes <= 32
            && (1..=8).contains(&config.loads_in_flight)
            && (32..=1024).contains(&config.threads)
            && config.threads.is_multiple_of(32)
            && config.longest > 0
            && config.part > 0;
        check_config(
            "config of segmented",
            &config,
            fits,
            "a power of two of at most 32 lanes, 1 to 8 loads in flight, whole warps \
                           of at most 1024 threads, parts and longest rows that are not empty",
        )?;
        let device = pattern.device();
        let module = |parts| {
            let types = (p.index_type, p.offset_type);
            device.module(&request(p.dtype, types, p.semiring, config, parts))
        };
        // Upper bound of the parts: rows just over the limit, and full parts.
        let most = p.nnz / config.longest as usize + p.nnz / config.part as usize;
        let list = PartList::new(device, most)?;
        let rows = p.output_rows() as u64;
        let mut number = [0];
        if most > 0 {
            let offsets = pattern.offsets;
            let arguments = Arguments { offsets, rows, ..list.arguments() };
            let grid = rows.div_ceil(u64::from(config.threads));
            // SAFETY: it reads the row offsets, which are valid, and writes the list, for which
            // there is memory.
            unsafe {
                let parts = module(true)?.kernel(c"segmented_parts")?;
                parts.launch(device.stream(), (grid, 1), config.threads, &arguments)?;
            }
            list.number.read(&mut number)?;
        }
        let part_ctas = number[0].div_ceil(u64::from(config.threads / 32));
        let kernel = module(part_ctas > 0)?.kernel(c"segmented")?;
        let list = if part_ctas > 0 { list } else { PartList::new(device, 0)? };
        Ok(Prepared { config, kernel, part_ctas, list })
    }
}

impl PartList {
    fn new(device: &Device, most: usize) -> Result<Self> {
        let mut number = DeviceBuffer::queued(device, 1, "number of parts")?;
        number.fill(0, device.stream())?;
        Ok(PartList {
            parts: DeviceBuffer::queued(device, most * ENTRY / 8, "parts of long rows")?,
            done: DeviceBuffer::queued(device, most, "parts that are summed")?,
            partials: DeviceBuffer::queued(device, most, "sums of parts")?,
            number,
        })
    }

    fn arguments(&self) -> Arguments {
        Arguments {
            parts: self.parts.address(),
            done: self.done.address(),
            partials: self.partials.address(),
            part_number: self.number.address(),
            ..Arguments::default()
        }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let words = [&self.list.parts, &self.list.partials, &self.list.number];
        words.iter().map(|b| b.bytes()).sum::<usize>() + self.list.done.bytes()
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.list.done.used_on(stream);
        for used in [&self.list.parts, &self.list.partials, &self.list.number] {
            used.used_on(stream);
        }
        let InOrder { lanes, threads, .. } = self.config;
        let ctas = self.part_ctas + (o.rows as u64).div_ceil(u64::from(threads / lanes));
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            x: o.b,
            y: o.c,
            rows: o.rows as u64,
            nonzeros: o.nnz as u64,
            slices: Slices::new(o, device, ctas),
            alpha: o.alpha,
            beta: o.beta,
            part_ctas: self.part_ctas,
            ..self.list.arguments()
        };
        // SAFETY: the list of parts is that of the pattern,
        // and the operands are the caller's promise.
        unsafe { self.kernel.launch_dependent(stream, (ctas, 1), threads, 0, &arguments) }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;
    use crate::matrix::DeviceCsr;
    use crate::schedule::items::matrices;

    /// Checks that every nonzero of a long row is in exactly one of the row's parts, which are
    /// consecutive and in order, and that other rows have none.
    fn check(offsets: &[u32], config: InOrder, parts: &[u64]) {
        let mut visits = vec![0; offsets[offsets.len() - 1] as usize];
        for (place, part) in parts.chunks_exact(ENTRY / 8).enumerate() {
            let (first, row, base) = (part[0], part[2] as usize, part[3] as usize);
            let (length, count) = (part[1] & 0xffff_ffff, part[1] >> 32);
            let (begin, end) = (u64::from(offsets[row]), u64::from(offsets[row + 1]));
            assert_eq!(count, (end - begin).div_ceil(u64::from(config.part)));
            assert_eq!(first, begin + (place - base) as u64 * u64::from(config.part));
            assert!(((place - base) as u64) < count && first + length <= end, "{part:?}");
            (first..first + length).for_each(|k| visits[k as usize] += 1);
        }
        for row in offsets.windows(2) {
            let long = u32::from(row[1] - row[0] > config.longest);
            assert!(visits[row[0] as usize..row[1] as usize].iter().all(|v| *v == long));
        }
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn parts_hold_every_nonzero_of_long_rows_once() {
        let device = Device::cuda(0).expect("a CUDA device");
        for offsets in matrices() {
            let (rows, nnz) = (offsets.len() - 1, offsets[offsets.len() - 1] as usize);
            let host = Csr::<f32>::new(rows, 1, offsets.clone(), vec![0u32; nnz], vec![1.0; nnz]);
            let a = DeviceCsr::upload(&device, &host.expect("A").view()).expect("A");
            let pattern = Pattern::new(a.pattern()).expect("a pattern");
            for (longest, part) in [(1, 1), (5, 7), (63, 256), (900, 64)] {
                let config = InOrder { lanes: 4, loads_in_flight: 4, threads: 64, longest, part };
                let made =
                    Prepared::new(&pattern, &a.pattern().spmv().problem, config).expect("parts");
                let mut number = [0];
                made.list.number.read(&mut number).expect("a number");
                let mut list = vec![0; number[0] as usize * (ENTRY / 8)];
                made.list.parts.read_at(0, &mut list).expect("parts");
                check(&offsets, config, &list);
            }
        }
    }
}
