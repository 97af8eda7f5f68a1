//! Matrices that are large enough for rows to be multiplied before all messages have arrived.

use gustav_core::{Csr, Dense, Layout, Result, Scalar, Scale, bf16};
use gustav_cuda::{DeviceBuffer, DeviceDense};
use gustav_mpi::{
    Device, DistCsr, DistDense, DistPattern, DistScalar, Explanation, Gpu, GpuSddmmCall,
    GpuSddmmPlan, GpuSpgemmPlan, Partition, Ranks, SddmmPlan, SpgemmPlan, SpmmPlan,
};
use gustav_testkit::oracle;

use crate::cases::rows::joined;
use crate::common::{all_ok, on_ranks};
use crate::last_first::last_first;

const RANKS: usize = 3;

/// A matrix of which most rows of a rank need nothing of others, on ranks whose messages are taken in either order.
fn grids<T: Scalar>(side: usize) -> [(Csr<T>, Vec<Ranks>); 2] {
    [Ranks::in_process(RANKS), last_first(Ranks::in_process(RANKS))]
        .map(|ranks| (grid(side), ranks))
}

/// The same of a matrix of which each rank has `2 * half + 1` rows: half of them need the next rank alone, half the one
/// after that, and one needs both.
fn rings<T: Scalar>(half: usize) -> [(Csr<T>, Vec<Ranks>); 2] {
    let rows = 2 * half + 1;
    let (mut offsets, mut indices) = (vec![0_u32], Vec::new());
    for row in 0..RANKS * rows {
        let (rank, at) = (row / rows, row % rows);
        let of_rank = |q: usize, k: usize| ((rank + q) % RANKS * rows + (7 * at + k) % rows) as u32;
        match at {
            at if at < half => indices.extend([0, 3, 1, 4].map(|k| of_rank(1, k))),
            at if at == half => indices.extend([of_rank(2, 0), of_rank(1, 0)]),
            _ => indices.extend([2, 5, 0, 8].map(|k| of_rank(2, k))),
        }
        indices.push(of_rank(0, 9));
        offsets.push(indices.len() as u32);
    }
    let size = RANKS * rows;
    let values = (0..indices.len()).map(|k| T::from_f64((k % 5) as f64 - 2.0)).collect::<Vec<_>>();
    let matrix = Csr::new(size, size, offsets, indices, values).expect("a matrix");
    [Ranks::in_process(RANKS), last_first(Ranks::in_process(RANKS))]
        .map(|ranks| (matrix.clone(), ranks))
}

/// A grid of `side` times `side` points, each beside its neighbours, some of which come out of order.
fn grid<T: Scalar>(side: usize) -> Csr<T> {
    let (mut offsets, mut indices) = (vec![0_u32], Vec::new());
    for point in 0..side * side {
        let (row, column) = (point / side, point % side);
        let near = [
            (row > 0).then(|| point - side),
            (column + 1 < side).then_some(point + 1),
            Some(point),
            (column > 0).then(|| point - 1),
            (row + 1 < side).then_some(point + side),
        ];
        indices.extend(near.into_iter().flatten().map(|point| point as u32));
        offsets.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(|k| T::from_f64((k % 7) as f64 - 2.0)).collect::<Vec<_>>();
    Csr::new(side * side, side * side, offsets, indices, values).expect("a matrix")
}

/// Elements that differ.
fn dense<T: Scalar>(rows: usize, columns: usize, layout: Layout) -> Dense<T> {
    let mut m = Dense::zeros(rows, columns, layout).expect("a matrix");
    let elements = m.data_mut().iter_mut().enumerate();
    elements.for_each(|(k, m)| *m = T::from_f64((k % 11) as f64 - 5.0));
    m
}

/// This rank's rows of a matrix that every rank has.
fn rows_of<T: DistScalar>(
    ranks: &Ranks,
    a: &Csr<T>,
    rows: &Partition,
    columns: &Partition,
) -> Result<DistCsr<T>> {
    let whole = (ranks.rank() == 0).then_some((a, rows, columns));
    DistCsr::scatter(ranks, whole)
}

/// This rank's rows of a dense matrix that every rank has.
fn part_of<T: Scalar>(ranks: &Ranks, m: &Dense<T>, rows: &Partition) -> Result<DistDense<T>> {
    let whole = (ranks.rank() == 0).then_some(m);
    DistDense::scatter(ranks, whole, (rows, m.ncols()), m.layout())
}

fn is_right(verdict: Result<oracle::Verdict>) {
    let verdict = verdict.expect("a verdict");
    assert!(verdict.ok, "{verdict}");
}

/// Checks that most of this rank's work, but not all, waits for nothing, if `most` should.
fn is_early(most: bool, explanation: &Explanation, ranks: &Ranks) {
    let all = explanation.volume.ranks[ranks.rank()].nonzeros;
    let found = explanation.early > all / 2 && explanation.early < all;
    assert_eq!(found, most, "{explanation}");
}

/// The matrix with other values.
fn changed<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let values = (0..a.nnz()).map(|k| T::from_f64((k % 5) as f64 - 1.0)).collect::<Vec<_>>();
    Csr::from_pattern(a.pattern(), values).expect("a matrix")
}

