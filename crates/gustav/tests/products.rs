//! One-shot products, builders and plans, each held to the oracle.

use gustav::{
    Algorithm, Chooser, Csr, Dense, Device, Epilogue, Error, Extremum, Layout, Operation,
    PatternView, Reduce, Scale, Semiring, Spgemm, SpgemmCall, Spmm, SpmmPlan, SpmmRequest, Spmv,
    SpmvPlan,
};
use gustav_testkit::oracle;

fn matrix(description: &str) -> Csr<f64> {
    let generator: gustav::io::Generator = description.parse().expect("a description");
    generator.build(3).expect("a small matrix")
}

fn operand(rows: usize, columns: usize, layout: Layout) -> Dense<f64> {
    Dense::from_fn(rows, columns, layout, |i, j| ((7 * i + 3 * j) % 11) as f64 - 5.0)
        .expect("small")
}

#[test]
fn one_shot_products_are_right() {
    let a = matrix("uniform:150x150,6");
    let b = operand(150, 9, Layout::RowMajor);
    let c = gustav::spmm(&a, &b).expect("shapes fit");
    let verdict = oracle::Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes fit");
    assert!(verdict.ok, "{verdict}");

    let x: Vec<f64> = (0..150).map(f64::from).collect();
    let y = gustav::spmv(&a, &x).expect("shapes fit");
    let kind = Semiring::PlusTimes;
    let verdict = oracle::spmv(kind, a.view(), false, &x, 1.0, 0.0, None, &y);
    assert!(verdict.expect("shapes fit").ok);

    let c = gustav::spgemm(&a, &a).expect("shapes fit");
    let verdict = oracle::Spgemm::new(a.view(), a.view()).verify(c.view()).expect("shapes fit");
    assert!(verdict.ok, "{verdict}");
}

#[test]
fn reductions_are_asked_for_alike() {
    let a = matrix("uniform:150x150,6");
    let b = operand(150, 9, Layout::RowMajor);
    let max = oracle::SpmmExtremum {
        extremum: Extremum::Max,
        a: a.view(),
        transpose_a: false,
        b: b.view(),
        alpha: -2.0,
        empty: 0.0,
    };
    let once = Spmm::new(&a, &b).reduce(Reduce::Max).alpha(-2.0).run().expect("a product");
    assert!(max.verify(once.view(), None).expect("shapes fit").ok);

    // The mean stays where an epilogue is set as well.
    let epilogue = Epilogue::default();
    let request = a.pattern().spmm(9).reduce(Reduce::Mean).epilogue(epilogue);
    assert_eq!(request.problem.reduction(), Reduce::Mean);
    let mut c = Dense::zeros(150, 9, Layout::RowMajor).expect("zeros");
    for chooser in [Chooser::Auto, Chooser::Autotune] {
        let device = Device::cpu().choose(chooser);
        let mut plan = request.clone().plan(&device).expect("a plan");
        plan.execute(&a, &b, &mut c, ()).expect("means");
        let means = oracle::Spmm { mean: true, ..oracle::Spmm::new(a.view(), b.view()) };
        assert!(means.verify(c.view()).expect("shapes fit").ok);

        let request = request.clone().reduce(Reduce::Min);
        let mut plan: SpmmPlan<'_, f64> = request.plan(&device).expect("a plan");
        let text = plan.explain().to_string();
        assert!(text.contains("min") && plan.algorithm() == Algorithm::RowSplit, "{text}");
        let mut winners = vec![7u64; 150 * 9];
        plan.execute_with_winners(&a, &b, &mut c, &mut winners, ()).expect("minima");
        let min = oracle::SpmmExtremum { extremum: Extremum::Min, alpha: 1.0, ..max };
        let winners = gustav::IndexSlice::new(&winners);
        let verdict = min.verify(c.view(), Some(winners)).expect("shapes fit");
        assert!(verdict.ok, "{verdict}");
    }
}

#[test]
fn builders_pass_every_option_on() {
    let a = matrix("banded:60,3");
    let b = operand(60, 5, Layout::ColumnMajor);
    let before = operand(60, 5, Layout::ColumnMajor);
    let mut c = before.clone();
    Spmm::new(&a, &b)
        .semiring(Semiring::MinPlus)
        .alpha(1.5)
        .transpose(true)
        .deterministic(true)
        .threads(2)
        .run_into(0.25, &mut c)
        .expect("shapes fit");
    let reference = oracle::Spmm {
        semiring: Semiring::MinPlus,
        transpose_a: true,
        alpha: 1.5,
        beta: 0.25,
        before: Some(before.view()),
        ..oracle::Spmm::new(a.view(), b.view())
    };
    let verdict = reference.verify(c.view()).expect("shapes fit");
    assert!(verdict.ok, "{verdict}");

    let x = vec![2.0; 60];
    let y = Spmv::new(&a, &x).semiring(Semiring::MaxTimes).alpha(-1.0).run().expect("shapes fit");
    let kind = Semiring::MaxTimes;
    let verdict = oracle::spmv(kind, a.view(), false, &x, -1.0, f64::NEG_INFINITY, None, &y);
    assert!(verdict.expect("shapes fit").ok);
}

