//! Test of `kernels/schedule/even_shares.cuh`: the items of a matrix are its row starts and its
//! nonzeros; the search on the device finds the row of every item, compared with a model on the
//! host.

use gustav_core::Result;

use super::partitions::patterns;
use crate::device::{Device, DeviceBuffer};
use crate::jit::Request;

const THREADS: u32 = 64;

/// The source for groups of `lanes` lanes.
pub(crate) fn request(lanes: u32) -> Request {
    request!("schedule/items.cu").with_block::<Arguments>().with("LANES", lanes)
}

/// The row of every item, from a pass over the rows.
pub(crate) fn model(offsets: &[u32]) -> Vec<u32> {
    let rows = offsets.windows(2).enumerate();
    rows.flat_map(|(r, ends)| vec![r as u32; (ends[1] - ends[0]) as usize + 1]).collect()
}

/// Checks that every row start and every nonzero is exactly one item.
fn check(offsets: &[u32], rows_of: &[u32]) {
    let (mut starts, mut visits) = (vec![0; offsets.len() - 1], vec![0; nonzeros(offsets)]);
    for (item, row) in rows_of.iter().map(|r| *r as usize).enumerate() {
        match item - row - offsets[row] as usize {
            0 => starts[row] += 1,
            past => visits[offsets[row] as usize + past - 1] += 1,
        }
    }
    assert!(starts.iter().chain(&visits).all(|count| *count == 1));
}

/// Row offsets of test matrices.
pub(crate) fn matrices() -> Vec<Vec<u32>> {
    let mut all = patterns();
    all.iter_mut().for_each(|offsets| offsets[0] = 0);
    all
}

fn nonzeros(offsets: &[u32]) -> usize {
    offsets[offsets.len() - 1] as usize
}

#[test]
fn items_of_the_model_are_row_starts_and_nonzeros() {
    for offsets in matrices() {
        check(&offsets, &model(&offsets));
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_device_finds_the_row_of_every_item() {
    let device = Device::cuda(0).expect("a CUDA device");
    for offsets in matrices() {
        for lanes in [1, 4, 8, 32] {
            let found = search(&device, &offsets, lanes).expect("the device");
            assert_eq!(found, model(&offsets), "{lanes} lanes");
            check(&offsets, &found);
        }
    }
}

parameter_block! {
    struct Arguments {
        offsets: *const u32,
        rows_of: *mut u32,
        items: u64,
        rows: u64,
        nonzeros: u64,
    }
}

/// Rows of all items as the device finds them.
fn search(device: &Device, offsets: &[u32], lanes: u32) -> Result<Vec<u32>> {
    let items = offsets.len() - 1 + nonzeros(offsets);
    let on_device = DeviceBuffer::from_slice(device, offsets, "offsets")?;
    let rows_of = DeviceBuffer::from_slice(device, &vec![u32::MAX; items], "rows of items")?;
    let arguments = Arguments {
        offsets: on_device.address(),
        rows_of: rows_of.address(),
        items: items as u64,
        rows: offsets.len() as u64 - 1,
        nonzeros: nonzeros(offsets) as u64,
    };
    if items > 0 {
        let kernel = device.module(&request(lanes))?.kernel(c"items")?;
        let ctas = arguments.items.div_ceil(u64::from(THREADS / lanes));
        // SAFETY: both arrays live until they are read.
        unsafe { kernel.launch(device.stream(), (ctas, 1), THREADS, &arguments)? };
    }
    Ok(rows_of.to_host()?.to_vec())
}
