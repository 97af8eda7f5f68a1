//! The battery on the device.

use gustav_core::{DType, DenseView, Index, Problem, Result, Scalar, StaticSemiring};
use gustav_cuda::{Call, Config, Device, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, SpmmCase, check_spmm};

/// The first device; these tests are ignored where there is none.
pub fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

/// The battery by the rules of `algorithm`.
pub fn named<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(algorithm: Algorithm) {
    let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
    let device = device();
    check_spmm::<T, I, O, S>(&Settings::default(), |case| {
        run::<T, I, O, S>(&device, &options, case)
    });
}

/// The battery by `config`, which may sum in another order than rows have.
pub fn configured<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(config: Config) {
    // The oracle's own sums are f64, so that it cannot judge other orders where those overflow.
    let settings = Settings { nonfinite: T::DTYPE != DType::F64, ..Settings::default() };
    let options = Options { config: Some(config), ..Options::default() };
    let device = device();
    check_spmm::<T, I, O, S>(&settings, |case| run::<T, I, O, S>(&device, &options, case));
}

/// A test for each type of values that calls `$check::<T, I, O, S>()`, with every width of indices and
/// offsets and every semiring among them.
macro_rules! of_every_type {
    ($check:ident) => {
        crate::common::of_every_type! {
            $check
            f32_plus_times: f32, u32, u32, PlusTimes;
            f64_max_times: f64, u32, u64, MaxTimes;
            f16_plus_times: gustav_core::f16, u64, u32, PlusTimes;
            bf16_plus_first: gustav_core::bf16, u32, u32, PlusFirst;
            i32_min_plus: i32, u32, u32, MinPlus;
            i64_or_and: i64, u64, u64, OrAnd;
        }
    };
    ($check:ident $($name:ident: $t:ty, $i:ty, $o:ty, $s:ident;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            $check::<$t, $i, $o, gustav_core::$s>();
        }
    )*};
}
pub(crate) use of_every_type;

/// One case of the battery, on a stream of its own.
pub fn run<T, I, O, S>(
    device: &Device,
    options: &Options,
    case: SpmmCase<'_, T, I, O>,
) -> Result<()>
where
    T: Scalar,
    I: Index,
    O: Index,
    S: StaticSemiring<T::Accum>,
{
    run_refined::<T, I, O, S>(device, options, |problem| problem, case)
}

/// The same, of a problem of which more is said.
pub fn run_refined<T, I, O, S>(
    device: &Device,
    options: &Options,
    refine: impl Fn(Problem) -> Problem,
    mut case: SpmmCase<'_, T, I, O>,
) -> Result<()>
where
    T: Scalar,
    I: Index,
    O: Index,
    S: StaticSemiring<T::Accum>,
{
    let a = DeviceCsr::upload(device, &case.a)?;
    let b = upload(device, &case.b)?;
    let mut c = upload(device, &case.c.as_view())?;
    let problem = a
        .pattern()
        .spmm(b.ncols())
        .problem
        .transpose_a(case.transpose_a)
        .layouts(b.layout(), c.layout())
        .semiring(S::KIND);
    let mut plan = SpmmPlan::new(a.pattern(), &refine(problem), options)?;
    let stream = device.new_stream()?;
    plan.execute(&a, &b, &mut c, Call::new().alpha(case.alpha).beta(case.beta).on(&stream))?;
    stream.synchronize()?;
    let result = c.data().to_host()?;
    case.c.as_mut_slice().expect("a slice").copy_from_slice(&result);
    Ok(())
}

fn upload<T: Scalar>(device: &Device, m: &DenseView<'_, T>) -> Result<DeviceDense<T>> {
    DeviceDense::upload(device, m)
}