/// Checks the rows that ranks have of A·A, and of 2·B·B for the B of [`changed`].
fn check<T: DistScalar>(a: &Csr<T>, found: Vec<[Csr<T>; 2]>, sorted: bool) {
    let b = changed(a);
    for (k, (left, alpha)) in [(a, 1.0), (&b, 2.0)].into_iter().enumerate() {
        let parts: Vec<Csr<T>> = found.iter().map(|products| products[k].clone()).collect();
        let c = joined(&parts, a.ncols()).expect("C");
        let expected = oracle::Spgemm {
            sorted,
            alpha: Some(T::Accum::from_f64(alpha)),
            ..oracle::Spgemm::new(left.view(), left.view())
        };
        is_right(expected.verify(c.view()));
    }
}

fn spgemm<T: DistScalar>((a, ranks): (Csr<T>, Vec<Ranks>), most: bool, sorted: bool) {
    let b = changed(&a);
    let rows = Partition::even(a.nrows(), RANKS);
    let found = all_ok(on_ranks(ranks, |ranks| -> Result<_> {
        let a = rows_of(&ranks, &a, &rows, &rows)?;
        let b = rows_of(&ranks, &b, &rows, &rows)?;
        let b = b.local().values().as_slice();
        let request = a.pattern().spgemm(a.pattern()).sorted(sorted);
        let mut plan: SpgemmPlan<T> = request.plan(&Device::default())?;
        is_early(most, plan.explain(), &ranks);
        let first = plan.execute(&a, &a, None)?;
        // Values alone: the pattern is that of the first.
        let doubled = Some(T::Accum::from_f64(2.0));
        let second = plan.execute(b, b, doubled)?;
        assert_eq!(first.local().pattern().id(), second.local().pattern().id());
        Ok([first, second].map(|c| c.local().clone()))
    }))
    .expect("products");
    check(&a, found, sorted);
}

#[test]
fn spgemm_begins_before_values_arrive() {
    grids::<f32>(90).into_iter().for_each(|on| spgemm(on, true, false));
    grids::<f64>(90).into_iter().for_each(|on| spgemm(on, true, true));
    grids::<bf16>(90).into_iter().for_each(|on| spgemm(on, true, false));
}

#[test]
fn spgemm_goes_on_with_what_has_arrived() {
    rings::<f32>(2_000).into_iter().for_each(|on| spgemm(on, false, true));
    rings::<bf16>(2_000).into_iter().for_each(|on| spgemm(on, false, false));
}

fn spmv<T: DistScalar>((a, ranks): (Csr<T>, Vec<Ranks>), most: bool) {
    let rows = Partition::even(a.nrows(), RANKS);
    let b = dense::<T>(a.nrows(), 1, Layout::RowMajor);
    let c = all_ok(on_ranks(ranks, |ranks| -> Result<_> {
        let a = rows_of(&ranks, &a, &rows, &rows)?;
        let b = part_of(&ranks, &b, &rows)?;
        let mut c = DistDense::zeros(&ranks, &rows, 1, Layout::RowMajor)?;
        let mut plan: SpmmPlan<T> = a.pattern().spmm(1).plan(&Device::default())?;
        is_early(most, plan.explain(), &ranks);
        plan.execute(&a, b.local(), c.local_mut(), ())?;
        c.gather()
    }))
    .expect("products");
    let found = c.into_iter().next().flatten().expect("C");
    is_right(oracle::Spmm::new(a.view(), b.view()).verify(found.view()));
}

