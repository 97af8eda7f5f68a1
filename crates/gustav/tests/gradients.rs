//! Gradients against finite differences in f64, on the CPU, and on a GPU against the CPU.

use gustav::{
    Csr, Dense, Device, Epilogue, Error, Layout, Reduce, Scale, SddmmCall, SddmmGradients,
    Semiring, SpgemmGradients, SpmmGradients, SpmmPlan, cuda::DeviceBuffer,
};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::battery::values::values;

const N: usize = 5;

fn dense(rows: usize, layout: Layout, seed: u64) -> Dense<f64> {
    let m = Dense::from_row_major(rows, N, values(rows * N, seed)).expect("values");
    m.to_layout(layout).expect("a copy")
}

/// ⟨G, α·op(A)·B⟩, whose gradients are asked for.
fn loss(a: &Csr<f64>, b: &Dense<f64>, g: &Dense<f64>, transposed: bool, alpha: f64) -> f64 {
    let mut sum = 0.0;
    for i in 0..a.nrows() {
        let (cols, values) = a.view().row(i);
        for (j, value) in cols.iter().zip(values) {
            let (to, from) = if transposed { (*j as usize, i) } else { (i, *j as usize) };
            sum += (0..N).map(|k| g.get(to, k) * alpha * value * b.get(from, k)).sum::<f64>();
        }
    }
    sum
}

/// The loss is linear in each operand, so that a difference quotient errs by rounding alone.
fn quotient(mut at: impl FnMut(f64) -> f64) -> f64 {
    let step = 0.5;
    (at(step) - at(-step)) / (2.0 * step)
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-10 * (1.0 + expected.abs()), "{found} {expected}");
}

#[test]
fn gradients_are_those_of_finite_differences() {
    use Layout::{ColumnMajor, RowMajor};
    let matrices =
        [random_rows::<f64, u32, u32>(23, 17, 1, |r| r % 6), unsorted::<f64, u32, u32>(20, 16, 2)];
    for a in matrices {
        for (transposed, layouts) in [
            (false, (RowMajor, ColumnMajor)),
            (true, (ColumnMajor, RowMajor)),
            (true, (RowMajor, RowMajor)),
        ] {
            let (rows, inner) =
                if transposed { (a.ncols(), a.nrows()) } else { (a.nrows(), a.ncols()) };
            let (b, g) = (dense(inner, layouts.0, 3), dense(rows, layouts.1, 4));
            let request = a.pattern().spmm(N).transpose(transposed).layouts(layouts.0, layouts.1);
            let mut gradients = SpmmGradients::plan(&request, &Device::cpu()).expect("plans");
            let scale = Scale::new().alpha(-1.5);
            let mut of_values = vec![f64::NAN; a.nnz()];
            gradients.of_values(&g, &b, &mut of_values, scale).expect("a gradient");
            let mut of_b = Dense::zeros(inner, N, layouts.0).expect("zeros");
            gradients.of_b(&a, &g, &mut of_b, scale).expect("a gradient");
            for p in 0..a.nnz() {
                let expected = quotient(|step| {
                    let mut a = a.clone();
                    a.values_mut()[p] += step;
                    loss(&a, &b, &g, transposed, -1.5)
                });
                close(of_values[p], expected);
            }
            for (i, k) in (0..inner).flat_map(|i| (0..N).map(move |k| (i, k))) {
                let expected = quotient(|step| {
                    let mut b = b.clone();
                    let value = b.get(i, k) + step;
                    b.view_mut().set(i, k, value);
                    loss(&a, &b, &g, transposed, -1.5)
                });
                close(of_b.get(i, k), expected);
            }
        }
    }
}

/// A product with a reduction.
#[derive(Clone, Copy)]
struct Product {
    reduce: Reduce,
    transposed: bool,
    layouts: (Layout, Layout),
}

