//! SpGEMM on the device against the oracle, one file per algorithm.

use gustav_core::{Csr, Index, Result, Scalar, StaticSemiring};
use gustav_cuda::spgemm::{Options, SpgemmPlan};
use gustav_cuda::{Device, DeviceCsr, SpgemmCall};
use gustav_testkit::battery::{Settings, SpgemmCase, check_spgemm};

mod add;
mod binned;
mod dense_naive;
mod dense_output;
mod masked;
mod pipeline;
mod properties;
mod reuse;
mod shared_row;
mod tiled;
mod vendor;

#[path = "../common/graph.rs"]
mod graph;

/// The first device; these tests are ignored where there is none.
fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

/// One case of the battery, on a stream of its own.
fn run<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    device: &Device,
    options: &Options,
    case: &SpgemmCase<'_, T, I, O>,
) -> Result<Csr<T, I, O>> {
    let (a, b) = (DeviceCsr::upload(device, &case.a)?, DeviceCsr::upload(device, &case.b)?);
    let problem = a.pattern().spgemm(b.pattern()).problem.sorted(case.sorted).semiring(S::KIND);
    let mut plan = SpgemmPlan::new(a.pattern(), b.pattern(), &problem, options)?;
    let stream = device.new_stream()?;
    let c = plan.execute(&a, &b, SpgemmCall::new().on(&stream))?;
    stream.synchronize()?;
    c.download()
}

/// The battery for the types and the semiring.
fn battery<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    settings: &Settings,
    options: &Options,
) {
    let device = device();
    check_spgemm::<T, I, O, S>(settings, |case| run::<T, I, O, S>(&device, options, &case));
}

/// Whether both are the same to the bit, but for the bits of NaN.
fn same<T: Scalar, I: Index, O: Index>(left: &Csr<T, I, O>, right: &Csr<T, I, O>) -> bool {
    let is_nan = |v: &T| v.partial_cmp(v).is_none();
    let alike = |(l, r): (&T, &T)| {
        bytemuck::bytes_of(l) == bytemuck::bytes_of(r) || (is_nan(l) && is_nan(r))
    };
    (left.offsets(), left.indices()) == (right.offsets(), right.indices())
        && left.values().iter().zip(right.values()).all(alike)
}
