use gustav_core::{
    Buffer, Csr, Dense, DenseView, DenseViewMut, Epilogue, Error, Layout, Problem, bf16, f16,
};
use gustav_cpu::arch::Isa;
use gustav_cpu::{CpuScalar, Options, SpmmPlan, spmm};
use gustav_plan::{Algorithm, Chooser};

use crate::battery::numbers;

pub fn matrix(scale: f32) -> Csr<f32> {
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for r in 0..40u32 {
        indices.extend((0..r % 7).map(|k| (r * 3 + k * 5) % 30));
        offsets.push(indices.len() as u32);
    }
    let values: Vec<_> = numbers(indices.len()).into_iter().map(|v| v * scale).collect();
    Csr::new(40, 30, offsets, indices, values).unwrap()
}

pub fn choosers() -> impl Iterator<Item = Chooser> {
    let named = spmm::catalog().iter().map(|e| Chooser::Named(e.algorithm));
    [Chooser::Auto, Chooser::MeanRowLength].into_iter().chain(named)
}

#[test]
fn a_plan_takes_new_values() {
    let (a, twice) = (matrix(1.0), matrix(2.0));
    for chooser in choosers() {
        for (transposed, n) in [(false, 1), (false, 20), (true, 1), (true, 20)] {
            let options = Options { chooser, ..Options::default() };
            let problem = Problem::spmm(&a.view()).columns(n).transpose_a(transposed);
            let mut plan = SpmmPlan::<f32>::new(&a, &problem, &options).unwrap();
            let b =
                Dense::from_row_major(problem.inner(), n, numbers(problem.inner() * n)).unwrap();
            let mut c = Dense::zeros(problem.output_rows(), n, Layout::RowMajor).unwrap();
            plan.execute(&a, &b, &mut c, ()).unwrap();
            let first = c.clone();
            plan.execute(twice.values().as_slice(), &b, &mut c, ()).unwrap();
            assert!(first.data().iter().any(|x| *x != 0.0));
            for (x, y) in first.data().iter().zip(c.data()) {
                assert_eq!(2.0 * x, *y, "{chooser}, n = {n}, transposed {transposed}");
            }
        }
    }
}

#[test]
fn a_problem_of_another_size_is_refused() {
    let a = matrix(1.0);
    let other = Csr::<f32>::empty(40, 30).unwrap();
    let problem = Problem::spmm(&a.view()).columns(4);
    let planned = SpmmPlan::<f32>::new(&other, &problem, &Options::default()).map(|_| ());
    assert!(matches!(planned, Err(Error::Pattern { .. })), "{planned:?}");
}

#[test]
fn shapes_and_layouts_are_checked() {
    let a = matrix(1.0);
    let problem = Problem::spmm(&a.view()).columns(4);
    let mut plan = SpmmPlan::<f32>::new(&a, &problem, &Options::default()).unwrap();
    let dense = |m, n, layout| Dense::<f32>::zeros(m, n, layout).unwrap();
    for (b, mut c) in [
        (dense(29, 4, Layout::RowMajor), dense(40, 4, Layout::RowMajor)),
        (dense(30, 5, Layout::RowMajor), dense(40, 4, Layout::RowMajor)),
        (dense(30, 4, Layout::RowMajor), dense(41, 4, Layout::RowMajor)),
        (dense(30, 4, Layout::ColumnMajor), dense(40, 4, Layout::RowMajor)),
        (dense(30, 4, Layout::RowMajor), dense(40, 4, Layout::ColumnMajor)),
    ] {
        let refused = plan.execute(&a, &b, &mut c, ());
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    }
}

#[test]
fn algorithms_of_other_products_are_refused() {
    let a = matrix(1.0);
    let options = Options { chooser: Chooser::Named(Algorithm::Gustavson), ..Options::default() };
    let spmm = SpmmPlan::<f32>::new(&a, &Problem::spmm(&a.view()), &options).map(|_| ());
    assert!(matches!(spmm, Err(Error::Unsupported { .. })), "{spmm:?}");
    let spmv = SpmmPlan::<f32>::new(&a, &Problem::spmv(&a.view()), &Options::default()).map(|_| ());
    assert!(matches!(spmv, Err(Error::Unsupported { .. })), "{spmv:?}");
}

