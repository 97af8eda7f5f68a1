//! One-shot products, builders and plans, each held to the oracle.

use gustav::{
    Algorithm, Chooser, Csr, Dense, Device, Error, Layout, MaxTimes, MinPlus, Operation, Problem,
    SemiringKind, Spgemm, Spmm, Spmv,
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
    let kind = SemiringKind::PlusTimes;
    let verdict = oracle::spmv(kind, a.view(), false, &x, 1.0, 0.0, None, &y);
    assert!(verdict.expect("shapes fit").ok);

    let c = gustav::spgemm(&a, &a).expect("shapes fit");
    let verdict = oracle::Spgemm::new(a.view(), a.view()).verify(c.view()).expect("shapes fit");
    assert!(verdict.ok, "{verdict}");
}

#[test]
fn builders_pass_every_option_on() {
    let a = matrix("banded:60,3");
    let b = operand(60, 5, Layout::ColumnMajor);
    let before = operand(60, 5, Layout::ColumnMajor);
    let mut c = before.clone();
    Spmm::new(&a, &b)
        .semiring(MinPlus)
        .alpha(1.5)
        .transpose_a(true)
        .deterministic(true)
        .threads(2)
        .run_into(0.25, &mut c)
        .expect("shapes fit");
    let reference = oracle::Spmm {
        semiring: SemiringKind::MinPlus,
        transpose_a: true,
        alpha: 1.5,
        beta: 0.25,
        before: Some(before.view()),
        ..oracle::Spmm::new(a.view(), b.view())
    };
    let verdict = reference.verify(c.view()).expect("shapes fit");
    assert!(verdict.ok, "{verdict}");

    let x = vec![2.0; 60];
    let y = Spmv::new(&a, &x).semiring(MaxTimes).alpha(-1.0).run().expect("shapes fit");
    let kind = SemiringKind::MaxTimes;
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
    let problem = Problem::spmm(&a.view()).columns(3).calls(100);
    let mut plan = Device::cpu().plan_spmm(&a, &problem).expect("supported");
    for factor in [1.0, -2.0] {
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        plan.execute(&a, 1.0, &b, 0.0, &mut c).expect("the pattern of the plan");
        let verdict = oracle::Spmm::new(a.view(), b.view()).verify(c.view());
        assert!(verdict.expect("shapes fit").ok);
    }
    let text = plan.explain().to_string();
    assert!(text.contains(plan.algorithm().name()) && text.contains(plan.reason()), "{text}");
    assert!(text.contains("cpu") && text.contains("mean 4.67"), "{text}");

    let other = matrix("grid5:10x10");
    let refusal = plan.execute(&other, 1.0, &b, 0.0, &mut c);
    assert!(matches!(refusal, Err(Error::Pattern { .. })));
}

#[test]
fn autotuning_says_what_it_timed() {
    let a = matrix("uniform:100x100,4");
    let device = Device::cpu().choose(Chooser::Autotune);
    let plan = device.plan_spmv(&a, &Problem::spmv(&a.view())).expect("supported");
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
                let spmm = Spmm::new(&a, &b).transpose_a(transpose).deterministic(true);
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
    let b = operand(100, 3, Layout::RowMajor);
    let spmm = Problem::spmm(&a.view()).columns(b.ncols()).deterministic(true);
    let spmv = Problem::spmv(&a.view()).deterministic(true);
    let spgemm = Problem::spgemm(&a.view(), &a.view()).deterministic(true);
    for refused in [
        device.plan_spmm(&a, &spmm).map(|_| ()),
        device.plan_spmv(&a, &spmv).map(|_| ()),
        device.plan_spgemm(&a, &a, &spgemm).map(|_| ()),
    ] {
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
            let plan = device.plan_spmm(&a, &Problem::spmm(&a.view()).columns(columns));
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
    let problem = Problem::spgemm(&a.view(), &a.view());
    let device = Device::cpu();
    let mut plan = device.plan_spgemm_masked(&a, &a, &mask, &problem).expect("a plan");
    assert_eq!(plan.algorithm(), Algorithm::Masked);
    assert_eq!(plan.execute(&a, 1.0, &a).expect("C"), c);

    let whole = Spgemm::new(&a, &a).run().expect("C");
    let sum = Spgemm::new(&a, &a).plus(2.0, &mask).run().expect("C");
    let both = whole.nnz() + mask.nnz() - sum.nnz();
    assert!(both > 0 && sum.nnz() > whole.nnz());
    let mut plan = device.plan_spgemm(&a, &a, &problem).expect("a plan");
    let again = plan.execute_add(gustav::PlusTimes, &a, 1.0, &a, 2.0, &mask).expect("C");
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
