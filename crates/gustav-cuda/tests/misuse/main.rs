//! What callers must not do, and what they need not care for: another pattern, wrong lengths, invalid
//! indices, streams and threads without order, memory dropped early, and sizes past 2^31.

mod graphs;
mod indices;
mod lengths;
mod patterns;
mod sizes;
mod streams;
mod threads;

use gustav_core::Csr;
use gustav_cuda::{
    Device, DeviceBuffer, DeviceCsr, DevicePattern, DeviceValues, Event, Graph, SpgemmPlan,
    SpmmPlan, SpmvPlan, Stream,
};

fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

/// A square matrix of small whole numbers, whose products every order of summation gives. `shift`
/// moves the columns, so that matrices of all shifts have as many nonzeros in other places.
fn whole(rows: usize, shift: usize) -> Csr<f32> {
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for r in 0..rows {
        let mut row: Vec<u32> =
            (0..r % 13).map(|k| ((r * 7 + k * 5 + shift) % rows) as u32).collect();
        row.sort_unstable();
        row.dedup();
        values.extend((0..row.len()).map(|k| ((r + k) % 7) as f32 - 3.0));
        indices.extend(row);
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows, rows, offsets, indices, values).expect("a matrix")
}

fn upload(device: &Device, host: &Csr<f32>) -> DeviceCsr<f32> {
    DeviceCsr::upload(device, &host.view()).expect("a matrix on the device")
}

fn vector(device: &Device, values: &[f32]) -> DeviceBuffer<f32> {
    DeviceBuffer::from_slice(device, values, "a vector").expect("memory")
}

/// Whole numbers that a few products of [`whole`] keep exact.
fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|k| (k % 5) as f32 - 2.0).collect()
}

/// A·x.
fn product(a: &Csr<f32>, x: &[f32]) -> Vec<f32> {
    let row = |r| {
        let (columns, values) = a.view().row(r);
        columns.iter().zip(values).map(|(j, v)| v * x[*j as usize]).sum()
    };
    (0..a.nrows()).map(row).collect()
}

/// Plans, graphs, buffers and streams may be sent to another thread; what is shared is only read.
#[test]
fn threads_may_have_them() {
    fn sent<T: Send>() {}
    fn shared<T: Sync>() {}
    sent::<SpmmPlan<f32>>();
    sent::<SpmvPlan<f64>>();
    sent::<SpgemmPlan<f32>>();
    sent::<Graph>();
    sent::<DeviceBuffer<f32>>();
    shared::<DeviceBuffer<f32>>();
    shared::<DeviceCsr<f32>>();
    shared::<DevicePattern>();
    shared::<DeviceValues<'_, f32>>();
    shared::<Stream>();
    shared::<Event>();
}
