//! Products with a vector on the device against the oracle, one file per algorithm.

mod merge_path;
mod nonzero_split;
mod row_split;
mod segmented;
mod vendor;

use gustav_core::{Error, Index, PlusTimes, Result, Scalar, Semiring};
use gustav_cuda::spmv::{Config, Options};
use gustav_cuda::{Device, DeviceBuffer, DeviceCsr, SpmvPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, SpmvCase, check_spmv};

fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

fn named(algorithm: Algorithm, config: Option<Config>) -> Options {
    Options { chooser: Chooser::Named(algorithm), config }
}

/// One case of the battery, on a stream of its own.
fn run<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(
    device: &Device,
    options: &Options,
    case: SpmvCase<'_, T, I, O>,
) -> Result<()> {
    let a = DeviceCsr::upload(device, &case.a)?;
    let x = DeviceBuffer::from_slice(device, case.x, "x")?;
    let mut y = DeviceBuffer::from_slice(device, case.y, "y")?;
    let problem = a.spmv().transpose_a(case.transpose_a).semiring(S::KIND);
    let mut plan = SpmvPlan::new(&a, &problem, options)?;
    let stream = device.new_stream()?;
    plan.execute(&a, case.alpha, &x, case.beta, &mut y, &stream)?;
    stream.synchronize()?;
    y.read(case.y)
}

/// The battery within what the papers define.
fn check_paper<T: Scalar>(algorithm: Algorithm, config: Option<Config>) {
    let (device, options) = (device(), named(algorithm, config));
    check_spmv::<T, u32, u32, PlusTimes>(&Settings::default().untransposed(), |case| {
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn vectors_that_do_not_fit_are_refused() {
    let device = device();
    let eye = gustav_core::Csr::<f32>::new(2, 2, vec![0u32, 1, 2], vec![0u32, 1], vec![1.0; 2]);
    let a = DeviceCsr::upload(&device, &eye.expect("a matrix").view()).expect("A");
    let mut plan = SpmvPlan::new(&a, &a.spmv(), &Options::default()).expect("a plan");
    let vector = |len| DeviceBuffer::from_slice(&device, &vec![1.0f32; len], "a vector");
    let (x, mut y) = (vector(2).expect("x"), vector(3).expect("y"));
    let wrong = plan.execute(&a, 1.0, &x, 0.0, &mut y, device.stream());
    assert!(matches!(wrong, Err(Error::Shape { .. })), "{wrong:?}");
    // SAFETY: the memory is x's, which outlives the view; the overlap is what must be refused.
    let mut overlapping = unsafe { DeviceBuffer::borrowed(&device, x.address(), 2) };
    let wrong = plan.execute(&a, 1.0, &x, 0.0, &mut overlapping, device.stream());
    assert!(matches!(wrong, Err(Error::Argument { name: "y", .. })), "{wrong:?}");
}
