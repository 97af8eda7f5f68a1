//! Test of `kernels/schedule/partitions.cuh` and of whole rows: every nonzero and every row end is
//! in exactly one partition, in a model on the CPU and on the device.

use gustav_core::Result;

use super::items::matrices;
use crate::device::{Device, DeviceBuffer};
use crate::jit::Request;

const THREADS: u32 = 64;
const SCHEDULES: [(&str, Boundaries); 2] =
    [("nonzero_split", nonzero_split), ("merge_path", merge_path)];

type Boundaries = fn(&[u32], usize) -> Vec<(usize, usize)>;

/// The source with its parameters.
pub(crate) fn request(schedule: &str, items: u32) -> Request {
    request!("schedule/coverage.cu")
        .with_block::<Arguments>()
        .with("SCHEDULE", schedule)
        .with("THREADS", THREADS)
        .with("ITEMS", items)
}

/// Boundaries (row, nonzero) of partitions of `size` nonzeros.
fn nonzero_split(offsets: &[u32], size: usize) -> Vec<(usize, usize)> {
    let (rows, nonzeros) = (offsets.len() - 1, offsets[offsets.len() - 1] as usize);
    let partitions = nonzeros.div_ceil(size).max(1);
    let boundary = |i| match i * size {
        0 => (0, 0),
        _ if i == partitions => (rows, nonzeros),
        at => (offsets[1..].partition_point(|end| *end as usize <= at), at),
    };
    (0..=partitions).map(boundary).collect()
}

/// Boundaries of partitions of `size` row ends and nonzeros, from a sequential merge.
fn merge_path(offsets: &[u32], size: usize) -> Vec<(usize, usize)> {
    let (rows, nonzeros) = (offsets.len() - 1, offsets[offsets.len() - 1] as usize);
    let (mut row, mut nonzero, mut found) = (0, 0, vec![(0, 0)]);
    for step in 1..=rows + nonzeros {
        // A row ends after all of its nonzeros.
        if row < rows && offsets[row + 1] as usize <= nonzero {
            row += 1;
        } else {
            nonzero += 1;
        }
        if step % size == 0 || step == rows + nonzeros {
            found.push((row, nonzero));
        }
    }
    if found.len() == 1 {
        found.push((0, 0));
    }
    found
}

/// Row offsets of matrices that are hard to partition.
pub(crate) fn patterns() -> Vec<Vec<u32>> {
    let hub = vec![0, 0, 3, 3, 1003, 1010, 1010];
    let ragged = (0..300u32).map(|r| r * r / 7).collect();
    let empty_run = (0..2000u32).map(|r| if r < 1700 { 5 } else { r - 1695 }).collect();
    let all_empty = vec![0; 777];
    let even = (0..=128u32).map(|r| 64 * r).collect();
    vec![hub, ragged, empty_run, all_empty, even, vec![0], vec![0, 0], vec![0, 1]]
}

fn row_of(offsets: &[u32], nonzero: usize) -> usize {
    offsets[1..].partition_point(|end| *end as usize <= nonzero)
}