#[test]
fn every_chooser_gives_the_same_product() {
    let a = matrix("uniform:80x80,5");
    let b = operand(80, 4, Layout::RowMajor);
    let expected = gustav::spmm(&a, &b).expect("shapes fit");
    let named = Chooser::Named(Algorithm::MergePath);
    for chooser in [Chooser::Auto, Chooser::MeanRowLength, Chooser::Autotune, named] {
        let c = Spmm::new(&a, &b).choose(chooser).run().expect("shapes fit");
        // Values are small integers times random ones; only the order of sums may differ.
        let close = c.data().iter().zip(expected.data()).all(|(x, y)| (x - y).abs() < 1e-12);
        assert!(close, "{chooser}");
        let c = Spgemm::new(&a, &a).choose(if chooser == named { Chooser::Auto } else { chooser });
        let c = c.run().expect("shapes fit");
        let reference = oracle::Spgemm::new(a.view(), a.view());
        assert!(reference.verify(c.view()).expect("shapes fit").ok, "{chooser}");
    }
}

#[test]
fn a_plan_serves_new_values_and_explains_itself() {
    let mut a = matrix("grid5:12x12");
    let b = operand(144, 3, Layout::RowMajor);
    let mut c = Dense::zeros(144, 3, Layout::RowMajor).expect("small");
    let mut plan = a.pattern().spmm(3).calls(100).plan(&Device::cpu()).expect("supported");
    for factor in [1.0, -2.0] {
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        plan.execute(&a, &b, &mut c, ()).expect("the pattern of the plan");
        let verdict = oracle::Spmm::new(a.view(), b.view()).verify(c.view());
        assert!(verdict.expect("shapes fit").ok);
    }
    let text = plan.explain().to_string();
    assert!(text.contains(plan.algorithm().name()) && text.contains(plan.reason()), "{text}");
    assert!(text.contains("cpu") && text.contains("mean 4.67"), "{text}");

    let other = matrix("grid5:10x10");
    let refusal = plan.execute(&other, &b, &mut c, ());
    assert!(matches!(refusal, Err(Error::Pattern { .. })));
}

#[test]
fn autotuning_says_what_it_timed() {
    let a = matrix("uniform:100x100,4");
    let device = Device::cpu().choose(Chooser::Autotune);
    let plan: SpmvPlan<'_, f64> = a.pattern().spmv().plan(&device).expect("supported");
    assert!(plan.algorithm().operations().contains(&Operation::Spmv));
    assert!(plan.reason().starts_with("fastest of "), "{}", plan.reason());
}

