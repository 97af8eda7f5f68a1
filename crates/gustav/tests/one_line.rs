//! Dense matrices of one row or one column, which are the same memory in both layouts.

use gustav::{Csr, Dense, Device, Error, Layout, Reduce, Scale, SpmmGradients};

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];

fn matrix(description: &str) -> Csr<f64> {
    let generator: gustav::io::Generator = description.parse().expect("a description");
    generator.build(5).expect("a small matrix")
}

fn operand(rows: usize, columns: usize, layout: Layout) -> Dense<f64> {
    Dense::from_fn(rows, columns, layout, |i, j| ((5 * i + 3 * j) % 7) as f64).expect("small")
}

fn products(device: &Device) {
    // B and C of one column; of one row each, as A has one row and one column.
    for (a, columns) in [("uniform:40x30,4", 1), ("uniform:1x1,1", 9)] {
        let a = matrix(a);
        for [planned, given] in LAYOUTS.map(|l| LAYOUTS.map(|g| [l, g])).concat() {
            let request = a.pattern().spmm(columns).layouts(planned, planned);
            let mut plan = request.plan::<f64, _>(device).expect("a plan");
            let b = operand(a.ncols(), columns, given);
            let mut c = operand(a.nrows(), columns, given);
            plan.execute(&a, &b, &mut c, Scale::new().beta(1.0)).expect("a product");
            for (i, j) in (0..a.nrows()).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                let (indices, values) = a.view().row(i);
                let terms = indices.iter().zip(values).map(|(k, v)| v * b.get(*k as usize, j));
                let expected = terms.sum::<f64>() + ((5 * i + 3 * j) % 7) as f64;
                assert!((c.get(i, j) - expected).abs() < 1e-12, "{planned}, {given}: ({i}, {j})");
            }
        }
    }
}

fn sampled(device: &Device) {
    let a = matrix("uniform:40x30,4");
    for [planned, given] in LAYOUTS.map(|l| LAYOUTS.map(|g| [l, g])).concat() {
        let (x, y) = (operand(40, 1, given), operand(30, 1, given));
        let request = a.pattern().sddmm(1).layouts(planned, planned);
        let mut plan = request.plan::<f64, _>(device).expect("a plan");
        let mut values = vec![-1.0; a.nnz()];
        plan.execute(&x, &y, &mut values, ()).expect("a product");
        for i in 0..a.nrows() {
            for p in a.view().row_range(i) {
                let expected = x.get(i, 0) * y.get(a.indices()[p] as usize, 0);
                assert_eq!(values[p], expected, "{planned}, {given}: {p}");
            }
        }
    }
}

/// Lines with gaps between their elements are of one layout alone.
fn refusals(device: &Device) {
    let a = matrix("uniform:40x30,4");
    let gaps = |rows: usize| {
        Dense::with_leading_dimension(rows, 1, Layout::RowMajor, 2, vec![1.0; 2 * rows])
            .expect("a column of a wider matrix")
    };
    let request = a.pattern().spmm(1).layouts(Layout::ColumnMajor, Layout::ColumnMajor);
    let mut plan = request.plan::<f64, _>(device).expect("a plan");
    let (b, mut c) = (operand(30, 1, Layout::ColumnMajor), operand(40, 1, Layout::ColumnMajor));
    let refused = plan.execute(&a, &gaps(30), &mut c, ());
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    let refused = plan.execute(&a, &b, &mut gaps(40), ());
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    // Two lines are as well.
    let request = a.pattern().spmm(2).layouts(Layout::RowMajor, Layout::RowMajor);
    let mut plan = request.plan::<f64, _>(device).expect("a plan");
    let mut c = operand(40, 2, Layout::RowMajor);
    let refused = plan.execute(&a, &operand(30, 2, Layout::ColumnMajor), &mut c, ());
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
}

/// Gradients of a maximum against those with all operands in the planned layout.
fn gradients(device: &Device) {
    let a = matrix("uniform:40x30,4");
    for planned in LAYOUTS {
        let request = a.pattern().spmm(1).layouts(planned, planned).reduce(Reduce::Max);
        let mut plan = SpmmGradients::plan(&request, device).expect("plans");
        // The first nonzero of every row wins.
        let winners = &a.offsets()[..40];
        let mut of = |given| {
            let (b, g, mut of_b) =
                (operand(30, 1, given), operand(40, 1, given), operand(30, 1, given));
            let mut of_values = vec![-1.0; a.nnz()];
            plan.of_b_with_winners(&a, &g, winners, &mut of_b, ()).expect("a gradient");
            plan.of_values_with_winners(&g, &b, winners, &mut of_values, ()).expect("a gradient");
            (of_b.data().to_vec(), of_values)
        };
        assert_eq!(of(LAYOUTS[0]), of(LAYOUTS[1]), "{planned}");
    }
}

fn all(device: &Device) {
    products(device);
    sampled(device);
    refusals(device);
    gradients(device);
}

#[test]
fn the_layout_does_not_matter() {
    all(&Device::cpu());
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_layout_does_not_matter_on_a_gpu() {
    all(&Device::cuda(0).expect("a CUDA device"));
}
