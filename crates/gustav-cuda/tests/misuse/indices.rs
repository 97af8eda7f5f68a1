//! Invalid arrays, refused where they lie with the place that the host would name.

use gustav_core::{Error, Index, Pattern};
use gustav_cuda::{Device, DeviceBuffer, DeviceCsr, DevicePattern};

use crate::device;

/// The device says what the host says.
fn check<I: Index, O: Index>(
    device: &Device,
    (nrows, ncols): (usize, usize),
    offsets: &[usize],
    indices: &[usize],
) -> bool {
    let offsets: Vec<O> = offsets.iter().map(|o| O::truncate(*o)).collect();
    let indices: Vec<I> = indices.iter().map(|i| I::truncate(*i)).collect();
    let there = (
        DeviceBuffer::from_slice(device, &offsets, "offsets").expect("memory"),
        DeviceBuffer::from_slice(device, &indices, "indices").expect("memory"),
    );
    // SAFETY: the arrays outlive the patterns, and nobody writes them.
    let borrowed = unsafe {
        (
            DeviceBuffer::<O>::borrowed(device, there.0.address(), offsets.len()),
            DeviceBuffer::<I>::borrowed(device, there.1.address(), indices.len()),
        )
    };
    let expected =
        Pattern::new(nrows, ncols, offsets, indices).map(drop).map_err(|e| format!("{e:?}"));
    let found = DevicePattern::new(nrows, ncols, borrowed.0, borrowed.1);
    let found = found.map(drop).map_err(|e| format!("{e:?}"));
    assert_eq!(found, expected);
    let values = DeviceBuffer::<f32>::zeros(device, there.1.len(), "values").expect("memory");
    let whole = DeviceCsr::from_parts(nrows, ncols, there.0, there.1, values);
    assert_eq!(whole.map(drop).map_err(|e| format!("{e:?}")), expected);
    expected.is_ok()
}

fn check_all(device: &Device, shape: (usize, usize), offsets: &[usize], indices: &[usize]) -> bool {
    let found = check::<u32, u32>(device, shape, offsets, indices);
    assert_eq!(found, check::<u64, u32>(device, shape, offsets, indices));
    assert_eq!(found, check::<u32, u64>(device, shape, offsets, indices));
    assert_eq!(found, check::<u64, u64>(device, shape, offsets, indices));
    found
}

#[test]
#[ignore = "needs a CUDA device"]
fn invalid_arrays_are_refused_with_the_place() {
    let device = device();
    let right: [(_, &[usize], &[usize]); 5] = [
        ((0, 0), &[0], &[]),
        ((0, 9), &[0], &[]),
        ((3, 0), &[0, 0, 0, 0], &[]),
        ((3, 4), &[0, 2, 2, 5], &[3, 0, 1, 1, 2]),
        ((1, 1), &[0, 3], &[0, 0, 0]),
    ];
    for (shape, offsets, indices) in right {
        assert!(check_all(&device, shape, offsets, indices), "{shape:?}");
    }
    let wrong: [(_, &[usize], &[usize]); 10] = [
        // Numbers of offsets.
        ((3, 4), &[0, 2, 2], &[3, 0]),
        ((1, 4), &[0, 2, 2], &[3, 0]),
        // The first and the last offset.
        ((2, 4), &[1, 2, 2], &[3, 0]),
        ((2, 4), &[0, 2, 3], &[3, 0]),
        ((2, 4), &[0, 1, 1], &[3, 0]),
        // Offsets that go back, in the middle and past the end.
        ((4, 4), &[0, 2, 1, 1, 2], &[3, 0]),
        ((3, 4), &[0, 900, 1, 2], &[3, 0]),
        // Indices.
        ((2, 4), &[0, 1, 2], &[3, 4]),
        ((4, 4), &[0, 0, 0, 2, 2], &[9, 9]),
        ((1, 0), &[0, 1], &[0]),
    ];
    for (shape, offsets, indices) in wrong {
        assert!(!check_all(&device, shape, offsets, indices), "{shape:?} {offsets:?} {indices:?}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_first_of_many_wrong_places_is_named() {
    let device = device();
    let (rows, columns, each) = (100_000, 5000, 11);
    let offsets: Vec<usize> = (0..=rows).map(|r| r * each).collect();
    let indices: Vec<usize> = (0..rows * each).map(|k| k * 7 % columns).collect();
    assert!(check::<u32, u32>(&device, (rows, columns), &offsets, &indices));
    let mut state = 1usize;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % bound
    };
    for _ in 0..10 {
        let mut indices = indices.clone();
        for _ in 0..=below(50) {
            let place = below(indices.len());
            indices[place] = columns + below(9);
        }
        assert!(!check::<u32, u32>(&device, (rows, columns), &offsets, &indices));
        let mut offsets = offsets.clone();
        for _ in 0..=below(50) {
            let place = 1 + below(rows - 1);
            offsets[place] += each + 1 + below(9);
        }
        assert!(!check::<u32, u64>(&device, (rows, columns), &offsets, &indices));
    }
}

/// A graph that writes memory cannot change a pattern: the memory is refused.
#[test]
#[ignore = "needs a CUDA device"]
fn memory_that_a_graph_writes_is_no_pattern() {
    let device = device();
    let stream = device.new_stream().expect("a stream");
    let buffer = |values: &[u32]| DeviceBuffer::from_slice(&device, values, "a pattern");
    let (offsets, mut indices) = (buffer(&[0, 1]).expect("memory"), buffer(&[0]).expect("memory"));
    let graph = gustav_cuda::Graph::capture(&stream, || indices.fill(0xff, &stream));
    let graph = graph.expect("a graph");
    let refused = DevicePattern::new(1, 1, offsets, indices);
    assert!(matches!(refused, Err(Error::Argument { .. })), "{refused:?}");
    drop(graph);
    let arrays = (buffer(&[0, 1]).expect("memory"), buffer(&[0]).expect("memory"));
    DevicePattern::new(1, 1, arrays.0, arrays.1).expect("a pattern");
}
