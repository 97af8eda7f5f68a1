//! What the kernels of the papers have in common.

use gustav_core::{Csr, Dense, Layout, PlusTimes, Problem, Scalar, Semiring};
use gustav_cuda::{Call, Config, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm};

use crate::common::{device, run};

/// The battery in `layout` with `config`, or with the algorithm's own choice.
pub fn check<T: Scalar>(algorithm: Algorithm, layout: Layout, config: Option<Config>) {
    check_layouts::<T>(algorithm, (layout, layout), config);
}

/// The same with B and C in `layouts`.
pub fn check_layouts<T: Scalar>(
    algorithm: Algorithm,
    layouts: (Layout, Layout),
    config: Option<Config>,
) {
    let settings = Settings::default().untransposed().layout(layouts.0, layouts.1);
    let options = Options { chooser: Chooser::Named(algorithm), config, ..Options::default() };
    let device = device();
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        run::<T, u32, u32, PlusTimes>(&device, &options, case)
    });
}

/// What the papers leave out is refused by name, with what works.
pub fn check_refusals(algorithm: Algorithm, layout: Layout) {
    let device = device();
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let a = DeviceCsr::upload(&device, &eye.view()).expect("A");
    let other = match layout {
        Layout::RowMajor => Layout::ColumnMajor,
        Layout::ColumnMajor => Layout::RowMajor,
    };
    let problem = a.pattern().spmm(1).problem.layouts(layout, layout);
    let refused = [
        problem.clone().transpose_a(true),
        problem.clone().semiring(Semiring::MinPlus),
        problem.layouts(other, layout),
    ];
    for problem in refused {
        let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
        let plan = SpmmPlan::<f32>::new(a.pattern(), &problem, &options);
        let text = plan.err().expect("a refusal").to_string();
        let named = text.contains(algorithm.name()) && text.contains("segmented");
        assert!(named, "{problem}: {text}");
    }
}

/// What multiplies zeros that are not stored refuses operands that nobody declared finite, and
/// semirings in which zero is nothing special.
pub fn check_padding(algorithm: Algorithm, refine: impl Fn(Problem) -> Problem) {
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let a = DeviceCsr::upload(&device(), &eye.view()).expect("A");
    let options = Options { chooser: Chooser::Named(algorithm), config: None, order: None };
    let refused = [
        (a.pattern().spmm(1).problem, "finite"),
        (a.pattern().spmm(1).problem.finite(true).semiring(Semiring::MinPlus), "plus-times"),
    ];
    for (problem, reason) in refused {
        let text = SpmmPlan::<f32>::new(a.pattern(), &refine(problem), &options)
            .err()
            .expect("a refusal")
            .to_string();
        assert!(text.contains(reason) && text.contains("segmented"), "{text}");
    }
    let plan = SpmmPlan::<f32>::new(
        a.pattern(),
        &refine(a.pattern().spmm(1).problem.finite(true)),
        &options,
    );
    assert!(plan.is_ok(), "{:?}", plan.err());
}

/// The row-major product of whole numbers, which every order of summation gives.
pub fn product(a: &Csr<f32>, b: &Dense<f32>) -> Vec<f32> {
    let (view, n) = (a.view(), b.ncols());
    let mut c = vec![0f32; a.nrows() * n];
    for (r, sums) in c.chunks_exact_mut(n).enumerate() {
        let (columns, values) = view.row(r);
        for (column, value) in columns.iter().zip(values) {
            let row = &b.data()[*column as usize * n..][..n];
            sums.iter_mut().zip(row).for_each(|(sum, b)| *sum += value * b);
        }
    }
    c
}

/// One plan multiplies by whatever values its pattern holds, and by those that it converted.
pub fn check_values(algorithm: Algorithm, refine: impl Fn(Problem) -> Problem) {
    let device = device();
    let (rows, columns) = (90, 5);
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for r in 0..rows as u32 {
        indices.extend((0..r % 23).map(|k| (r * 7 + k * 4) % 90));
        offsets.push(indices.len() as u32);
    }
    let nnz = indices.len();
    let mut host = Csr::<f32>::new(rows, rows, offsets, indices, vec![0.0; nnz]).expect("a matrix");
    let mut a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let b = Dense::from_fn(rows, columns, Layout::RowMajor, |i, j| (i % 8 + j) as f32).expect("B");
    let b_on = DeviceDense::upload(&device, &b.view()).expect("B");
    let mut c = DeviceDense::zeros(&device, rows, columns, Layout::RowMajor).expect("C");
    let options = Options { chooser: Chooser::Named(algorithm), config: None, order: None };
    let problem = refine(a.pattern().spmm(columns).problem);
    let mut plan = SpmmPlan::<f32>::new(a.pattern(), &problem, &options).expect("a plan");
    for round in 1..4 {
        let values: Vec<f32> = (0..nnz).map(|k| (k * round % 16) as f32).collect();
        a.values_mut().write(&values).expect("values");
        host.values_mut().copy_from_slice(&values);
        let transposed = problem.transpose_a.then(|| host.view().transpose().expect("Aᵀ"));
        let host = transposed.as_ref().unwrap_or(&host);
        let expected: Vec<f32> = product(host, &b).iter().map(|sum| 2.0 * sum).collect();
        for convert in [round > 1, true] {
            c.data_mut().fill(0xff, device.stream()).expect("NaN");
            if convert {
                plan.convert(&a, Call::new()).expect("converted");
            }
            plan.execute(&a, &b_on, &mut c, Call::new().alpha(2.0).reuse_conversion(true))
                .expect("C");
            assert_eq!(c.data().to_host().expect("C")[..], expected, "round {round}, converted");
        }
        plan.execute(&a, &b_on, &mut c, Call::new().alpha(2.0)).expect("C");
        assert_eq!(c.data().to_host().expect("C")[..], expected, "round {round}");
    }
}
