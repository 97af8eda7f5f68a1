//! Sizes past 2^31.

use gustav_core::{Error, Layout};
use gustav_cuda::{
    Call, Device, DeviceBuffer, DeviceCsr, DeviceDense, SpgemmCall, SpgemmPlan, SpmmPlan, SpmvPlan,
    spgemm, spmm, spmv,
};
use gustav_plan::{Algorithm, Chooser};

use crate::device;

/// More nonzeros than 2^31, of two columns.
const NNZ: usize = (1 << 31) + 1234;
/// Where rows begin: two have about 2^30 nonzeros.
const OFFSETS: [u64; 7] = [0, 3, 5, 1 << 30, 1 << 31, NNZ as u64 - 7, NNZ as u64];
/// Values and columns that are not as all others, at both ends of what 31 and 32 bits count.
const PLACES: [usize; 6] = [0, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, NNZ - 1];

fn indices(device: &Device) -> DeviceBuffer<u32> {
    let indices = DeviceBuffer::<u32>::zeros(device, NNZ, "indices").expect("8.6 GB");
    for place in PLACES {
        set(device, &indices, place, 1);
    }
    indices
}

/// Writes one value of a large buffer.
fn set<T: bytemuck::Pod>(device: &Device, buffer: &DeviceBuffer<T>, place: usize, value: T) {
    device.stream().synchronize().expect("the buffer");
    let address = buffer.address() + (place * size_of::<T>()) as u64;
    // SAFETY: the place lies in the buffer, which lives, and nothing else is queued on it.
    let mut one = unsafe { DeviceBuffer::<T>::borrowed(device, address, 1) };
    one.write(&[value]).expect("a value");
}

/// A matrix of 17.2 GB: the value 0x01010101, and 2 and more in column 1 at some places.
fn matrix(device: &Device) -> DeviceCsr<i32, u32, u64> {
    let offsets = DeviceBuffer::from_slice(device, &OFFSETS, "offsets").expect("offsets");
    let mut values = DeviceBuffer::<i32>::zeros(device, NNZ, "values").expect("8.6 GB");
    values.fill(1, device.stream()).expect("ones in every byte");
    for (k, place) in PLACES.into_iter().enumerate() {
        set(device, &values, place, 2 + k as i32);
    }
    DeviceCsr::from_parts(OFFSETS.len() - 1, 2, offsets, indices(device), values).expect("A")
}

/// Sums of the rows, for factors of the two columns.
fn sums(factors: [i32; 2]) -> Vec<i32> {
    let row = |ends: &[u64]| {
        let special = |place: &usize| (ends[0]..ends[1]).contains(&(*place as u64));
        let others =
            (ends[1] - ends[0]) as i32 - PLACES.iter().filter(|p| special(p)).count() as i32;
        let usual = others.wrapping_mul(0x0101_0101).wrapping_mul(factors[0]);
        let named = PLACES.iter().enumerate().filter(|(_, place)| special(place));
        named.fold(usual, |sum, (k, _)| sum.wrapping_add((2 + k as i32) * factors[1]))
    };
    OFFSETS.windows(2).map(row).collect()
}