#[test]
fn deterministic_products_are_the_same_to_the_bit_for_any_number_of_threads() {
    // Long rows, which several threads would share; rows alike, which share loads of B; and few.
    let longest = [2, 300, 1100].map(|n| format!("hubs:2000x20000,5,1,{n}"));
    let others = ["fem:9x9x9,3", "uniform:80x80,5"].map(String::from);
    for description in longest.iter().chain(&others) {
        let a = matrix(description);
        for (columns, transpose) in [(1, false), (8, false), (8, true)] {
            let inner = if transpose { a.nrows() } else { a.ncols() };
            let b = Dense::from_fn(inner, columns, Layout::RowMajor, |i, j| {
                ((i * 7919 + j * 104_729) % 1009) as f64 / 997.0 - 0.5
            })
            .expect("small");
            let product = |threads| {
                let spmm = Spmm::new(&a, &b).transpose(transpose).deterministic(true);
                let c = spmm.threads(threads).run().expect("shapes fit");
                c.data().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            let one = product(1);
            for threads in 2..=8 {
                let same = product(threads) == one;
                assert!(same, "{description}, {columns} columns, {threads} threads");
            }
        }
    }
}

#[test]
fn timing_is_no_way_to_a_deterministic_product() {
    let a = matrix("uniform:100x100,4");
    let device = Device::cpu().choose(Chooser::Autotune);
    let a = a.pattern();
    let spmm = a.spmm(3).deterministic(true).plan::<f64, _>(&device);
    let spmv = a.spmv().deterministic(true).plan::<f64, _>(&device);
    let spgemm = a.spgemm(a).deterministic(true).plan::<f64, _>(&device);
    for refused in [spmm.map(|_| ()), spmv.map(|_| ()), spgemm.map(|_| ())] {
        let message = refused.expect_err("autotuning").to_string();
        assert!(message.starts_with("autotuning does not support "), "{message}");
        assert!(message.contains("nearest that works: the chooser auto"), "{message}");
    }
}

#[test]
fn exact_zeros_stay_unless_dropped() {
    // [1 1]·[1; -1] cancels exactly.
    let a = Csr::<f64>::new(1, 2, vec![0, 2], vec![0, 1], vec![1.0, 1.0]).expect("valid");
    let b = Csr::<f64>::new(2, 1, vec![0, 1, 2], vec![0, 0], vec![1.0, -1.0]).expect("valid");
    assert_eq!(gustav::spgemm(&a, &b).expect("shapes fit").values(), [0.0]);
    let dropped = Spgemm::new(&a, &b).drop_zeros(true).run().expect("shapes fit");
    assert_eq!(dropped.nnz(), 0);
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let a = matrix("uniform:50x50,3");
    let b = operand(49, 2, Layout::RowMajor);
    assert!(matches!(gustav::spmm(&a, &b), Err(Error::Shape { .. })));
    assert!(matches!(gustav::spmv(&a, &[1.0; 49]), Err(Error::Shape { .. })));
    let other = matrix("uniform:49x49,3");
    assert!(matches!(gustav::spgemm(&a, &other), Err(Error::Shape { .. })));
}

#[test]
fn more_columns_than_there_are_addresses_for_are_refused_by_every_algorithm() {
    let a = matrix("grid5:9x9");
    let device = Device::cpu();
    for algorithm in device.algorithms(Operation::Spmm) {
        for columns in [1 << 50, 1 << 57, usize::MAX] {
            let device = device.clone().choose(Chooser::Named(algorithm));
            let plan = a.pattern().spmm(columns).plan::<f64, _>(&device);
            let refused = matches!(plan, Err(Error::OutOfMemory { .. }));
            assert!(refused || columns < 1 << 57, "{algorithm}, {columns} columns");
        }
    }
}

#[test]
fn products_under_a_mask_and_added_to() {
    let (a, mask) = (matrix("rmat:8,6"), matrix("uniform:256x256,20"));
    let reference = oracle::Spgemm::new(a.view(), a.view());
    let c = Spgemm::new(&a, &a).mask(&mask).run().expect("C");
    let masked = oracle::Spgemm { mask: Some(mask.view()), ..reference };
    assert!(masked.verify(c.view()).expect("shapes fit").ok);
    assert!(!reference.verify(c.view()).expect("shapes fit").ok);
    let device = Device::cpu();
    let request = a.pattern().spgemm(a.pattern());
    let mut plan = request.clone().mask(mask.pattern()).plan(&device).expect("a plan");
    assert_eq!(plan.algorithm(), Algorithm::Masked);
    assert_eq!(plan.execute(&a, &a, SpgemmCall::new()).expect("C"), c);

    let whole = Spgemm::new(&a, &a).run().expect("C");
    let sum = Spgemm::new(&a, &a).plus(2.0, &mask).run().expect("C");
    let both = whole.nnz() + mask.nnz() - sum.nnz();
    assert!(both > 0 && sum.nnz() > whole.nnz());
    let mut plan = request.plan(&device).expect("a plan");
    let call = SpgemmCall::new().add(2.0, &mask);
    let again = plan.execute(&a, &a, call).expect("C");
    assert_eq!(again, sum);

    let refused = Spgemm::new(&a, &a).mask(&mask).plus(1.0, &mask).run();
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    let named = Spgemm::new(&a, &a).mask(&mask).choose(Chooser::Named(Algorithm::Gustavson)).run();
    assert!(matches!(named, Err(Error::Unsupported { .. })), "{named:?}");
    let narrow = matrix("uniform:256x20,3");
    let shape = Spgemm::new(&a, &a).mask(&narrow).run();
    assert!(matches!(shape, Err(Error::Shape { .. })), "{shape:?}");
    let shape = Spgemm::new(&a, &a).plus(1.0, &narrow).run();
    assert!(matches!(shape, Err(Error::Shape { .. })), "{shape:?}");
}

#[test]
fn a_plan_obeys_the_semiring_of_its_request() {
    // Plus-times gives [50, 60].
    let a = Csr::<f64>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0]).expect("A");
    let (device, min_plus) = (Device::cpu(), Semiring::MinPlus);
    let b = Dense::from_row_major(2, 1, vec![10.0, 20.0]).expect("B");
    let mut c = Dense::zeros(2, 1, Layout::RowMajor).expect("C");
    let mut plan = a.pattern().spmm(1).semiring(min_plus).plan(&device).expect("a plan");
    plan.execute(&a, &b, &mut c, ()).expect("C");
    assert_eq!(c.data(), [11.0, 23.0]);
    plan.execute(&a, &b, &mut c, Scale::new().alpha(2.0).beta(1.0)).expect("C");
    assert_eq!(c.data(), [12.0, 24.0]);
    let mut y = [0.0; 2];
    let mut plan = a.pattern().spmv().semiring(min_plus).plan(&device).expect("a plan");
    plan.execute(&a, &[10.0, 20.0], &mut y, ()).expect("y");
    assert_eq!(y, [11.0, 23.0]);
    let mut plan =
        a.pattern().spgemm(a.pattern()).semiring(min_plus).plan(&device).expect("a plan");
    // Rows 0 and 1 of A·A: min(1 + 1), min(1 + 2, 2 + 3); 3 + 3.
    let c = plan.execute(&a, &a, SpgemmCall::new()).expect("C");
    assert_eq!(c.values(), [2.0, 3.0, 6.0]);
}

