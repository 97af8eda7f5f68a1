//! Softmax over the rows of a pattern, and its gradient, on the device against the oracle.

use gustav_core::{Error, HeadValues, Index, Result, Scalar, bf16, f16};
use gustav_cuda::softmax::{Config, Options, SoftmaxCall, SoftmaxPlan, segmented};
use gustav_cuda::{Device, DeviceBuffer, DevicePattern};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::{
    Settings, SoftmaxCase, SoftmaxGradientCase, check_softmax, check_softmax_gradient,
};

fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

fn plan<T: Scalar, I: Index, O: Index>(
    pattern: &DevicePattern<I, O>,
    heads: usize,
    options: &Options,
) -> Result<SoftmaxPlan<T>> {
    SoftmaxPlan::new(pattern, &pattern.softmax().heads(heads).problem, options)
}

fn forward<T: Scalar, I: Index, O: Index>(
    device: &Device,
    options: &Options,
    case: SoftmaxCase<'_, T, I, O>,
) -> Result<()> {
    let pattern = DevicePattern::upload(device, case.pattern)?;
    let mut plan = plan::<T, I, O>(&pattern, case.heads, options)?;
    let scores = DeviceBuffer::from_slice(device, case.values, "scores")?;
    let mut out = DeviceBuffer::from_slice(device, case.out, "weights")?;
    plan.execute(&scores, &mut out, SoftmaxCall::new().order(case.order))?;
    out.read(case.out)
}

fn gradient<T: Scalar, I: Index, O: Index>(
    device: &Device,
    options: &Options,
    case: SoftmaxGradientCase<'_, T, I, O>,
) -> Result<()> {
    let pattern = DevicePattern::upload(device, case.pattern)?;
    let mut plan = plan::<T, I, O>(&pattern, case.heads, options)?;
    let weights = DeviceBuffer::from_slice(device, case.weights, "weights")?;
    let of_weights = DeviceBuffer::from_slice(device, case.of_weights, "gradient")?;
    let mut out = DeviceBuffer::from_slice(device, case.out, "gradient")?;
    plan.gradient(&weights, &of_weights, &mut out, SoftmaxCall::new().order(case.order))?;
    out.read(case.out)
}

fn both<T: Scalar, I: Index, O: Index>(options: &Options) {
    let (device, settings) = (device(), Settings::default());
    check_softmax::<T, I, O>(&settings, |case| forward(&device, options, case));
    check_softmax_gradient::<T, I, O>(&settings, |case| gradient(&device, options, case));
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_type() {
    both::<f32, u32, u32>(&Options::default());
    both::<f64, u32, u64>(&Options::default());
    both::<f16, u64, u64>(&Options::default());
    both::<bf16, u64, u32>(&Options::default());
}

#[test]
#[ignore = "needs a CUDA device"]
fn passes_the_battery_in_every_configuration() {
    for (lanes, block, longest) in [(1, 32, 32), (4, 1024, 64), (32, 256, 4096)] {
        let config = Some(Config::Segmented(segmented::Config { lanes, block, longest }));
        both::<f32, u32, u32>(&Options { config, ..Options::default() });
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_does_not_fit_is_refused() {
    let device = device();
    let rows = random_rows::<f32, u32, u32>(90, 70, 1, |r| r % 9);
    let pattern = DevicePattern::upload(&device, rows.pattern().view()).expect("a pattern");
    let nnz = pattern.nnz();
    let mut plan = plan::<f32, u32, u32>(&pattern, 2, &Options::default()).expect("a plan");
    let buffer = |len| DeviceBuffer::<f32>::zeros(&device, len, "values").expect("memory");
    for (scores, weights) in [(nnz, 2 * nnz), (2 * nnz, nnz), (2 * nnz + 1, 2 * nnz)] {
        let refused = plan.execute(&buffer(scores), &mut buffer(weights), ());
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    }
    let shared = SoftmaxCall::new().order(HeadValues::Shared);
    let refused = plan.execute(&buffer(nnz), &mut buffer(nnz), shared);
    assert!(matches!(refused, Err(Error::Argument { .. })), "{refused:?}");
    let scores = buffer(2 * nnz);
    // SAFETY: so many values are there, and the call below is refused.
    let mut same = unsafe { DeviceBuffer::<f32>::borrowed(&device, scores.address(), 2 * nnz) };
    let refused = plan.execute(&scores, &mut same, ());
    assert!(matches!(refused, Err(Error::Argument { .. })), "{refused:?}");
    let none = SoftmaxPlan::<i64>::new(&pattern, &pattern.softmax().problem, &Options::default());
    assert!(matches!(none.err(), Some(Error::Unsupported { .. })));
    let none =
        SoftmaxPlan::<f32>::new(&pattern, &pattern.softmax().heads(0).problem, &Options::default());
    assert!(matches!(none.err(), Some(Error::Unsupported { .. })));
    plan.execute(&scores, &mut buffer(2 * nnz), ()).expect("a product");
}
