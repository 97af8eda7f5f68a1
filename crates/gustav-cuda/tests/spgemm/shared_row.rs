//! `shared-row`: a row of a dense C in shared memory.

use gustav_core::{Layout, PlusTimes, Scalar};
use gustav_cuda::spgemm::shared_row::Config;
use gustav_cuda::spgemm::{self, DensePlan, Options, SpgemmPlan};
use gustav_cuda::{Call, DeviceCsr, DeviceDense, Entries, SpgemmCall};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::Settings;
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::oracle;

use crate::{battery, device};

fn options(config: Config) -> Options {
    let config = Some(spgemm::Config::SharedRow(config));
    Options { config, ..Options::default() }
}

/// Several rows a CTA, groups of one warp, prefetched entries, narrow chunks, the paper's own.
fn configs() -> Vec<Config> {
    let paper = Config::default();
    vec![
        paper,
        Config { threads: 512, rows: 2, prefetch: 4, ..paper },
        Config { rows: 8, width: Some(32), ..paper },
        Config { threads: 64, prefetch: 1, width: Some(100), ..paper },
        Config { threads: 480, rows: 15, width: Some(64), ..paper },
    ]
}

fn passes<T: Scalar>() {
    for config in configs().into_iter() {
        battery::<T, u32, u32, PlusTimes>(&Settings::default(), &options(config));
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery() {
    passes::<f32>();
    passes::<f64>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn impossible_configurations_are_refused() {
    let device = device();
    let a = random_rows::<f32, u32, u32>(6, 6, 1, |_| 2);
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let paper = Config::default();
    for config in [
        Config { threads: 100, ..paper },
        Config { threads: 2048, ..paper },
        Config { threads: 1024, rows: 16, ..paper },
        Config { rows: 0, ..paper },
        Config { width: Some(0), ..paper },
    ] {
        let refused = SpgemmPlan::<f32>::new(
            a.pattern(),
            a.pattern(),
            &a.pattern().spgemm(a.pattern()).problem,
            &options(config),
        );
        assert!(refused.is_err(), "{config:?}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn runs_are_equal_and_repeated_columns_are_refused_where_they_could_not_be() {
    let device = device();
    let host = random_rows::<f32, u32, u32>(300, 300, 5, |row| [40, 3, 0, 7][row % 4]);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let problem = a.pattern().spgemm(a.pattern()).problem.deterministic(true);
    let own = options(Config::default());
    let mut plan = SpgemmPlan::new(a.pattern(), a.pattern(), &problem, &own).expect("a plan");
    let mut run = || plan.execute(&a, &a, SpgemmCall::new()).expect("C").download().expect("C");
    let (first, second) = (run(), run());
    assert_eq!(first.indices(), second.indices());
    assert!(first.values().iter().zip(second.values()).all(|(x, y)| x.to_bits() == y.to_bits()));
    let repeats = unsorted::<f32, u32, u32>(300, 33, 3);
    let b = DeviceCsr::upload(&device, &repeats.view()).expect("B");
    let problem = a.pattern().spgemm(b.pattern()).problem.deterministic(true);
    let refused =
        SpgemmPlan::<f32>::new(a.pattern(), b.pattern(), &problem, &own).err().expect("a refusal");
    assert!(refused.to_string().contains("atomically"), "{refused}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn new_values_go_into_a_known_pattern() {
    let device = device();
    let mut host = random_rows::<f64, u32, u32>(200, 200, 9, |row| row % 9);
    let mut a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let own = options(Config::default());
    let mut plan =
        SpgemmPlan::new(a.pattern(), a.pattern(), &a.pattern().spgemm(a.pattern()).problem, &own)
            .expect("a plan");
    let mut c = plan.execute(&a, &a, SpgemmCall::new()).expect("C");
    host.values_mut().iter_mut().for_each(|v| *v = *v * 3.0 - 1.0);
    a.values_mut().write(&host.values()).expect("new values");
    plan.execute_into(&a, &a, &mut c, SpgemmCall::new()).expect("C again");
    let c = c.download().expect("C");
    assert!(oracle::Spgemm::new(host.view(), host.view()).verify(c.view()).expect("shapes").ok);
}

/// C does not fit the panel, which is a quarter of the free memory, so that it is made in three.
#[test]
#[ignore = "needs a CUDA device"]
fn a_large_c_is_made_in_panels() {
    let device = device();
    let n = 1 << 20;
    let rows = device.memory().expect("memory").0 / 4 / (4 * n) * 2 + 5;
    let a = random_rows::<f32, u32, u32>(rows, 64, 2, |row| row % 3);
    let b = random_rows::<f32, u32, u32>(64, n, 3, |row| row % 50);
    let (on_a, on_b) =
        (DeviceCsr::upload(&device, &a.view()), DeviceCsr::upload(&device, &b.view()));
    let (on_a, on_b) = (on_a.expect("A"), on_b.expect("B"));
    let own = options(Config::default());
    let mut plan = SpgemmPlan::new(
        on_a.pattern(),
        on_b.pattern(),
        &on_a.pattern().spgemm(on_b.pattern()).problem,
        &own,
    )
    .expect("a plan");
    assert!(plan.workspace_bytes() < rows * n * 4);
    let c = plan.execute(&on_a, &on_b, SpgemmCall::new()).expect("C").download().expect("C");
    assert!(oracle::Spgemm::new(a.view(), b.view()).verify(c.view()).expect("shapes").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_dense_c_is_handed_out_and_keeps_its_pattern() {
    let device = device();
    let mut host = random_rows::<f64, u32, u32>(70, 130, 4, |row| row % 11);
    // Zeros that are stored produce entries of zero.
    host.values_mut()[..5].fill(0.0);
    let other = random_rows::<f64, u32, u32>(130, 90, 5, |row| row % 5);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let b = DeviceCsr::upload(&device, &other.view()).expect("B");
    for algorithm in [Algorithm::SharedRow, Algorithm::DenseNaive] {
        let chooser = Chooser::Named(algorithm);
        let options = Options { chooser, ..Options::default() };
        let mut plan = DensePlan::new(
            a.pattern(),
            b.pattern(),
            &a.pattern().spgemm(b.pattern()).problem,
            &options,
        )
        .expect("a plan");
        assert_eq!(plan.choice().algorithm, algorithm);
        let mut c = DeviceDense::<f64>::zeros(&device, 70, 90, Layout::RowMajor).expect("C");
        let stream = device.new_stream().expect("a stream");
        plan.execute(&a, &b, &mut c, Call::new().on(&stream)).expect("the product");
        let sparse = c.to_csr(Entries::Pattern, &stream).expect("CSR").download().expect("CSR");
        let reference = oracle::Spgemm::new(host.view(), other.view());
        assert!(reference.verify(sparse.view()).expect("shapes").ok, "{algorithm}");
        let nonzeros = c.to_csr(Entries::Nonzeros, &stream).expect("CSR").download().expect("CSR");
        let dense = c.download().expect("C");
        let count = dense.data().iter().filter(|v| **v != 0.0).count();
        assert_eq!(nonzeros.nnz(), count);
        assert!(nonzeros.nnz() < sparse.nnz());
    }
}
