//! Operands as other libraries hold them, and a device without its compiler.

use std::sync::Arc;

use bytemuck::Pod;
use gustav_core::{Csr, Dense, Error, Layout, Scalar, f16};
use gustav_cuda::jit::{Cache, Compiler, Jit, Request};
use gustav_cuda::spmm::{even_shares, row_block, segmented, tensor};
use gustav_cuda::{Call, Device, DeviceBuffer, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};

use crate::common::device;
use crate::papers::product;

/// A matrix of small whole numbers, whose products every order of summation gives.
fn whole(rows: usize, inner: usize) -> Csr<f32> {
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for r in 0..rows {
        for k in 0..r * 3 % 19 {
            indices.push(((r * 11 + k * 5) % inner) as u32);
            values.push(((r + k) % 7) as f32 - 3.0);
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows, inner, offsets, indices, values).expect("a matrix")
}

/// `values` on the device, `shift` values past the beginning of a buffer that is returned with them.
fn shifted<T: Default + Pod>(
    device: &Device,
    values: &[T],
    shift: usize,
) -> (DeviceBuffer<T>, DeviceBuffer<T>) {
    let mut padded = vec![T::default(); shift];
    padded.extend_from_slice(values);
    let owner = DeviceBuffer::from_slice(device, &padded, "shifted values").expect("memory");
    let address = owner.address() + (shift * size_of::<T>()) as u64;
    // SAFETY: the values lie in `owner`, which the caller keeps.
    let view = unsafe { DeviceBuffer::borrowed(device, address, values.len()) };
    (owner, view)
}

/// One product with every array `shift` values past an aligned address and odd leading dimensions.
fn check<T: Scalar>(device: &Device, algorithm: Algorithm, shift: usize, columns: usize) {
    let layout = match algorithm {
        Algorithm::OutputStationary | Algorithm::Dcsr => Layout::ColumnMajor,
        _ => Layout::RowMajor,
    };
    let (rows, inner) = (77, 60);
    // What a row is in one layout, a column is in the other.
    let length = |rows: usize| if layout == Layout::RowMajor { columns } else { rows };
    let (ld_b, ld_c) = (length(inner) + shift, length(rows) + shift);
    let host = whole(rows, inner);
    let b = Dense::from_fn(inner, columns, Layout::RowMajor, |i, j| ((i + 3 * j) % 5) as f32 - 2.0)
        .expect("B");
    let expected = product(&host, &b);
    let narrow = |v: &[f32]| -> Vec<T> { v.iter().map(|v| T::from_f64(f64::from(*v))).collect() };
    let b = b.to_layout(layout).expect("B");
    let mut strided = Vec::new();
    for line in b.data().chunks_exact(length(inner)) {
        strided.extend(narrow(line));
        strided.resize(strided.len() + shift, T::zero());
    }
    let (_offsets, offsets) = shifted(device, host.offsets(), 1);
    let (_indices, indices) = shifted(device, host.indices(), shift);
    let (_values, values) = shifted(device, &narrow(&host.values()), shift);
    let a = DeviceCsr::from_parts(rows, inner, offsets, indices, values).expect("A");
    let (_b, b) = shifted(device, &strided, shift);
    let b = DeviceDense::new(inner, columns, layout, ld_b, b).expect("B");
    let poison = vec![T::from_f64(f64::NAN); rows * columns / length(rows) * ld_c];
    let (_c, c) = shifted(device, &poison, shift);
    let mut c = DeviceDense::new(rows, columns, layout, ld_c, c).expect("C");
    let options = Options { chooser: Chooser::Named(algorithm), config: None, order: None };
    let problem = a.pattern().spmm(columns).problem.layouts(layout, layout).finite(true);
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    plan.execute(&a, &b, &mut c, Call::new().alpha(one).beta(zero)).expect("C");
    let found = c.data().to_host().expect("C");
    for (i, line) in found.chunks_exact(ld_c).enumerate() {
        for (k, value) in line.iter().enumerate() {
            if k < length(rows) {
                let (r, j) = if layout == Layout::RowMajor { (i, k) } else { (k, i) };
                let wanted = f64::from(expected[r * columns + j]);
                assert_eq!(value.to_f64(), wanted, "{algorithm} shift {shift} ({r}, {j})");
            } else {
                assert!(value.to_f64().is_nan(), "{algorithm} wrote beyond line {i}");
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn addresses_and_leading_dimensions_need_no_alignment() {
    let device = device();
    let all = [
        Algorithm::Segmented,
        Algorithm::RowBlock,
        Algorithm::ColumnPanel,
        Algorithm::BStationary,
        Algorithm::EvenShares,
        Algorithm::ThreadRow,
        Algorithm::RowSplit,
        Algorithm::NonzeroSplit,
        Algorithm::MergePath,
        Algorithm::SellP,
        Algorithm::EllR,
        Algorithm::HeavyLight,
        Algorithm::OutputStationary,
        Algorithm::Dcsr,
        Algorithm::Dense,
        Algorithm::Vendor,
    ];
    for algorithm in all {
        for (shift, columns) in [(1, 32), (2, 64), (3, 33), (1, 1)] {
            check::<f32>(&device, algorithm, shift, columns);
        }
    }
    let of_16_bits = [
        Algorithm::Segmented,
        Algorithm::RowBlock,
        Algorithm::ColumnPanel,
        Algorithm::BStationary,
        Algorithm::Tensor,
    ];
    for algorithm in of_16_bits {
        for (shift, columns) in [(1, 32), (2, 64), (4, 128), (3, 33)] {
            check::<f16>(&device, algorithm, shift, columns);
        }
    }
}

/// A grid has 65,535 CTAs in y, and there are more strips and panels of columns than that.
#[test]
#[ignore = "needs a CUDA device"]
fn there_are_more_strips_of_columns_than_a_grid_has() {
    use gustav_cuda::Config::{EvenShares, RowBlock, Segmented, Tensor};
    let device = device();
    let (host, columns) = (whole(9, 7), 32 * 65_536 + 5);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let b = Dense::from_fn(7, columns, Layout::RowMajor, |i, j| ((i + 3 * j) % 5) as f32 - 2.0)
        .expect("B");
    let expected = product(&host, &b);
    let b = DeviceDense::upload(&device, &b.view()).expect("B");
    let narrow = segmented::Config {
        vector: 1,
        lanes: 4,
        tiles: 1,
        subgroups: 2,
        warps: 1,
        chunk: 2,
        segments_per_group: 1,
        at_once: false,
        prefetch_b: false,
        stages: 0,
        prefetch_a: false,
        longest: None,
        first: 32,
        window: 1024,
        reduction: segmented::Reduction::FixUp,
        block: 64,
        resident: 384,
    };
    let (vector, lanes, tiles, block, resident) = (1, 8, 1, 64, 384);
    let shares = even_shares::Config { vector, lanes, tiles, chunk: 4, work: 16, block, resident };
    let blocks = row_block::Config {
        rows: 2,
        vector,
        lanes,
        tiles,
        subgroups: 1,
        unroll: 2,
        block,
        resident,
    };
    let cta_per_segment = segmented::Config { subgroups: 8, warps: 2, ..narrow };
    let configured = [
        Segmented(narrow),
        Segmented(cta_per_segment),
        EvenShares(shares),
        RowBlock(blocks),
        Tensor(tensor::Config { panel: 16, warps: 4, subgroups: 1, resident }),
    ];
    let named = [
        Algorithm::RowSplit,
        Algorithm::ThreadRow,
        Algorithm::NonzeroSplit,
        Algorithm::MergePath,
        Algorithm::SellP,
        Algorithm::EllR,
        Algorithm::HeavyLight,
    ];
    let named = named.map(|a| Options { chooser: Chooser::Named(a), ..Options::default() });
    let configured = configured.map(|c| Options { config: Some(c), ..Options::default() });
    for options in named.into_iter().chain(configured) {
        let problem = a.pattern().spmm(columns).problem.tf32(true);
        let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
        let mut c = DeviceDense::zeros(&device, 9, columns, Layout::RowMajor).expect("C");
        c.data_mut().fill(0xff, device.stream()).expect("NaN");
        plan.execute(&a, &b, &mut c, Call::new()).expect("C");
        assert!(c.data().to_host().expect("C")[..] == expected, "{}", plan.choice().algorithm);
    }
}

struct Missing;

impl Compiler for Missing {
    fn version(&self) -> gustav_core::Result<String> {
        Err(Error::NoDevice { reason: "libnvrtc was not found".into() })
    }

    fn compile(&self, _: &Request, _: &str) -> gustav_core::Result<Vec<u8>> {
        self.version().map(|_| Vec::new())
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_device_without_its_compiler_says_so() {
    let jit = Jit::new(Arc::new(Missing), Cache::new(None));
    let device = Device::with_jit(0, jit).expect("a CUDA device");
    let a = DeviceCsr::upload(&device, &whole(5, 4).view()).expect("A");
    let error =
        SpmmPlan::<f32>::new(a.pattern(), &a.pattern().spmm(1).problem, &Options::default())
            .err()
            .expect("no compiler");
    assert!(matches!(error, Error::NoDevice { .. }), "{error}");
    assert!(error.to_string().contains("libnvrtc"), "{error}");
}
