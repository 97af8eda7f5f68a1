//! Batches are the products that one after another gives, wherever their matrices lie.

use gustav::{
    CpuScalar, Csr, Dense, Device, Error, Layout, Pattern, Reduce, Scalar, SddmmCall, SddmmPlan,
    SpmmPlan, bf16, f16,
};
use gustav_testkit::battery::matrices::random_rows;

const BATCH: usize = 3;

/// Small integers, whose sums are exact in every order; 16 bits round the result.
fn integers<T: CpuScalar>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|k| T::from_f64(((k * 7 + seed * 5) % 5) as f64 - 2.0)).collect()
}

/// How the matrices of a batch lie in one.
#[derive(Clone, Copy, Debug)]
enum Arrangement {
    Beside,
    Below,
}

/// A matrix that holds a batch of `rows` × `columns`, and where element (i, j) of matrix `index` is
/// in it.
fn whole<T: CpuScalar>(
    (rows, columns): (usize, usize),
    arrangement: Arrangement,
    layout: Layout,
    seed: usize,
) -> (Dense<T>, impl Fn(usize, usize, usize) -> (usize, usize)) {
    let shape = match arrangement {
        Arrangement::Beside => (rows, BATCH * columns),
        Arrangement::Below => (BATCH * rows, columns),
    };
    let values = integers::<T>(shape.0 * shape.1, seed);
    let m = Dense::from_row_major(shape.0, shape.1, values).expect("values");
    let at = move |index, i, j| match arrangement {
        Arrangement::Beside => (i, index * columns + j),
        Arrangement::Below => (index * rows + i, j),
    };
    (m.to_layout(layout).expect("a copy"), at)
}

fn pattern() -> Pattern {
    // One row is cut between groups of threads.
    let a = random_rows::<f32, u32, u32>(300, 900, 3, |r| if r == 7 { 880 } else { r % 11 });
    a.pattern().clone()
}

/// The products, against sums in f64.
fn spmm<T: CpuScalar>(
    device: &Device,
    columns: usize,
    arrangements: (Arrangement, Arrangement),
    layout: Layout,
    own: bool,
) {
    let pattern = pattern();
    for transposed in [false, true] {
        let (rows, inner) = match transposed {
            false => (pattern.nrows(), pattern.ncols()),
            true => (pattern.ncols(), pattern.nrows()),
        };
        let values = integers::<T>(pattern.nnz() * if own { BATCH } else { 1 }, 1);
        let (b, at_b) = whole::<T>((inner, columns), arrangements.0, layout, 2);
        let (mut c, at_c) = whole::<T>((rows, columns), arrangements.1, layout, 3);
        let before = c.clone();
        let request =
            pattern.spmm(columns).transpose(transposed).layouts(layout, layout).batch(BATCH);
        let mut plan: SpmmPlan<'_, T> = request.calls(100).plan(device).expect("a plan");
        let one = gustav::Scale::new().beta(T::Accum::one());
        plan.execute(&values, &b, &mut c, one).expect("a product");
        for index in 0..BATCH {
            let first = if own { index * pattern.nnz() } else { 0 };
            let own = values[first..][..pattern.nnz()].to_vec();
            let a = Csr::from_pattern(&pattern, own).expect("a matrix");
            let mut expected = vec![0.0; rows * columns];
            for i in 0..a.nrows() {
                let (cols, values) = a.view().row(i);
                for (j, value) in cols.iter().zip(values) {
                    let (to, from) = if transposed { (*j as usize, i) } else { (i, *j as usize) };
                    for k in 0..columns {
                        let (row, column) = at_b(index, from, k);
                        expected[to * columns + k] += value.to_f64() * b.get(row, column).to_f64();
                    }
                }
            }
            for (e, sum) in expected.iter().enumerate() {
                let (row, column) = at_c(index, e / columns, e % columns);
                let (found, old) = (c.get(row, column).to_f64(), before.get(row, column).to_f64());
                let expected = T::from_f64(sum + old).to_f64();
                assert_eq!(
                    found, expected,
                    "matrix {index}, element {e}, {arrangements:?}, {layout}"
                );
            }
        }
    }
}