#[test]
fn whole_rows_begin_before_rows_of_b_arrive() {
    grids::<f64>(150).into_iter().for_each(|on| spmv(on, true));
}

#[test]
fn whole_rows_go_on_with_what_has_arrived() {
    rings::<f32>(5_000).into_iter().for_each(|on| spmv(on, false));
    rings::<bf16>(5_000).into_iter().for_each(|on| spmv(on, false));
}

fn spgemm_on_gpu<T: DistScalar>((a, ranks): (Csr<T>, Vec<Ranks>), most: bool, sorted: bool) {
    let b = changed(&a);
    let rows = Partition::even(a.nrows(), RANKS);
    let found = all_ok(on_ranks(ranks, |ranks| -> Result<_> {
        let a = rows_of(&ranks, &a, &rows, &rows)?;
        let b = rows_of(&ranks, &b, &rows, &rows)?;
        let device = gustav_cuda::Device::cuda(0)?;
        let request = a.pattern().spgemm(a.pattern()).sorted(sorted);
        let mut plan: GpuSpgemmPlan<T> = request.plan(&Gpu::new(device.clone()))?;
        is_early(most, plan.explain(), &ranks);
        let upload = |of: &DistCsr<T>| {
            DeviceBuffer::from_slice(&device, of.local().values().as_slice(), "values")
        };
        let (of_a, of_b) = (upload(&a)?, upload(&b)?);
        let first = plan.execute(&of_a, &of_a, None)?;
        let doubled = Some(T::Accum::from_f64(2.0));
        let second = plan.execute(&of_b, &of_b, doubled)?;
        let same = first.local().pattern().id() == second.local().pattern().id();
        // Rows in no order may come out in another.
        assert_eq!(same, sorted);
        Ok([first.local().download()?, second.local().download()?])
    }))
    .expect("products");
    check(&a, found, sorted);
}

#[test]
#[ignore = "needs a CUDA device"]
fn spgemm_on_a_gpu_begins_before_values_arrive() {
    grids::<f32>(300).into_iter().for_each(|on| spgemm_on_gpu(on, true, true));
    grids::<f64>(300).into_iter().for_each(|on| spgemm_on_gpu(on, true, false));
}

#[test]
#[ignore = "needs a CUDA device"]
fn spgemm_on_a_gpu_goes_on_with_what_has_arrived() {
    rings::<f32>(30_000).into_iter().for_each(|on| spgemm_on_gpu(on, false, true));
    rings::<f64>(30_000).into_iter().for_each(|on| spgemm_on_gpu(on, false, false));
}

fn sddmm_on_gpu<T: DistScalar>(
    (a, ranks): (Csr<T>, Vec<Ranks>),
    most: bool,
    (depth, layouts): (usize, [Layout; 2]),
) {
    let rows = Partition::even(a.nrows(), RANKS);
    let [x, y] = layouts.map(|layout| dense::<T>(a.nrows(), depth, layout));
    let (alpha, beta) = (T::Accum::from_f64(0.5), T::Accum::from_f64(2.0));
    let found = all_ok(on_ranks(ranks, |ranks| -> Result<_> {
        let a = rows_of(&ranks, &a, &rows, &rows)?;
        let (x, y) = (part_of(&ranks, &x, &rows)?, part_of(&ranks, &y, &rows)?);
        let device = gustav_cuda::Device::cuda(0)?;
        let pattern: &DistPattern = a.pattern();
        // Those of X, then those of Y.
        let request = pattern.sddmm(depth).layouts(layouts[0], layouts[1]);
        let mut plan: GpuSddmmPlan<T> = request.plan(&Gpu::new(device.clone()))?;
        is_early(most, plan.explain(), &ranks);
        let upload = |m: &DistDense<T>| DeviceDense::upload(&device, &m.local().view());
        let (x, y) = (upload(&x)?, upload(&y)?);
        let before = a.local().values().as_slice();
        let mut values = DeviceBuffer::from_slice(&device, before, "values")?;
        let factors = DeviceBuffer::from_slice(&device, before, "factors")?;
        let scale = Scale::new().alpha(alpha).beta(beta);
        let call = GpuSddmmCall { scale, factors: Some((&factors).into()) };
        // What an execution receives is not what the next one reads.
        let zeros = DeviceDense::zeros(&device, y.nrows(), depth, y.layout())?;
        let mut other = DeviceBuffer::zeros(&device, before.len(), "values")?;
        plan.execute(&x, &zeros, &mut other, ())?;
        plan.execute(&x, &y, &mut values, call)?;
        let mut found = vec![T::zero(); before.len()];
        values.read(&mut found)?;
        Ok(found)
    }))
    .expect("values");
    let before = a.values().as_slice();
    let expected = oracle::Sddmm {
        alpha,
        beta,
        factors: Some(before),
        before: Some(before),
        ..oracle::Sddmm::new(a.pattern().view(), x.view(), y.view())
    };
    is_right(expected.verify(&found.concat()));
}