#[test]
fn the_model_takes_everything_once() {
    for offsets in patterns() {
        let end = (offsets.len() - 1, offsets[offsets.len() - 1] as usize);
        for (name, boundaries) in SCHEDULES {
            for size in [1, 7, 64, 128] {
                let found = boundaries(&offsets, size);
                assert_eq!((found[0], found[found.len() - 1]), ((0, 0), end), "{name}");
                for pair in found.windows(2) {
                    let ((r0, x0), (r1, x1)) = (pair[0], pair[1]);
                    assert!(r0 <= r1 && x0 <= x1, "{name} goes back");
                    let work = if name == "merge_path" { r1 - r0 + x1 - x0 } else { x1 - x0 };
                    assert!(work <= size, "{name}: a partition of {work}");
                    // Nonzeros of a partition lie in its rows or in the row cut at its end.
                    for x in x0..x1 {
                        assert!((r0..=r1).contains(&row_of(&offsets, x)), "{name}");
                    }
                }
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_device_takes_everything_once() {
    let device = Device::cuda(0).expect("a CUDA device");
    for offsets in patterns() {
        for (name, boundaries) in SCHEDULES {
            for items in [1, 5] {
                let model = boundaries(&offsets, (THREADS * items) as usize);
                check(&device, &offsets, name, items, &model).expect("the device");
            }
        }
    }
}

parameter_block! {
    struct Arguments {
        offsets: *const u32,
        boundaries: *mut schedule::Boundary,
        /// Visits of each nonzero.
        visits: *mut u32,
        /// Row for which each nonzero was visited.
        rows_of: *mut u32,
        /// Partitions that each row ends in.
        row_ends: *mut u32,
        partitions: u64,
        rows: u64,
        nonzeros: u64,
    }
}

/// Checks that the kernels launched by `launch` count every nonzero and every row end once, for the
/// right row; returns the boundaries that they write.
fn counted(
    device: &Device,
    offsets: &[u32],
    (name, boundaries): (&str, usize),
    launch: impl FnOnce(&Arguments) -> Result<()>,
) -> Result<Vec<(usize, usize)>> {
    let (rows, nonzeros) = (offsets.len() - 1, offsets[offsets.len() - 1] as usize);
    let zeros = |len| DeviceBuffer::from_slice(device, &vec![0u32; len], "counts");
    let on_device = DeviceBuffer::from_slice(device, offsets, "offsets")?;
    let found = DeviceBuffer::<u64>::uninit(device, boundaries, "boundaries")?;
    let (visits, rows_of, row_ends) = (zeros(nonzeros)?, zeros(nonzeros)?, zeros(rows)?);
    launch(&Arguments {
        offsets: on_device.address(),
        boundaries: found.address(),
        visits: visits.address(),
        rows_of: rows_of.address(),
        row_ends: row_ends.address(),
        partitions: boundaries.saturating_sub(1) as u64,
        rows: rows as u64,
        nonzeros: nonzeros as u64,
    })?;
    assert!(visits.to_host()?.iter().all(|v| *v == 1), "{name}");
    assert!(row_ends.to_host()?.iter().all(|v| *v == 1), "{name}");
    for (x, row) in rows_of.to_host()?.iter().enumerate() {
        assert_eq!(*row as usize, row_of(offsets, x), "{name}, nonzero {x}");
    }
    let pair = |b: &u64| ((b & 0xffff_ffff) as usize, (b >> 32) as usize);
    Ok(found.to_host()?.iter().map(pair).collect())
}

fn check(
    device: &Device,
    offsets: &[u32],
    name: &str,
    items: u32,
    model: &[(usize, usize)],
) -> Result<()> {
    let module = device.module(&request(name, items))?;
    let (search, cover) = (module.kernel(c"boundaries")?, module.kernel(c"coverage")?);
    let grid = (model.len() as u64).div_ceil(u64::from(THREADS));
    let found = counted(device, offsets, (name, model.len()), |arguments| {
        // SAFETY: all arrays live until they are read.
        unsafe {
            search.launch(device.stream(), (grid, 1), THREADS, arguments)?;
            cover.launch(device.stream(), (arguments.partitions, 1), THREADS, arguments)
        }
    })?;
    assert_eq!(found, model, "{name} with {items} items");
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn whole_rows_take_everything_once() {
    let device = Device::cuda(0).expect("a CUDA device");
    let module = device.module(&request("merge_path", 1)).expect("a module");
    let kernel = module.kernel(c"rows").expect("a kernel");
    for offsets in matrices() {
        let grid = (offsets.len() as u64 - 1).div_ceil(u64::from(THREADS));
        // SAFETY: all arrays live until they are read.
        let launch =
            |a: &Arguments| unsafe { kernel.launch(device.stream(), (grid, 1), THREADS, a) };
        counted(&device, &offsets, ("rows", 0), launch).expect("the device");
    }
}