impl Product {
    fn plan(self, a: &Csr<f64>) -> SpmmPlan<'static, f64> {
        let Product { reduce, transposed, layouts } = self;
        let request = a.pattern().spmm(N).transpose(transposed).layouts(layouts.0, layouts.1);
        request.reduce(reduce).plan(&Device::cpu()).expect("a plan")
    }

    /// ⟨G, −1.5·C⟩.
    fn loss(self, a: &Csr<f64>, b: &Dense<f64>, g: &Dense<f64>) -> f64 {
        let mut c = Dense::zeros(g.nrows(), N, self.layouts.1).expect("zeros");
        self.plan(a).execute(a, b, &mut c, Scale::new().alpha(-1.5)).expect("a product");
        let elements = (0..g.nrows()).flat_map(|i| (0..N).map(move |j| (i, j)));
        elements.map(|(i, j)| g.get(i, j) * c.get(i, j)).sum()
    }

    /// Both gradients of that.
    fn gradients(self, a: &Csr<f64>, b: &Dense<f64>, g: &Dense<f64>) -> (Vec<f64>, Dense<f64>) {
        let Product { reduce, transposed, layouts } = self;
        let request = a.pattern().spmm(N).transpose(transposed).layouts(layouts.0, layouts.1);
        let request = request.reduce(reduce);
        let mut gradients = SpmmGradients::plan(&request, &Device::cpu()).expect("plans");
        let scale = Scale::new().alpha(-1.5);
        let mut of_values = vec![f64::NAN; a.nnz()];
        let mut of_b = Dense::zeros(b.nrows(), N, layouts.0).expect("zeros");
        if reduce == Reduce::Mean {
            gradients.of_values(g, b, &mut of_values, scale).expect("a gradient");
            gradients.of_b(a, g, &mut of_b, scale).expect("a gradient");
        } else {
            let winners = self.winners(a, b, g);
            let of = gradients.of_values_with_winners(g, b, &winners, &mut of_values, scale);
            of.expect("a gradient");
            let wide: Vec<u64> = winners.iter().map(|w| wide(*w)).collect();
            gradients.of_b_with_winners(a, g, &wide, &mut of_b, scale).expect("a gradient");
        }
        (of_values, of_b)
    }

    fn winners(self, a: &Csr<f64>, b: &Dense<f64>, g: &Dense<f64>) -> Vec<u32> {
        let mut winners = vec![0u32; g.nrows() * N];
        let mut c = Dense::zeros(g.nrows(), N, self.layouts.1).expect("zeros");
        let mut plan = self.plan(a);
        plan.execute_with_winners(a, b, &mut c, &mut winners, ()).expect("a product");
        winners
    }
}

fn wide(winner: u32) -> u64 {
    if winner == u32::MAX { u64::MAX } else { winner.into() }
}

#[test]
fn gradients_of_reductions_are_those_of_finite_differences() {
    use Layout::{ColumnMajor, RowMajor};
    // Linear between changes of a winner, which are farther away.
    let quotient = |mut at: Box<dyn FnMut(f64) -> f64>| {
        let step = 1.0 / 65536.0;
        (at(step) - at(-step)) / (2.0 * step)
    };
    let near = |found: f64, expected: f64| {
        assert!((found - expected).abs() <= 1e-8 * (1.0 + expected.abs()), "{found} {expected}");
    };
    let matrices =
        [random_rows::<f64, u32, u32>(23, 17, 1, |r| r % 6), unsorted::<f64, u32, u32>(20, 16, 2)];
    for (a, reduce) in matrices
        .iter()
        .flat_map(|a| [Reduce::Mean, Reduce::Max, Reduce::Min].map(move |reduce| (a, reduce)))
    {
        for (transposed, layouts) in [
            (false, (RowMajor, ColumnMajor)),
            (true, (ColumnMajor, RowMajor)),
            (true, (RowMajor, RowMajor)),
        ] {
            let product = Product { reduce, transposed, layouts };
            let (rows, inner) =
                if transposed { (a.ncols(), a.nrows()) } else { (a.nrows(), a.ncols()) };
            let (b, g) = (dense(inner, layouts.0, 3), dense(rows, layouts.1, 4));
            let (of_values, of_b) = product.gradients(a, &b, &g);
            for (p, found) in of_values.iter().enumerate() {
                let (a, b, g) = (a.clone(), b.clone(), g.clone());
                let expected = quotient(Box::new(move |step| {
                    let mut a = a.clone();
                    a.values_mut()[p] += step;
                    product.loss(&a, &b, &g)
                }));
                near(*found, expected);
            }
            for (i, k) in (0..inner).flat_map(|i| (0..N).map(move |k| (i, k))) {
                let (a, b, g) = (a.clone(), b.clone(), g.clone());
                let expected = quotient(Box::new(move |step| {
                    let mut b = b.clone();
                    let value = b.get(i, k) + step;
                    b.view_mut().set(i, k, value);
                    product.loss(&a, &b, &g)
                }));
                near(of_b.get(i, k), expected);
            }
        }
    }
}

