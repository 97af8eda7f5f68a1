//! `dense-naive`: the loop over dense operands.

use gustav_core::{Csr, PlusTimes};
use gustav_cuda::spgemm::dense_naive::{Config, Zeros};
use gustav_cuda::spgemm::{self, Options, SpgemmPlan};
use gustav_cuda::{DeviceCsr, SpgemmCall};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::{Settings, check_spgemm};

use crate::{battery, device};

#[test]
#[ignore = "needs a CUDA device"]
fn the_variant_passes_the_battery() {
    let zeros = Zeros::Tested;
    for config in [Config { zeros, ..Config::default() }, Config { width: 16, height: 2, zeros }] {
        let config = Some(spgemm::Config::DenseNaive(config));
        let options = Options { config, ..Options::default() };
        // Entries of a column that repeats are added before they meet an infinity.
        let sorted = Settings { unsorted: false, ..Settings::default() };
        let finite = Settings { nonfinite: false, ..Settings::default() };
        for settings in [sorted, finite] {
            battery::<f32, u32, u32, PlusTimes>(&settings, &options);
            battery::<f64, u32, u32, PlusTimes>(&settings, &options);
        }
    }
}

/// As published it stores no zeros, so its entries are looked up in the pattern of the product.
#[test]
#[ignore = "needs a CUDA device"]
fn finite_operands_as_published() {
    let device = device();
    let settings = Settings { nonfinite: false, unsorted: false, ..Settings::default() };
    let reference = Options { chooser: Chooser::Named(Algorithm::Binned), ..Options::default() };
    let published = Options { chooser: Chooser::Named(Algorithm::DenseNaive), ..reference };
    check_spgemm::<f64, u32, u32, PlusTimes>(&settings, |case| {
        let a = DeviceCsr::upload(&device, &case.a)?;
        let b = DeviceCsr::upload(&device, &case.b)?;
        let problem = a.pattern().spgemm(b.pattern()).problem.sorted(true).finite(true);
        let product = |options: &Options| {
            SpgemmPlan::<f64>::new(a.pattern(), b.pattern(), &problem, options)?
                .execute(&a, &b, SpgemmCall::new())?
                .download()
        };
        let (c, mut full) = (product(&published)?, product(&reference)?);
        let (pattern, mut found) = (full.pattern().clone(), 0);
        for row in 0..c.nrows() {
            let (columns, entries) = c.view().row(row);
            for at in pattern.view().row_range(row) {
                let entry = columns.binary_search(&pattern.indices()[at]).ok();
                found += usize::from(entry.is_some());
                full.values_mut()[at] = entry.map_or(0.0, |k| entries[k]);
            }
        }
        assert_eq!(found, c.nnz(), "{}: entries that no term produces", case.name);
        Ok(full)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn as_published_it_wants_finite_operands_and_fills_no_pattern() {
    let device = device();
    let a = random_rows::<f32, u32, u32>(6, 6, 1, |_| 2);
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let problem = a.pattern().spgemm(a.pattern()).problem;
    let finite = problem.clone().finite(true);
    let config = Some(spgemm::Config::DenseNaive(Config::default()));
    let options = Options { config, ..Options::default() };
    let plan = |problem| SpgemmPlan::<f32>::new(a.pattern(), a.pattern(), problem, &options);
    let refused = plan(&problem).err().expect("a refusal").to_string();
    assert!(refused.contains("finite") && refused.contains("Tested"), "{refused}");
    let mut plan = plan(&finite).expect("a plan");
    let mut c = plan.execute(&a, &a, SpgemmCall::new()).expect("C");
    let refused = plan.execute_into(&a, &a, &mut c, SpgemmCall::new()).err();
    assert!(refused.expect("a refusal").to_string().contains("SpgemmPlan::execute"));
}

#[test]
#[ignore = "needs a CUDA device"]
fn hopeless_sizes_and_other_types_are_refused() {
    let device = device();
    let chooser = Chooser::Named(Algorithm::DenseNaive);
    let options = Options { chooser, ..Options::default() };
    let a = random_rows::<i32, u32, u32>(6, 6, 1, |_| 2);
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let refused = SpgemmPlan::<i32>::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem,
        &options,
    )
    .err()
    .expect("a refusal");
    assert!(refused.to_string().contains("f32 and f64"), "{refused}");
    let huge = DeviceCsr::upload(&device, &Csr::<f32>::empty(1 << 15, 1 << 15).expect("A").view());
    let huge = huge.expect("A");
    let refused = SpgemmPlan::<f32>::new(
        huge.pattern(),
        huge.pattern(),
        &huge.pattern().spgemm(huge.pattern()).problem,
        &options,
    )
    .err();
    let refused = refused.expect("a refusal").to_string();
    assert!(refused.contains("shared-row"), "{refused}");
}