#[test]
fn values_are_compared_with_the_pattern_of_the_plan() {
    let (a, equal) = (matrix("grid5:12x12"), matrix("grid5:12x12"));
    assert_eq!(a.pattern(), equal.pattern());
    let device = Device::cpu();
    let b = operand(144, 3, Layout::RowMajor);
    let mut c = Dense::zeros(144, 3, Layout::RowMajor).expect("small");
    let mut spmm = a.pattern().spmm(3).plan(&device).expect("a plan");
    let mut spmv = a.pattern().spmv().plan(&device).expect("a plan");
    let mut spgemm = a.pattern().spgemm(a.pattern()).plan(&device).expect("a plan");
    let (x, mut y) = (vec![1.0; 144], vec![0.0; 144]);
    let foreign = [
        spmm.execute(&equal, &b, &mut c, ()),
        spmv.execute(&equal, &x, &mut y, ()),
        spgemm.execute(&equal, &a, SpgemmCall::new()).map(drop),
        spgemm.execute(&a, &equal, SpgemmCall::new()).map(drop),
    ];
    for refused in foreign {
        assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    }
    let short = &equal.values().as_slice()[1..];
    for refused in [
        spmm.execute(short, &b, &mut c, ()),
        spmv.execute(short, &x, &mut y, ()),
        spgemm.execute(short, a.values(), SpgemmCall::new()).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    }
    spmm.execute(equal.values().as_slice(), &b, &mut c, ()).expect("a slice of the right length");
    assert!(oracle::Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes fit").ok);
}

#[test]
fn plans_borrow_views_and_take_whole_problems() {
    let a = matrix("uniform:60x50,4");
    let view = PatternView::new(60, 50, a.offsets(), a.indices()).expect("valid");
    let b = operand(50, 4, Layout::ColumnMajor);
    let request = view.spmm(4).layouts(Layout::ColumnMajor, Layout::RowMajor);
    let mut plan: SpmmPlan<'_, f64> = request.plan(&Device::cpu()).expect("a plan");
    let mut c = Dense::zeros(60, 4, Layout::RowMajor).expect("small");
    plan.execute(a.values().as_slice(), &b, &mut c, ()).expect("C");
    assert!(oracle::Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes fit").ok);

    let SpmmRequest { pattern, problem } = a.pattern().spmm(4);
    let other = problem.layouts(Layout::ColumnMajor, Layout::ColumnMajor);
    let mut plan = SpmmRequest { pattern, problem: other }.plan(&Device::cpu()).expect("a plan");
    let mut turned = Dense::zeros(60, 4, Layout::ColumnMajor).expect("small");
    plan.execute(&a, &b, &mut turned, ()).expect("C");
    assert!(oracle::Spmm::new(a.view(), b.view()).verify(turned.view()).expect("shapes fit").ok);
}

#[test]
fn what_only_a_gpu_does_is_refused() {
    let a = matrix("banded:9,1");
    let refused = Device::cpu().upload(&a).expect_err("no memory of its own");
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(refused.to_string().contains("Device::cuda"), "{refused}");
}