/// Two rows of two nonzeros: equal products, and one that is not a number; and an empty one.
fn ties() -> (Csr<f64>, Dense<f64>, Dense<f64>) {
    let a = Csr::new(3, 3, vec![0, 3, 5, 5], vec![0, 1, 2, 0, 2], vec![1.0, 2.0, 1.0, 3.0, 1.0]);
    let b: Vec<f64> = [[2.0; N], [1.0; N], [f64::NAN, 0.5, 2.0, 6.0, -1.0]].concat();
    let g: Vec<f64> = (1..=3 * N).map(|k| k as f64).collect();
    let dense = |data| Dense::from_row_major(3, N, data).expect("values");
    (a.expect("a matrix"), dense(b), dense(g))
}

#[test]
fn the_first_of_equals_and_nan_get_the_gradient() {
    let (a, b, g) = ties();
    let layouts = (Layout::RowMajor, Layout::RowMajor);
    let product = Product { reduce: Reduce::Max, transposed: false, layouts };
    // Row 0: 2·1 and 1·2 tie, but where column 2 has NaN or more. Row 1: 6 against column 2.
    let none = u32::MAX;
    let expected = [[2, 0, 0, 2, 0], [4, 3, 3, 3, 3], [none; N]].concat();
    assert_eq!(product.winners(&a, &b, &g), expected);
    let (of_values, of_b) = product.gradients(&a, &b, &g);
    // −1.5 G where they won, times B; NaN of B reaches the value that it won with.
    let won = |row: usize, columns: &[usize], b: f64| {
        -1.5 * columns.iter().map(|j| g.get(row, *j) * b).sum::<f64>()
    };
    assert_eq!(of_values[0], won(0, &[1, 2, 4], 2.0));
    assert_eq!(of_values[1], 0.0);
    assert!(of_values[2].is_nan() && of_values[4].is_nan());
    assert_eq!(of_values[3], won(1, &[1, 2, 3, 4], 2.0));
    assert_eq!(of_b.get(0, 0), 0.0);
    assert_eq!(of_b.get(0, 1), -1.5 * (1.0 * g.get(0, 1) + 3.0 * g.get(1, 1)));
    assert_eq!(of_b.get(1, 1), 0.0);
    assert_eq!(of_b.get(2, 0), -1.5 * (g.get(0, 0) + g.get(1, 0)));
    assert_eq!(of_b.get(2, 3), -1.5 * g.get(0, 3));
}

#[test]
fn winners_that_name_no_nonzero_of_their_row_pass_nothing_on() {
    let (a, b, g) = ties();
    for transposed in [false, true] {
        let request = a.pattern().spmm(N).transpose(transposed).reduce(Reduce::Min);
        let mut gradients = SpmmGradients::plan(&request, &Device::cpu()).expect("plans");
        let foreign: Vec<u32> =
            (0..3 * N as u32).map(|k| [5, 1000, u32::MAX, u32::MAX - 1][k as usize % 4]).collect();
        let (mut of_values, mut of_b) = (vec![1.0; 5], dense(3, Layout::RowMajor, 5));
        gradients.of_values_with_winners(&g, &b, &foreign, &mut of_values, ()).expect("zeros");
        assert_eq!(of_values, [0.0; 5]);
        gradients.of_b_with_winners(&a, &g, &foreign, &mut of_b, ()).expect("zeros");
        assert!(of_b.data().iter().all(|v| *v == 0.0));
    }
}

#[test]
fn gradients_with_and_without_winners_do_not_stand_for_each_other() {
    let (a, b, g) = ties();
    let winners = vec![0u64; 3 * N];
    let mut values = vec![0.0; 5];
    let plan = |reduce| {
        SpmmGradients::<f64>::plan(&a.pattern().spmm(N).reduce(reduce), &Device::cpu()).expect("it")
    };
    let wrong = |outcome: gustav::Result<()>| {
        assert!(matches!(outcome, Err(Error::Argument { name: "winners", .. })), "{outcome:?}");
    };
    wrong(plan(Reduce::Max).of_values(&g, &b, &mut values, ()));
    for reduce in [Reduce::Sum, Reduce::Mean] {
        wrong(plan(reduce).of_values_with_winners(&g, &b, &winners, &mut values, ()));
    }
    let few = plan(Reduce::Min).of_values_with_winners(&g, &b, &winners[1..], &mut values, ());
    assert!(matches!(few, Err(Error::Length { what: "winners", .. })), "{few:?}");
}

