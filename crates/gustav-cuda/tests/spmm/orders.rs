//! Row orders as a property of plans: the same product, whatever the order.

use gustav_core::{Error, Index, Layout, PlusTimes, Scalar};
use gustav_cuda::spmm::output_stationary;
use gustav_cuda::{Config, DeviceCsr, Options, SpmmPlan};
use gustav_plan::orders::{Order, Search, WarpShape};
use gustav_plan::{Algorithm, Chooser, RowOrder};
use gustav_testkit::battery::{Settings, SpmmCase, check_spmm};

use crate::common::{device, run};

fn of<T: Scalar, I: Index, O: Index>(order: Order, case: &SpmmCase<'_, T, I, O>) -> RowOrder {
    order.of(&case.a.pattern(), WarpShape::default(), Search::Auto).expect("an order")
}

#[test]
#[ignore = "needs a CUDA device"]
fn output_stationary_takes_every_order() {
    let device = device();
    let columns = Layout::ColumnMajor;
    let settings = Settings::default().untransposed().layout(columns, columns);
    for &order in Order::ALL {
        check_spmm::<f32, u32, u32, PlusTimes>(&settings, |case| {
            let order = of(order, &case);
            let chooser = Chooser::Named(Algorithm::OutputStationary);
            let options = Options { chooser, order: Some(&order), ..Options::default() };
            run::<f32, u32, u32, PlusTimes>(&device, &options, case)
        });
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_numbers_of_warps() {
    let device = device();
    let columns = Layout::ColumnMajor;
    let settings = Settings::default().untransposed().layout(columns, columns);
    let shape = WarpShape { warps: 5, lanes: 7, line: 16 };
    check_spmm::<f64, u32, u32, PlusTimes>(&settings, |case| {
        let order = Order::Lpt.of(&case.a.pattern(), shape, Search::Auto).expect("an order");
        let config = output_stationary::Config { warps: 5, width: 2, fill: true };
        let config = Some(Config::OutputStationary(config));
        let options = Options { config, order: Some(&order), ..Options::default() };
        run::<f64, u32, u32, PlusTimes>(&device, &options, case)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn segmented_takes_every_order() {
    let device = device();
    let settings = Settings::default().untransposed();
    for &order in Order::ALL {
        check_spmm::<f32, u32, u64, PlusTimes>(&settings, |case| {
            let order = of(order, &case);
            let options = Options { order: Some(&order), ..Options::default() };
            run::<f32, u32, u64, PlusTimes>(&device, &options, case)
        });
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_takes_no_order_says_so() {
    let device = device();
    let host = gustav_testkit::battery::matrices::random_rows::<f32, u32, u32>(70, 70, 1, |_| 3);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let order =
        |shape| Order::Lpt.of(&host.pattern().view(), shape, Search::Auto).expect("an order");
    let lpt = order(WarpShape::default());
    let named = |algorithm| Options {
        chooser: Chooser::Named(algorithm),
        order: Some(&lpt),
        ..Options::default()
    };
    for algorithm in [Algorithm::RowSplit, Algorithm::Vendor] {
        let plan =
            SpmmPlan::<f32>::new(a.pattern(), &a.pattern().spmm(8).problem, &named(algorithm));
        let text = plan.err().expect("a refusal").to_string();
        assert!(text.contains("lpt") && text.contains("segmented"), "{text}");
    }
    let other = gustav_testkit::battery::matrices::random_rows::<f32, u32, u32>(69, 70, 1, |_| 3);
    let other = DeviceCsr::upload(&device, &other.view()).expect("A");
    let plan = SpmmPlan::<f32>::new(
        other.pattern(),
        &other.pattern().spmm(8).problem,
        &named(Algorithm::Segmented),
    );
    assert!(matches!(plan.err(), Some(Error::Length { .. })));
    let few = order(WarpShape { warps: 4, ..WarpShape::default() });
    let config = output_stationary::Config { warps: 8, width: 1, fill: false };
    let config = Some(Config::OutputStationary(config));
    let options = Options { config, order: Some(&few), ..Options::default() };
    let problem = a.pattern().spmm(8).problem.layouts(Layout::ColumnMajor, Layout::ColumnMajor);
    let e = SpmmPlan::<f32>::new(a.pattern(), &problem, &options).err().expect("other warps");
    assert!(matches!(e, Error::Argument { .. }), "{e}");
}
