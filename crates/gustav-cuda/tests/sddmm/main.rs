//! Dense products at the nonzeros of a pattern on the device against the oracle, one file per algorithm.

mod b_stationary;
mod dense_tiles;
mod nonzero_split;
mod plan;
mod row_block;
mod vendor;

use gustav_core::{Index, Pattern, Result, Scalar, bf16, f16};
use gustav_cuda::sddmm::{Config, Options};
use gustav_cuda::{Device, DeviceBuffer, DeviceDense, DevicePattern, SddmmCall, SddmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{SddmmCase, Settings, check_sddmm};

fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

fn named(algorithm: Algorithm, config: Option<Config>) -> Options {
    Options { chooser: Chooser::Named(algorithm), config }
}

/// One case of the battery, by a plan of its own.
fn run<T: Scalar, I: Index, O: Index>(
    device: &Device,
    options: &Options,
    case: SddmmCase<'_, T, I, O>,
) -> Result<()> {
    let pattern = DevicePattern::upload(device, case.pattern)?;
    let (x, y) = (DeviceDense::upload(device, &case.x)?, DeviceDense::upload(device, &case.y)?);
    let mut values = DeviceBuffer::from_slice(device, case.values, "values")?;
    let factors = case.factors.map(|f| DeviceBuffer::from_slice(device, f, "factors"));
    let factors = factors.transpose()?;
    let request = pattern.sddmm(case.x.ncols()).layouts(case.x.layout(), case.y.layout());
    let mut plan = SddmmPlan::<T>::new(&pattern, &request.problem, options)?;
    let mut call = SddmmCall::new().alpha(case.alpha).beta(case.beta);
    if let Some(factors) = &factors {
        call = call.factors(factors);
    }
    plan.execute(&x, &y, &mut values, call)?;
    values.read(case.values)
}

/// The battery for one combination of types.
fn battery<T: Scalar, I: Index, O: Index>(options: &Options, settings: &Settings) {
    let device = device();
    check_sddmm::<T, I, O>(settings, |case| run(&device, options, case));
}

/// The battery in every type and in both widths of indices.
fn every_type(options: &Options) {
    let settings = Settings::default();
    battery::<f32, u32, u32>(options, &settings);
    battery::<f64, u32, u64>(options, &settings);
    battery::<f16, u32, u32>(options, &settings);
    battery::<bf16, u64, u64>(options, &settings);
    battery::<i32, u32, u32>(options, &settings);
    battery::<i64, u64, u32>(options, &settings);
}

/// Row-major operands for a pattern, of seeded values.
fn operands(device: &Device, pattern: &Pattern, depth: usize) -> [DeviceDense<f32>; 2] {
    [(pattern.nrows(), 1), (pattern.ncols(), 2)].map(|(rows, seed)| {
        let values = gustav_testkit::battery::values::values(rows * depth, seed);
        let dense = gustav_core::Dense::from_row_major(rows, depth, values).expect("values");
        DeviceDense::upload(device, &dense.view()).expect("an operand")
    })
}