#[test]
fn the_workspace_is_counted() {
    let a = matrix(1.0);
    let plain = Problem::spmm(&a.view()).columns(64);
    let turned = plain.clone().layouts(Layout::ColumnMajor, Layout::ColumnMajor);
    let bytes = |p| SpmmPlan::<f32>::new(&a, p, &Options::default()).unwrap().workspace_bytes();
    assert!(bytes(&turned) >= bytes(&plain) + (30 + 40) * 32 * 4);
}

#[test]
fn c_may_lie_anywhere() {
    fn check<T: CpuScalar>() {
        let a = matrix(1.0);
        let values = a.values().iter().map(|v| T::from_f64(f64::from(*v))).collect::<Vec<_>>();
        let (rows, cols) = (a.nrows(), a.ncols());
        let a = Csr::new(rows, cols, a.offsets().to_vec(), a.indices().to_vec(), values).unwrap();
        for n in [8, 16, 24, 32, 33] {
            let b: Vec<T> = numbers(cols * n).iter().map(|v| T::from_f64(f64::from(*v))).collect();
            let b = DenseView::row_major(cols, n, &b).unwrap();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
                let mut expected = None;
                for (streaming, shift) in
                    [false, true].into_iter().flat_map(|s| (0..9).map(move |k| (s, k)))
                {
                    let options = Options {
                        chooser: Chooser::Named(Algorithm::RowSplit),
                        isa: Some(isa),
                        streaming: Some(streaming),
                        ..Options::default()
                    };
                    let problem = Problem::spmm(&a.view()).columns(n);
                    let mut plan = SpmmPlan::<T>::new(&a, &problem, &options).unwrap();
                    let mut memory = Buffer::zeroed(rows * n + 9, "C").unwrap();
                    memory.fill(T::from_f64(7.0));
                    let range = shift..shift + rows * n;
                    let c =
                        DenseViewMut::new(rows, n, Layout::RowMajor, n, &mut memory[range.clone()])
                            .unwrap();
                    plan.execute(&a, b, c, ()).unwrap();
                    let around = memory[..range.start].iter().chain(&memory[range.end..]);
                    assert!(around.into_iter().all(|v| v.to_f64() == 7.0), "written beside C");
                    let found: Vec<f64> = memory[range].iter().map(|v| v.to_f64()).collect();
                    assert!(found.iter().any(|v| *v != 0.0), "an empty product proves nothing");
                    let expected = expected.get_or_insert_with(|| found.clone());
                    assert!(*expected == found, "{isa}, n = {n}, streaming {streaming}, {shift}");
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<bf16>();
}

#[test]
fn autotuning_is_refused_with_the_way_to_do_it() {
    let a = matrix(1.0);
    for n in [1, 8] {
        let problem = Problem::spmm(&a.view()).columns(n);
        let options = Options { chooser: Chooser::Autotune, ..Options::default() };
        let refusal = SpmmPlan::<f32>::new(&a, &problem, &options).map(|_| ()).unwrap_err();
        assert!(refusal.to_string().contains("gustav::Device"), "{refusal}");
    }
}

#[test]
fn an_epilogue_is_refused_by_name() {
    let a = Csr::new(1, 1, vec![0u32, 1], vec![0u32], vec![1f32]).expect("a matrix");
    let relu = Epilogue { relu: true, ..Default::default() };
    let problem = Problem::spmm(&a.view()).columns(2).epilogue(relu);
    let refused = SpmmPlan::<f32>::new(&a, &problem, &Options::default());
    let words = refused.err().expect("a refusal").to_string();
    assert!(words.contains("ReLU") && words.contains("CUDA"), "{words}");
}
