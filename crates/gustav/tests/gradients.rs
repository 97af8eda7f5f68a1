//! Gradients against finite differences in f64, on the CPU, and on a GPU against the CPU.

use gustav::{
    Csr, Dense, Device, Epilogue, Error, Layout, Scale, SddmmCall, Semiring, SpmmGradients,
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

#[test]
fn what_has_no_gradient_here_is_refused() {
    let a = random_rows::<f64, u32, u32>(5, 5, 1, |_| 2);
    let refused = |request| {
        let error = SpmmGradients::<f64>::plan(&request, &Device::cpu()).err().expect("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    };
    refused(a.pattern().spmm(N).semiring(Semiring::MinPlus));
    refused(a.pattern().spmm(N).epilogue(Epilogue { relu: true, ..Epilogue::default() }));
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