#[test]
#[ignore = "needs a CUDA device with 20 GB"]
fn segmented_takes_more_nonzeros_than_31_bits_count() {
    let device = device();
    let a = matrix(&device);
    let rows = a.nrows();
    let b = [3, 4, 5, 6, -1, -2, -3, -4];
    let data = DeviceBuffer::from_slice(&device, &b, "B").expect("B");
    let b_there = DeviceDense::new(2, 4, Layout::RowMajor, 4, data).expect("B");
    let mut c = DeviceDense::zeros(&device, rows, 4, Layout::RowMajor).expect("C");
    let chooser = Chooser::Named(Algorithm::Segmented);
    for calls in [1, 100] {
        let options = spmm::Options { chooser, ..spmm::Options::default() };
        let problem = a.pattern().spmm(4).problem.calls(calls);
        let mut plan = SpmmPlan::<i32>::new(a.pattern(), &problem, &options).expect("a plan");
        c.data_mut().fill(0xff, device.stream()).expect("poison");
        plan.execute(&a, &b_there, &mut c, Call::new()).expect("C");
        let found = c.data().to_host().expect("C");
        for j in 0..4 {
            let column: Vec<i32> = (0..rows).map(|i| found[4 * i + j]).collect();
            assert_eq!(column, sums([b[j], b[4 + j]]), "column {j} of {calls} calls");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device with 20 GB"]
fn segmented_takes_more_values_of_c_than_31_bits_count() {
    let device = device();
    let (rows, columns) = (1 << 20, 2100);
    let offsets: Vec<u64> = (0..=rows as u64).collect();
    let indices: Vec<u32> = (0..rows as u32).map(|r| r % 3).collect();
    let values: Vec<f32> = (0..rows).map(|r| (r % 1000) as f32).collect();
    let a = gustav_core::Csr::new(rows, 3, offsets, indices, values).expect("A");
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let b: Vec<f32> = (0..3 * columns).map(|k| (k % 17) as f32).collect();
    let data = DeviceBuffer::from_slice(&device, &b, "B").expect("B");
    let b_there = DeviceDense::new(3, columns, Layout::RowMajor, columns, data).expect("B");
    let chooser = Chooser::Named(Algorithm::Segmented);
    let options = spmm::Options { chooser, ..spmm::Options::default() };
    let problem = a.pattern().spmm(columns).problem;
    let mut plan = SpmmPlan::<f32>::new(a.pattern(), &problem, &options).expect("a plan");
    let c = plan.execute_new(&a, &b_there, Call::new()).expect("C of 8.8 GB");
    let of_32_bits = (1usize << 31) / columns;
    for r in [0, 1, of_32_bits - 1, of_32_bits, of_32_bits + 1, rows - 2, rows - 1] {
        let mut row = vec![0.0; columns];
        c.data().read_at(r * columns, &mut row).expect("a row");
        let (factor, b) = ((r % 1000) as f32, &b[r % 3 * columns..][..columns]);
        assert!(row.iter().zip(b).all(|(c, b)| *c == factor * b), "row {r}");
    }
}

#[test]
#[ignore = "needs a CUDA device with 20 GB"]
fn spmv_takes_more_nonzeros_than_31_bits_count() {
    let device = device();
    let a = matrix(&device);
    let x = [3, -7];
    let x_there = DeviceBuffer::from_slice(&device, &x, "x").expect("x");
    let mut y = DeviceBuffer::<i32>::zeros(&device, a.nrows(), "y").expect("y");
    let named = [Algorithm::Segmented, Algorithm::EvenShares];
    for chooser in [Chooser::Auto].into_iter().chain(named.map(Chooser::Named)) {
        let options = spmv::Options { chooser, config: None };
        let problem = a.pattern().spmv().problem.calls(100);
        let mut plan = SpmvPlan::<i32>::new(a.pattern(), &problem, &options).expect("a plan");
        y.fill(0xff, device.stream()).expect("poison");
        plan.execute(&a, &x_there, &mut y, Call::new()).expect("y");
        assert_eq!(y.to_host().expect("y")[..], sums(x), "{chooser}");
    }
}

/// A column times a row: every entry of C has one product, and there are more than 2^31 of them.
#[test]
#[ignore = "needs a CUDA device with 32 GB"]
fn spgemm_takes_more_entries_of_c_than_31_bits_count() {
    let device = device();
    let (rows, columns) = (70_000usize, 31_000usize);
    let upload = |nrows, ncols, offsets: Vec<u64>, indices: Vec<u32>, values: Vec<f32>| {
        let host = gustav_core::Csr::new(nrows, ncols, offsets, indices, values);
        DeviceCsr::upload(&device, &host.expect("a matrix").view()).expect("memory")
    };
    let (a_of, b_of) = (|i: usize| (1 + i % 251) as f32, |j: usize| (1 + j % 241) as f32);
    let offsets = (0..=rows as u64).collect();
    let a = upload(rows, 1, offsets, vec![0; rows], (0..rows).map(a_of).collect());
    let all = (0..columns as u32).collect();
    let b = upload(1, columns, vec![0, columns as u64], all, (0..columns).map(b_of).collect());
    let chooser = Chooser::Named(Algorithm::Binned);
    let options = spgemm::Options { chooser, ..spgemm::Options::default() };
    let mut plan = SpgemmPlan::<f32, u32, u64>::new(
        a.pattern(),
        b.pattern(),
        &a.pattern().spgemm(b.pattern()).problem,
        &options,
    )
    .expect("a plan");
    let mut c = plan.execute(&a, &b, SpgemmCall::new()).expect("C of 17.4 GB");
    assert_eq!(c.nnz(), rows * columns);
    let check = |c: &DeviceCsr<f32, u32, u64>| {
        let of_32_bits = (1usize << 31) / columns;
        for i in [0, 1, of_32_bits - 1, of_32_bits, of_32_bits + 1, rows - 2, rows - 1] {
            let (mut places, mut values) = (vec![0; columns], vec![0.0; columns]);
            c.indices().read_at(i * columns, &mut places).expect("columns of a row");
            c.values().read_at(i * columns, &mut values).expect("values of a row");
            assert!(places.iter().enumerate().all(|(j, place)| *place as usize == j), "row {i}");
            let product = |(j, value): (usize, &f32)| *value == a_of(i) * b_of(j);
            assert!(values.iter().enumerate().all(product), "row {i}");
        }
    };
    check(&c);
    c.values_mut().fill(0xff, device.stream()).expect("poison");
    plan.execute_into(&a, &b, &mut c, SpgemmCall::new()).expect("new values");
    check(&c);
}

/// More entries than 32-bit offsets count are refused, and the device stays usable.
#[test]
#[ignore = "needs a CUDA device"]
fn entries_that_offsets_cannot_count_are_refused() {
    let device = device();
    let n = 70_000u32;
    let column = gustav_core::Csr::<f32>::new(
        n as usize,
        1,
        (0..=n).collect::<Vec<u32>>(),
        vec![0u32; n as usize],
        vec![1.0; n as usize],
    );
    let row = column.as_ref().expect("a column").view().transpose().expect("a row");
    let a = DeviceCsr::upload(&device, &column.expect("a column").view()).expect("A");
    let b = DeviceCsr::upload(&device, &row.view()).expect("B");
    let chooser = Chooser::Named(Algorithm::Binned);
    let options = spgemm::Options { chooser, ..spgemm::Options::default() };
    let refused = SpgemmPlan::<f32>::new(
        a.pattern(),
        b.pattern(),
        &a.pattern().spgemm(b.pattern()).problem,
        &options,
    )
    .err();
    assert!(matches!(refused, Some(Error::Overflow { .. })), "{refused:?}");
    device.stream().synchronize().expect("a usable device");
}

/// The place of an invalid index past 2^31.
#[test]
#[ignore = "needs a CUDA device with 10 GB"]
fn an_invalid_index_past_31_bits_is_named() {
    let device = device();
    let indices = indices(&device);
    let wrong = (1usize << 31) + 77;
    set(&device, &indices, wrong, 2);
    set(&device, &indices, wrong + 5, 9);
    let offsets = DeviceBuffer::from_slice(&device, &OFFSETS, "offsets").expect("offsets");
    let refused = gustav_cuda::DevicePattern::new(OFFSETS.len() - 1, 2, offsets, indices);
    match refused {
        Err(Error::Index { row: 4, position, value: 2, bound: 2 }) => assert_eq!(position, wrong),
        other => panic!("{other:?}"),
    }
}
