use gustav_core::{Csr, CsrView, Error, PlusTimes, Problem, SemiringKind};
use gustav_cpu::{Options, SpmvPlan, spmv};
use gustav_plan::Chooser;
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;
use gustav_testkit::oracle;

use crate::battery::options;

type Plan = SpmvPlan<f32, u32, u32>;

/// Options for every algorithm, instruction set of this machine and 1, 2 and 5 threads.
fn all_options() -> impl Iterator<Item = Options> {
    spmv::catalog().iter().flat_map(|entry| options(entry.algorithm))
}

fn execute(
    plan: &mut Plan,
    a: CsrView<'_, f32>,
    x: &[f32],
    rows: usize,
) -> gustav_core::Result<Vec<f32>> {
    let mut y = vec![f32::NAN; rows];
    plan.execute(PlusTimes, a, 1.0, x, 0.0, &mut y).map(|()| y)
}

fn right(a: CsrView<'_, f32>, x: &[f32], y: &[f32]) -> bool {
    oracle::spmv(SemiringKind::PlusTimes, a, false, x, 1.0, 0.0, None, y).unwrap().ok
}

#[test]
fn serves_new_values_and_copies_of_its_pattern() {
    let a: Csr<f32> = random_rows(500, 400, 9, |r| r % 40);
    let copy = a.clone();
    let x = values::<f32>(400, 1);
    for options in all_options() {
        let mut plan = Plan::new(a.view(), &Problem::spmv(&a.view()), &options).unwrap();
        for (seed, arrays) in [&a, &a, &copy, &a].into_iter().enumerate() {
            let new = values::<f32>(a.nnz(), 10 + seed as u64);
            let b = arrays.view().with_values(&new).unwrap();
            let y = execute(&mut plan, b, &x, 500).unwrap();
            assert!(right(b, &x, &y), "{options:?}");
        }
    }
}

#[test]
fn refuses_other_patterns_and_lengths() {
    let a: Csr<f32> = random_rows(520, 400, 9, |r| r % 40);
    let of_the_same_size: Csr<f32> = random_rows(520, 400, 9, |r| (r + 1) % 40);
    assert_eq!(of_the_same_size.nnz(), a.nnz());
    for options in all_options() {
        let problem = Problem::spmv(&a.view());
        let mut plan = Plan::new(a.view(), &problem, &options).unwrap();
        for (rows, cols, length) in [(519, 400, 20), (520, 401, 20), (520, 400, 7)] {
            let b: Csr<f32> = random_rows(rows, cols, 9, |_| length);
            let x = values::<f32>(cols, 1);
            let refusal = execute(&mut plan, b.view(), &x, rows).unwrap_err();
            assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
            let refusal = Plan::new(b.view(), &problem, &options).map(|_| ()).unwrap_err();
            assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
        }
        let x = values::<f32>(400, 1);
        let refusal = execute(&mut plan, of_the_same_size.view(), &x, 520).unwrap_err();
        assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
        for (inner, rows) in [(399, 520), (401, 520), (400, 519), (400, 521)] {
            let refusal = execute(&mut plan, a.view(), &vec![1.0; inner], rows).unwrap_err();
            assert!(matches!(refusal, Error::Shape { op: "spmv", .. }), "{refusal}");
        }
    }
}

/// Arrays at known addresses are only sampled, so a pattern written over the old one can pass
/// for it: the product is then wrong, but nothing is read or written out of bounds.
#[test]
fn a_pattern_overwritten_in_place_does_no_harm() {
    let (rows, cols) = (3000, 5000);
    let planned: Csr<f32> = random_rows(rows, cols, 5, |r| [3, 40, 0, 9][r % 4]);
    // The same number of entries in other rows, in columns as far right as they go.
    let nnz = planned.nnz();
    let crowded = |k: usize| if k < rows / 2 { 0 } else { nnz * (2 * k - rows) / rows };
    let (mut offsets, mut indices) = (planned.offsets().to_vec(), planned.indices().to_vec());
    let x = values::<f32>(cols, 1);
    for options in all_options() {
        offsets.copy_from_slice(planned.offsets());
        indices.copy_from_slice(planned.indices());
        let view = CsrView::new(rows, cols, &offsets, &indices, planned.values()).unwrap();
        let mut plan = Plan::new(view, &Problem::spmv(&view), &options).unwrap();
        // What is sampled stays: every 16th part of each array.
        let (step, sampled) = ((rows + 1).div_ceil(16), planned.offsets());
        for k in (0..=rows).filter(|k| k % step != 0) {
            let (low, high) = (k / step * step, (k / step + 1) * step);
            let high = sampled.get(high).map_or(nnz as u32, |o| *o);
            offsets[k] = (crowded(k) as u32).clamp(sampled[low], high);
        }
        offsets[rows] = nnz as u32;
        let step = nnz.div_ceil(16);
        (0..nnz).filter(|k| k % step != 0).for_each(|k| indices[k] = cols as u32 - 1);
        let view = CsrView::new(rows, cols, &offsets, &indices, planned.values()).unwrap();
        let y = execute(&mut plan, view, &x, rows).expect("the samples are the same");
        assert_eq!(y.len(), rows);
    }
}

#[test]
fn autotuning_is_refused_with_the_way_to_do_it() {
    let a: Csr<f32> = random_rows(5, 4, 9, |_| 2);
    let options = Options { chooser: Chooser::Autotune, ..Options::default() };
    let refusal = Plan::new(a.view(), &Problem::spmv(&a.view()), &options).map(|_| ()).unwrap_err();
    assert!(refusal.to_string().contains("gustav::Device"), "{refusal}");
}