#[test]
#[ignore = "needs a CUDA device"]
fn sddmm_on_a_gpu_begins_before_rows_of_y_arrive() {
    use Layout::{ColumnMajor, RowMajor};
    let f32s = (32, [RowMajor, RowMajor]);
    grids::<f32>(300).into_iter().for_each(|on| sddmm_on_gpu(on, true, f32s));
    let f64s = (5, [ColumnMajor, ColumnMajor]);
    grids::<f64>(300).into_iter().for_each(|on| sddmm_on_gpu(on, true, f64s));
    let bf16s = (33, [RowMajor, ColumnMajor]);
    grids::<bf16>(300).into_iter().for_each(|on| sddmm_on_gpu(on, true, bf16s));
}

#[test]
#[ignore = "needs a CUDA device"]
fn sddmm_on_a_gpu_goes_on_with_what_has_arrived() {
    let f32s = (32, [Layout::RowMajor, Layout::ColumnMajor]);
    rings::<f32>(30_000).into_iter().for_each(|on| sddmm_on_gpu(on, false, f32s));
    let f64s = (7, [Layout::ColumnMajor, Layout::RowMajor]);
    rings::<f64>(30_000).into_iter().for_each(|on| sddmm_on_gpu(on, false, f64s));
}

/// SDDMM on CPUs: its own nonzeros first, then those of each rank.
fn sddmm<T: DistScalar>((a, ranks): (Csr<T>, Vec<Ranks>), (depth, layouts): (usize, [Layout; 2])) {
    let rows = Partition::even(a.nrows(), RANKS);
    let [x, y] = layouts.map(|layout| dense::<T>(a.nrows(), depth, layout));
    let beta = T::Accum::from_f64(2.0);
    let found = all_ok(on_ranks(ranks, |ranks| -> Result<_> {
        let a = rows_of(&ranks, &a, &rows, &rows)?;
        let (x, y) = (part_of(&ranks, &x, &rows)?, part_of(&ranks, &y, &rows)?);
        let request = a.pattern().sddmm(depth).layouts(layouts[0], layouts[1]);
        let mut plan: SddmmPlan<T> = request.plan(&Device::default())?;
        let mut values = a.local().values().as_slice().to_vec();
        plan.execute(x.local(), y.local(), &mut values, Scale::new().beta(beta))?;
        Ok(values)
    }))
    .expect("values");
    let expected = oracle::Sddmm {
        beta,
        before: Some(a.values().as_slice()),
        ..oracle::Sddmm::new(a.pattern().view(), x.view(), y.view())
    };
    is_right(expected.verify(&found.concat()));
}

#[test]
fn sddmm_goes_on_with_what_has_arrived() {
    use Layout::{ColumnMajor, RowMajor};
    rings::<f32>(300).into_iter().for_each(|on| sddmm(on, (32, [RowMajor, ColumnMajor])));
    rings::<f64>(300).into_iter().for_each(|on| sddmm(on, (5, [ColumnMajor, RowMajor])));
    rings::<bf16>(300).into_iter().for_each(|on| sddmm(on, (0, [RowMajor, RowMajor])));
}
