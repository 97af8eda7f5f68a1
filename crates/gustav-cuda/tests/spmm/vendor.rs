//! cuSPARSE through our interface, against the oracle: the comparison must compute the same thing.

use super::common::{device, run};
use super::papers::product;
use gustav_core::{Csr, Dense, DenseView, Layout, PlusTimes, Scalar, bf16, f16};
use gustav_cuda::spmm::vendor::Config;
use gustav_cuda::{Call, DeviceBuffer, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_testkit::battery::{Settings, check_spmm, matrices};

// cuSPARSE promises neither the order of its sums nor subnormal ones (it flushes them in f32), so
// matrices that overflow or underflow are multiplied by `segmented` in its place.
fn check<T: Scalar>(config: Config) {
    let device = device();
    let settings = Settings { nonfinite: false, ..Settings::default() };
    let vendor =
        Options { config: Some(gustav_cuda::Config::Vendor(config)), ..Options::default() };
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        // ALG3 wants rows to begin as aligned as they are long.
        let padded = is_padded(&case.b) || is_padded(&case.c.as_view());
        // In 16 bits it misses the bound where it adds a column to a column-major C, from a row-major B.
        let column = case.b.ncols() == 1 && T::DTYPE.bytes() == 2;
        let layouts = (case.b.layout(), case.c.layout());
        let misses = column
            && case.beta != T::zero().to_accum()
            && layouts == (Layout::RowMajor, Layout::ColumnMajor);
        let alg3_leaves = config == Config::Alg3 && (padded || misses);
        let leaves = case.name == "tiny magnitudes" || alg3_leaves;
        let options = if leaves { Options::default() } else { vendor };
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

fn is_padded<T: Scalar>(m: &DenseView<'_, T>) -> bool {
    let length = match m.layout() {
        Layout::RowMajor => m.ncols(),
        Layout::ColumnMajor => m.nrows(),
    };
    m.leading_dimension() != length
}

// In 16 bits ALG3 alone keeps the bound of 32-bit sums.
macro_rules! vendor {
    ($($name:ident: $t:ty, $config:ident;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            check::<$t>(Config::$config);
        }
    )*};
}

vendor! {
    default_f32: f32, Default;
    default_f64: f64, Default;
    alg1_f32: f32, Alg1;
    alg1_f64: f64, Alg1;
    alg2_f32: f32, Alg2;
    alg2_f64: f64, Alg2;
    alg3_f32: f32, Alg3;
    alg3_f64: f64, Alg3;
    alg3_f16: f16, Alg3;
    alg3_bf16: bf16, Alg3;
}

/// The others are asked for sums that every order and every type gives.
fn whole_numbers<T: Scalar>() {
    let device = device();
    let of = |k: usize| (k % 5) as f32 - 2.0;
    let mut host = matrices::random_rows::<f32, u32, u32>(90, 70, 1, |r| r % 12);
    host.values_mut().iter_mut().enumerate().for_each(|(k, value)| *value = of(k));
    let b = Dense::from_fn(70, 32, Layout::RowMajor, |i, j| of(i + 3 * j)).expect("B");
    let expected = product(&host, &b);
    let narrow = |v: &[f32]| -> Vec<T> { v.iter().map(|v| T::from_f64(f64::from(*v))).collect() };
    let (offsets, indices) = (host.offsets().to_vec(), host.indices().to_vec());
    let a = Csr::new(90, 70, offsets, indices, narrow(&host.values())).expect("A");
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let values = DeviceBuffer::from_slice(&device, &narrow(b.data()), "B").expect("B");
    let b = DeviceDense::new(70, 32, Layout::RowMajor, 32, values).expect("B");
    for config in Config::ALL {
        let config = Some(gustav_cuda::Config::Vendor(config));
        let options = Options { config, ..Options::default() };
        let mut plan =
            SpmmPlan::new(a.pattern(), &a.pattern().spmm(32).problem, &options).expect("a plan");
        let mut c = DeviceDense::zeros(&device, 90, 32, Layout::RowMajor).expect("C");
        c.data_mut().fill(0xff, device.stream()).expect("NaN");
        let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
        plan.execute(&a, &b, &mut c, Call::new().alpha(one).beta(zero)).expect("C");
        let found = c.data().to_host().expect("C");
        let found: Vec<f32> = found.iter().map(|v| v.to_f64() as f32).collect();
        assert_eq!(found, expected, "{config:?}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn whole_numbers_in_16_bits_are_exact() {
    whole_numbers::<f16>();
    whole_numbers::<bf16>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn alg3_refuses_rows_that_begin_less_aligned_than_they_are_long() {
    let device = device();
    let host = matrices::random_rows::<f32, u32, u32>(70, 70, 1, |_| 3);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let ones = Dense::from_fn(70, 8, Layout::RowMajor, |_, _| 1.0f32).expect("B");
    let b = DeviceDense::upload(&device, &ones.view()).expect("B");
    let values = DeviceBuffer::from_slice(&device, &[0f32; 70 * 9], "C").expect("C");
    let mut c = DeviceDense::new(70, 8, Layout::RowMajor, 9, values).expect("C");
    let config = Some(gustav_cuda::Config::Vendor(Config::Alg3));
    let options = Options { config, ..Options::default() };
    let mut plan =
        SpmmPlan::new(a.pattern(), &a.pattern().spmm(8).problem, &options).expect("a plan");
    let refused = plan.execute(&a, &b, &mut c, Call::new());
    let text = refused.expect_err("a refusal").to_string();
    assert!(text.contains("CSR_ALG3") && text.contains("multiples of 4 values"), "{text}");
    let mut plan = SpmmPlan::new(a.pattern(), &a.pattern().spmm(8).problem, &Options::default())
        .expect("a plan");
    plan.execute(&a, &b, &mut c, Call::new()).expect("the device still works");
    device.stream().synchronize().expect("the end");
}