#[test]
fn what_has_no_gradient_here_is_refused() {
    let a = random_rows::<f64, u32, u32>(5, 5, 1, |_| 2);
    let refused = |request| {
        let error = SpmmGradients::<f64>::plan(&request, &Device::cpu()).err().expect("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    };
    refused(a.pattern().spmm(N).semiring(Semiring::MinPlus));
    refused(a.pattern().spmm(N).epilogue(Epilogue { relu: true, ..Epilogue::default() }));
    refused(a.pattern().spmm(N).reduce(Reduce::Max).semiring(Semiring::MinPlus));
    refused(a.pattern().spmm(N).reduce(Reduce::Max).batch(2));
    refused(a.pattern().spmm(N).reduce(Reduce::Mean).batch(2));
    let integers = random_rows::<i64, u32, u32>(5, 5, 1, |_| 2);
    let request = integers.pattern().spmm(N).reduce(Reduce::Mean);
    let error = SpmmGradients::<i64>::plan(&request, &Device::cpu()).err().expect("a refusal");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn gradients_of_reductions_on_a_gpu_are_those_on_the_cpu() {
    use Layout::{ColumnMajor, RowMajor};
    let gpu = Device::cuda(0).expect("a CUDA device");
    // Rows and columns that are cut, and empty ones.
    let a = random_rows::<f64, u32, u32>(400, 300, 1, |r| if r == 7 { 300 } else { r % 30 });
    for (reduce, transposed) in [Reduce::Mean, Reduce::Max, Reduce::Min]
        .into_iter()
        .flat_map(|reduce| [(reduce, false), (reduce, true)])
    {
        let layouts = if transposed { (ColumnMajor, RowMajor) } else { (RowMajor, ColumnMajor) };
        let product = Product { reduce, transposed, layouts };
        let (rows, inner) = if transposed { (300, 400) } else { (400, 300) };
        let (b, g) = (dense(inner, layouts.0, 3), dense(rows, layouts.1, 4));
        let (of_values, of_b) = product.gradients(&a, &b, &g);
        let scale = || Scale::new().alpha(-1.5);
        let winners: Vec<u32> = match reduce {
            Reduce::Mean => Vec::new(),
            _ => product.winners(&a, &b, &g),
        };
        let request = a.pattern().spmm(N).transpose(transposed).layouts(layouts.0, layouts.1);
        let mut staged = SpmmGradients::plan(&request.reduce(reduce), &gpu).expect("plans");
        let mut values = vec![0.0; a.nnz()];
        let mut to = Dense::zeros(inner, N, layouts.0).expect("zeros");
        if reduce == Reduce::Mean {
            staged.of_values(&g, &b, &mut values, scale()).expect("a gradient");
            staged.of_b(&a, &g, &mut to, scale()).expect("a gradient");
        } else {
            let of = staged.of_values_with_winners(&g, &b, &winners, &mut values, scale());
            of.expect("a gradient");
            let of = staged.of_b_with_winners(&a, &g, &winners, &mut to, scale());
            of.expect("a gradient");
        }
        values.iter().zip(&of_values).for_each(|(f, e)| close(*f, *e));
        to.data().iter().zip(of_b.data()).for_each(|(f, e)| close(*f, *e));

        let (on_a, on_b, on_g) =
            (gpu.upload(&a).expect("A"), gpu.upload(&b).expect("B"), gpu.upload(&g).expect("G"));
        let request = on_a.pattern().spmm(N).transpose(transposed).layouts(layouts.0, layouts.1);
        let request = request.reduce(reduce);
        let mut resident = SpmmGradients::plan(&request, &gpu).expect("plans");
        let device = gpu.cuda_device().expect("it");
        let mut values = DeviceBuffer::zeros(device, a.nnz(), "values").expect("memory");
        let mut to = gpu.zeros(inner, N, layouts.0).expect("zeros");
        if reduce == Reduce::Mean {
            resident.of_values(&on_g, &on_b, &mut values, scale()).expect("a gradient");
            resident.of_b(&on_a, &on_g, &mut to, scale()).expect("a gradient");
        } else {
            // The winners are those of the CPU, in 64 bits.
            let mut won = DeviceBuffer::<u64>::zeros(device, rows * N, "winners").expect("memory");
            let mut c = gpu.zeros(rows, N, layouts.1).expect("zeros");
            let mut plan: SpmmPlan<'_, f64> = request.plan(&gpu).expect("a plan");
            plan.execute_with_winners(&on_a, &on_b, &mut c, &mut won, ()).expect("a product");
            let expected: Vec<u64> = winners.iter().map(|w| wide(*w)).collect();
            assert_eq!(&*won.to_host().expect("winners"), &expected[..]);
            let of = resident.of_values_with_winners(&on_g, &on_b, &won, &mut values, scale());
            of.expect("a gradient");
            let of = resident.of_b_with_winners(&on_a, &on_g, &won, &mut to, scale());
            of.expect("a gradient");
        }
        let host = values.to_host().expect("values");
        host.iter().zip(&of_values).for_each(|(f, e)| close(*f, *e));
        let to = to.download().expect("the gradient");
        to.data().iter().zip(of_b.data()).for_each(|(f, e)| close(*f, *e));
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn gradients_on_a_gpu_are_those_on_the_cpu() {
    let gpu = Device::cuda(0).expect("a CUDA device");
    let a = random_rows::<f64, u32, u32>(400, 300, 1, |r| r % 30);
    let (b, g) = (dense(300, Layout::RowMajor, 3), dense(400, Layout::RowMajor, 4));
    let mut on_cpu = SpmmGradients::plan(&a.pattern().spmm(N), &Device::cpu()).expect("plans");
    let (mut of_values, mut of_b) =
        (vec![0.0; a.nnz()], Dense::zeros(300, N, Layout::RowMajor).expect("zeros"));
    on_cpu.of_values(&g, &b, &mut of_values, ()).expect("a gradient");
    on_cpu.of_b(&a, &g, &mut of_b, ()).expect("a gradient");

    // Operands in host memory, and in the GPU's.
    let mut staged = SpmmGradients::plan(&a.pattern().spmm(N), &gpu).expect("plans");
    let mut found = vec![0.0; a.nnz()];
    staged.of_values(&g, &b, &mut found, SddmmCall::new()).expect("a gradient");
    found.iter().zip(&of_values).for_each(|(f, e)| close(*f, *e));

    let (on_a, on_b, on_g) =
        (gpu.upload(&a).expect("A"), gpu.upload(&b).expect("B"), gpu.upload(&g).expect("G"));
    let request = on_a.pattern().spmm(N);
    let mut resident = SpmmGradients::plan(&request, &gpu).expect("plans");
    let mut to = gpu.zeros(300, N, Layout::RowMajor).expect("zeros");
    resident.of_b(&on_a, &on_g, &mut to, ()).expect("a gradient");
    let to = to.download().expect("the gradient");
    to.data().iter().zip(of_b.data()).for_each(|(f, e)| close(*f, *e));
    let values =
        gustav::cuda::DeviceBuffer::zeros(gpu.cuda_device().expect("it"), a.nnz(), "values");
    let mut values = values.expect("memory");
    resident.of_values(&on_g, &on_b, &mut values, ()).expect("a gradient");
    let host = values.to_host().expect("values");
    host.iter().zip(&of_values).for_each(|(f, e)| close(*f, *e));
}

#[test]
fn gradients_of_an_sddmm_are_those_of_finite_differences() {
    use Layout::{ColumnMajor, RowMajor};
    let pattern = random_rows::<f64, u32, u32>(23, 17, 5, |r| r % 6);
    let pattern = pattern.pattern();
    let g = values::<f64>(pattern.nnz(), 6);
    for layouts in [(RowMajor, ColumnMajor), (ColumnMajor, RowMajor)] {
        let (x, y) = (dense(23, layouts.0, 7), dense(17, layouts.1, 8));
        let loss = |x: &Dense<f64>, y: &Dense<f64>| -> f64 {
            let nonzeros = (0..23).flat_map(|i| pattern.view().row(i).iter().map(move |j| (i, *j)));
            let product = |(i, j): (usize, u32)| {
                (0..N).map(|k| x.get(i, k) * y.get(j as usize, k)).sum::<f64>()
            };
            nonzeros.zip(&g).map(|(at, g)| -1.5 * g * product(at)).sum()
        };
        let request = pattern.sddmm(N).layouts(layouts.0, layouts.1);
        let mut gradients = SddmmGradients::plan(&request, &Device::cpu()).expect("plans");
        let scale = Scale::new().alpha(-1.5);
        let mut of_x = Dense::zeros(23, N, layouts.0).expect("zeros");
        gradients.of_x(&g, &y, &mut of_x, scale).expect("a gradient");
        let mut of_y = Dense::zeros(17, N, layouts.1).expect("zeros");
        gradients.of_y(&g, &x, &mut of_y, scale).expect("a gradient");
        for k in 0..N {
            for i in 0..23 {
                close(of_x.get(i, k), quotient(|step| loss(&moved(&x, i, k, step), &y)));
            }
            for j in 0..17 {
                close(of_y.get(j, k), quotient(|step| loss(&x, &moved(&y, j, k, step))));
            }
        }
    }
}

/// The matrix with `step` added to an element.
fn moved(m: &Dense<f64>, i: usize, j: usize, step: f64) -> Dense<f64> {
    let mut moved = m.clone();
    moved.view_mut().set(i, j, m.get(i, j) + step);
    moved
}

#[test]
fn gradients_of_an_spgemm_are_those_of_finite_differences() {
    let a = random_rows::<f64, u32, u32>(23, 17, 9, |r| r % 5);
    let b = random_rows::<f64, u32, u32>(17, 19, 10, |r| r % 4);
    let c = gustav::spgemm(&a, &b).expect("a product");
    // All of the product, part of it and more than it.
    let wider = random_rows::<f64, u32, u32>(23, 19, 11, |r| r % 13);
    for pattern in [c.pattern(), wider.pattern()] {
        let g = values::<f64>(pattern.nnz(), 12);
        let loss = |a: &Csr<f64>, b: &Csr<f64>| -> f64 {
            let at = |i: usize, j: u32| {
                let (columns, values) = a.view().row(i);
                let of_b = |k: u32| {
                    let (columns, values) = b.view().row(k as usize);
                    columns.iter().position(|c| *c == j).map_or(0.0, |p| values[p])
                };
                columns.iter().zip(values).map(|(k, v)| v * of_b(*k)).sum::<f64>()
            };
            let nonzeros = (0..23).flat_map(|i| pattern.view().row(i).iter().map(move |j| (i, *j)));
            nonzeros.zip(&g).map(|((i, j), g)| 0.5 * g * at(i, j)).sum()
        };
        let mut gradients =
            SpgemmGradients::plan(a.pattern(), b.pattern(), pattern, &Device::cpu())
                .expect("plans");
        let (mut of_a, mut of_b) = (vec![f64::NAN; a.nnz()], vec![f64::NAN; b.nnz()]);
        gradients.of_a(&g, &b, &mut of_a, 0.5).expect("a gradient");
        gradients.of_b(&a, &g, &mut of_b, 0.5).expect("a gradient");
        let changed = |m: &Csr<f64>, p: usize, step: f64| {
            let mut values = m.values().to_vec();
            values[p] += step;
            Csr::from_pattern(m.pattern(), values).expect("a matrix")
        };
        for p in 0..a.nnz() {
            close(of_a[p], quotient(|step| loss(&changed(&a, p, step), &b)));
        }
        for p in 0..b.nnz() {
            close(of_b[p], quotient(|step| loss(&a, &changed(&b, p, step))));
        }
        let refused = gradients.of_a(&g[1..], &b, &mut of_a, 1.0);
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    }
    let other = SpgemmGradients::<f64>::plan(a.pattern(), b.pattern(), b.pattern(), &Device::cpu());
    assert!(matches!(other.err(), Some(Error::Shape { .. })));
    let twice = unsorted::<f64, u32, u32>(17, 19, 2);
    let refused =
        SpgemmGradients::<f64>::plan(a.pattern(), twice.pattern(), c.pattern(), &Device::cpu());
    assert!(matches!(refused.err(), Some(Error::Unsupported { .. })));
}