fn sddmm<T: CpuScalar>(
    device: &Device,
    depth: usize,
    arrangements: (Arrangement, Arrangement),
    layout: Layout,
    factored: bool,
) {
    let pattern = pattern();
    let (x, at_x) = whole::<T>((pattern.nrows(), depth), arrangements.0, layout, 2);
    let (y, at_y) = whole::<T>((pattern.ncols(), depth), arrangements.1, layout, 3);
    let factors = integers::<T>(pattern.nnz() * BATCH, 4);
    let mut values = vec![T::zero(); pattern.nnz() * BATCH];
    let request = pattern.sddmm(depth).layouts(layout, layout).batch(BATCH);
    let mut plan: SddmmPlan<'_, T> = request.calls(100).plan(device).expect("a plan");
    let call = if factored { SddmmCall::new().factors(&factors) } else { SddmmCall::new() };
    plan.execute(&x, &y, &mut values, call).expect("a product");
    let (offsets, indices) = (pattern.offsets(), pattern.indices());
    for index in 0..BATCH {
        for i in 0..pattern.nrows() {
            for p in offsets[i] as usize..offsets[i + 1] as usize {
                let product = |k| {
                    let (x_at, y_at) = (at_x(index, i, k), at_y(index, indices[p] as usize, k));
                    x.get(x_at.0, x_at.1).to_f64() * y.get(y_at.0, y_at.1).to_f64()
                };
                let at = index * pattern.nnz() + p;
                let factor = if factored { factors[at].to_f64() } else { 1.0 };
                let expected = factor * (0..depth).map(product).sum::<f64>();
                assert_eq!(
                    values[at].to_f64(),
                    expected,
                    "matrix {index}, nonzero {p}, {arrangements:?}, {layout}"
                );
            }
        }
    }
}

fn all(device: &Device, layouts: &[Layout]) {
    use Arrangement::{Below, Beside};
    for &layout in layouts {
        for arrangements in [(Beside, Beside), (Below, Below), (Beside, Below), (Below, Beside)] {
            for own in [false, true] {
                spmm::<f32>(device, 1, arrangements, layout, own);
                spmm::<f64>(device, 33, arrangements, layout, own);
                spmm::<i32>(device, 64, arrangements, layout, own);
                spmm::<bf16>(device, 8, arrangements, layout, own);
                sddmm::<f32>(device, 1, arrangements, layout, own);
                sddmm::<f64>(device, 33, arrangements, layout, own);
                sddmm::<f16>(device, 64, arrangements, layout, own);
                sddmm::<i64>(device, 8, arrangements, layout, own);
            }
        }
    }
}

#[test]
fn are_computed_on_the_cpu() {
    all(&Device::cpu(), &[Layout::RowMajor, Layout::ColumnMajor]);
}

#[test]
#[ignore = "needs a CUDA device"]
fn are_computed_on_a_gpu() {
    all(&Device::cuda(0).expect("a CUDA device"), &[Layout::RowMajor]);
}

fn refusals(device: &Device) {
    let pattern = pattern();
    let plan = |batch| pattern.spmm(4).batch(batch).plan::<f32, _>(device);
    assert!(matches!(plan(0), Err(Error::Unsupported { .. })));
    let extremum = pattern.spmm(4).reduce(Reduce::Max).batch(2).plan::<f32, _>(device);
    assert!(matches!(extremum, Err(Error::Unsupported { .. })));
    let mut plan = plan(2).expect("a plan");
    let values = vec![1.0; pattern.nnz()];
    let zeros =
        |rows, columns| Dense::<f32>::zeros(rows, columns, Layout::RowMajor).expect("zeros");
    let mut c = zeros(pattern.nrows(), 8);
    for (rows, columns) in [(900, 4), (900, 12), (2700, 4), (1800, 8)] {
        let found = plan.execute(&values, &zeros(rows, columns), &mut c, ());
        assert!(matches!(found, Err(Error::Shape { .. })), "{rows} x {columns}: {found:?}");
    }
    let b = zeros(900, 8);
    for length in [0, pattern.nnz() - 1, pattern.nnz() + 1, 3 * pattern.nnz()] {
        let found = plan.execute(&vec![1.0; length], &b, &mut c, ());
        assert!(matches!(found, Err(Error::Length { .. })), "{length} values: {found:?}");
    }
    plan.execute(&values, &b, &mut c, ()).expect("a product");
}

#[test]
fn that_do_not_fit_are_refused() {
    refusals(&Device::cpu());
}

#[test]
#[ignore = "needs a CUDA device"]
fn that_do_not_fit_are_refused_by_a_gpu() {
    let gpu = Device::cuda(0).expect("a CUDA device");
    refusals(&gpu);
    let request = pattern().spmm(4).layouts(Layout::ColumnMajor, Layout::RowMajor).batch(2);
    let error = request.plan::<f32, _>(&gpu).err().expect("a refusal");
    assert!(error.to_string().contains("row-major operands"), "{error}");
}
