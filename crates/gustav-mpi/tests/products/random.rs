//! Random matrices, partitions and hosts, compared with the oracle.

use gustav_core::{
    Arith, Csr, Dense, DenseView, Index, Layout, Pattern, Result, Scalar, Scale, Semiring, bf16,
    f16,
};
use gustav_cpu::SddmmCall;
use gustav_mpi::{
    Communication, Device, DistPattern, DistScalar, Hosts, Options, Partition, ProductShape, Ranks,
    SddmmPlan, SpgemmPlan, SpmmPlan, Volume,
};
use gustav_testkit::oracle;

use crate::common::{RANKS, Rows, all_ok, joined, on_ranks, pattern_of, whole_of};

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % bound.max(1)
    }

    fn value<T: Scalar>(&mut self) -> T {
        T::from_f64(self.below(33) as f64 / 4.0 - 4.0)
    }

    fn factor<A: Arith>(&mut self) -> A {
        A::from_f64([0.0, 1.0, 1.0, -2.0, 3.0][self.below(5)])
    }

    fn layout(&mut self) -> Layout {
        [Layout::RowMajor, Layout::ColumnMajor][self.below(2)]
    }

    fn dense<T: Scalar>(&mut self, rows: usize, columns: usize, layout: Layout) -> Dense<T> {
        let mut m = Dense::zeros(rows, columns, layout).expect("a small matrix");
        m.data_mut().fill_with(|| self.value());
        m
    }

    /// Rows of all lengths, many of them empty, some columns far more often than others.
    fn matrix<T: Scalar, I: Index, O: Index>(&mut self, rows: usize, cols: usize) -> Csr<T, I, O> {
        let (mut offsets, mut indices) = (vec![O::truncate(0)], Vec::new());
        for _ in 0..rows {
            let len = if cols == 0 { 0 } else { [0, 0, 1, 3, 9, cols][self.below(6)] };
            for _ in 0..len {
                let bound = [cols, cols.div_ceil(8)][self.below(2)];
                indices.push(I::truncate(self.below(bound)));
            }
            offsets.push(O::truncate(indices.len()));
        }
        let values: Vec<T> = indices.iter().map(|_| self.value()).collect();
        Csr::new(rows, cols, offsets, indices, values).expect("a matrix")
    }

    /// Any partition: ranks without rows, all rows on one.
    fn partition(&mut self, rows: usize, ranks: usize) -> Partition {
        let mut ends: Vec<usize> = (1..ranks).map(|_| self.below(rows + 1)).collect();
        ends.sort_unstable();
        ends.insert(0, 0);
        ends.push(rows);
        Partition::new(ends).expect("a partition")
    }

    fn ranks(&mut self, size: usize) -> (Hosts, usize) {
        let names: Vec<usize> = (0..size).map(|_| self.below(3)).collect();
        (Hosts::of_names(&names), [40, 200, usize::MAX][self.below(3)])
    }
}

fn device(communication: Communication) -> Device {
    let threads = gustav_cpu::Threads::new(1, false).expect("one thread");
    Device::cpu(Options { threads, ..Options::default() }).communication(communication)
}

fn spmm<T: DistScalar, I: Index, O: Index>(seed: u64) -> Result<()> {
    let mut random = Random(seed);
    for size in RANKS {
        for number in 0..6 {
            let (m, k, n) = (random.below(60), random.below(60), 1 + random.below(9));
            let a = random.matrix::<T, I, O>(m, k);
            let (rows, columns) = (random.partition(m, size), random.partition(k, size));
            let transpose_a = number % 2 == 1;
            let (of_b, of_c) = if transpose_a { (&rows, &columns) } else { (&columns, &rows) };
            let (layout_b, layout_c) = (random.layout(), random.layout());
            let b = random.dense::<T>(of_b.rows(), n, layout_b);
            let before = random.dense::<T>(of_c.rows(), n, layout_c);
            let (alpha, beta) = (random.factor::<T::Accum>(), random.factor::<T::Accum>());
            let deterministic = random.below(2) == 0;
            let device = device(Communication::ALL[number / 2]);
            let (hosts, limit) = random.ranks(size);
            let parts = all_ok(on_ranks(Ranks::in_process_on(&hosts, limit), |ranks| {
                let rank = ranks.rank();
                let (a, values) = pattern_of(&ranks, &a.view(), (&rows, &columns))?;
                let request = a.spmm(n).transpose(transpose_a).layouts(layout_b, layout_c);
                let mut plan: SpmmPlan<T> = request.deterministic(deterministic).plan(&device)?;
                let mut run = || -> Result<_> {
                    let mut c = Rows::of(&before.view(), of_c, rank);
                    let b = Rows::of(&b.view(), of_b, rank);
                    let scale = Scale::new().alpha(alpha).beta(beta);
                    plan.execute(&values, b.view(), c.view_mut(), scale)?;
                    Ok(c)
                };
                let (first, second) = (run()?, run()?);
                let bits = |c: &Rows<T>| bytemuck::cast_slice::<T, u8>(&c.data).to_vec();
                assert!(!deterministic || bits(&first) == bits(&second));
                Ok(second)
            }))?;
            let found = whole_of(&parts, of_c, n, layout_c);
            let verdict = oracle::Spmm {
                transpose_a,
                alpha,
                beta,
                before: Some(before.view()),
                ..oracle::Spmm::new(a.view(), b.view())
            }
            .verify(found.view())?;
            assert!(verdict.ok, "{size} ranks, {m} x {k}, {rows:?} {columns:?}: {verdict:?}");
        }
    }
    Ok(())
}

#[test]
fn spmm_of_every_type() -> Result<()> {
    spmm::<f32, u32, u32>(1)?;
    spmm::<f64, u64, u64>(2)?;
    spmm::<f16, u64, u32>(3)?;
    spmm::<bf16, u32, u64>(4)?;
    spmm::<i32, u64, u64>(5)?;
    spmm::<i64, u32, u32>(6)
}

fn sddmm<T: DistScalar, I: Index, O: Index>(seed: u64) -> Result<()> {
    let mut random = Random(seed);
    for size in RANKS {
        for _ in 0..3 {
            let (m, k, n) = (random.below(50), random.below(50), random.below(9));
            let a = random.matrix::<T, I, O>(m, k);
            let (rows, columns) = (random.partition(m, size), random.partition(k, size));
            let (layout_x, layout_y) = (random.layout(), random.layout());
            let (x, y) = (random.dense(m, n, layout_x), random.dense(k, n, layout_y));
            let (alpha, beta) = (random.factor::<T::Accum>(), random.factor::<T::Accum>());
            let (hosts, limit) = random.ranks(size);
            let parts = all_ok(on_ranks(Ranks::in_process_on(&hosts, limit), |ranks| {
                let rank = ranks.rank();
                let (a, mut values) = pattern_of(&ranks, &a.view(), (&rows, &columns))?;
                let request = a.sddmm(n).layouts(layout_x, layout_y);
                let mut plan: SddmmPlan<T> = request.plan(&device(Communication::Cheapest))?;
                let x = Rows::of(&x.view(), &rows, rank);
                let y = Rows::of(&y.view(), &columns, rank);
                let scale = Scale::new().alpha(alpha).beta(beta);
                let call = SddmmCall { scale, factors: None };
                plan.execute(x.view(), y.view(), &mut values, call)?;
                Ok(values)
            }))?;
            let before = Some(a.values().as_slice());
            let pattern = a.view().pattern();
            let of = oracle::Sddmm::new(pattern, x.view(), y.view());
            let verdict = oracle::Sddmm { alpha, beta, before, ..of }.verify(&parts.concat())?;
            assert!(verdict.ok, "{size} ranks, {m} x {k}: {verdict:?}");
        }
    }
    Ok(())
}

#[test]
fn sddmm_of_every_type() -> Result<()> {
    sddmm::<f32, u32, u64>(11)?;
    sddmm::<f64, u64, u32>(12)?;
    sddmm::<f16, u32, u32>(13)?;
    sddmm::<bf16, u64, u64>(14)?;
    sddmm::<i32, u32, u32>(15)?;
    sddmm::<i64, u64, u64>(16)
}

fn spgemm<T: DistScalar, I: Index, O: Index>(seed: u64, semiring: Semiring) -> Result<()> {
    let mut random = Random(seed);
    for size in RANKS {
        for _ in 0..3 {
            let (m, k, n) = (random.below(40), random.below(40), random.below(40));
            let (a, b) = (random.matrix::<T, I, O>(m, k), random.matrix::<T, I, O>(k, n));
            let [rows, inner, columns] = [m, k, n].map(|len| random.partition(len, size));
            let alpha = [None, Some(random.factor::<T::Accum>())][random.below(2)];
            let (hosts, limit) = random.ranks(size);
            let parts = all_ok(on_ranks(Ranks::in_process_on(&hosts, limit), |ranks| {
                let (a, of_a) = pattern_of(&ranks, &a.view(), (&rows, &inner))?;
                let (b, of_b) = pattern_of(&ranks, &b.view(), (&inner, &columns))?;
                let request = a.spgemm(&b).semiring(semiring);
                let device = device(Communication::Cheapest);
                let mut plan: SpgemmPlan<T, I, O> = request.plan(&device)?;
                Ok(plan.execute(&of_a, &of_b, alpha)?.local().clone())
            }))?;
            let found = joined(&parts, n)?;
            let of = oracle::Spgemm::new(a.view(), b.view());
            let verdict = oracle::Spgemm { semiring, alpha, ..of }.verify(found.view())?;
            assert!(verdict.ok, "{size} ranks, {m} x {k} x {n}: {verdict:?}");
        }
    }
    Ok(())
}

#[test]
fn spgemm_of_every_type() -> Result<()> {
    spgemm::<f32, u64, u64>(21, Semiring::PlusTimes)?;
    spgemm::<f64, u32, u32>(22, Semiring::MaxTimes)?;
    spgemm::<f16, u32, u64>(23, Semiring::PlusTimes)?;
    spgemm::<bf16, u32, u32>(24, Semiring::MinPlus)?;
    spgemm::<i32, u64, u32>(25, Semiring::PlusTimes)?;
    spgemm::<i64, u32, u32>(26, Semiring::OrAnd)
}

/// Columns past 2³¹, most of them on one rank; B is memory that nobody touches but for the rows that count.
#[test]
#[ignore = "needs 9 GB of memory"]
fn columns_past_31_bits() -> Result<()> {
    let counts = [5_usize, (1 << 31) + 7, 3];
    let columns = Partition::of_counts(&counts)?;
    let beyond = Partition::of_counts(&[1 << 32, (1 << 32) - 1, 9])?;
    assert_eq!((beyond.owner((1 << 33) - 2), beyond.owner((1 << 33) - 1)), (1, 2));
    let last = columns.rows() - 1;
    // Ranks 0 and 2 have a row each, with a column of every rank.
    let indices = vec![4_u64, 6 + (1 << 31), last as u64];
    let found = all_ok(on_ranks(Ranks::in_process(3), |ranks| {
        let local = match ranks.rank() {
            1 => Pattern::<u64, u64>::new(0, columns.rows(), vec![0], Vec::new())?,
            _ => Pattern::new(1, columns.rows(), vec![0, 3], indices.clone())?,
        };
        let a = DistPattern::new(&ranks, &columns, local)?;
        let device = device(Communication::Cheapest);
        let mut plan: SpmmPlan<f32> = a.spmm(1).plan(&device)?;
        let mut b = vec![0_f32; counts[ranks.rank()]];
        for (column, value) in [(4, 2.0), (6 + (1 << 31), 30.0), (last, 400.0)] {
            if columns.owner(column) == ranks.rank() {
                b[column - columns.range(ranks.rank()).start] = value;
            }
        }
        let mut c = Dense::zeros(a.local().nrows(), 1, Layout::RowMajor)?;
        let values = vec![1.0; a.local().nnz()];
        plan.execute(&values, DenseView::row_major(b.len(), 1, &b)?, &mut c, ())?;
        Ok(c.data().to_vec())
    }))?;
    assert_eq!(found.concat(), [432.0; 2]);
    Ok(())
}

/// Where columns are past 2³³ in all, ranks send what they would if these were few.
#[test]
fn columns_past_33_bits_are_counted() -> Result<()> {
    let mut random = Random(31);
    let small = random.matrix::<f32, u64, u64>(40, 12);
    let rows = Partition::even(40, 4);
    let near = Partition::of_counts(&[3; 4])?;
    let far = Partition::of_counts(&[(1 << 32) - 1, 1 << 31, (1 << 32) - 5, (1 << 31) + 3])?;
    let shifted = |column: &u64| {
        let rank = near.owner(*column as usize);
        (far.range(rank).start + *column as usize - near.range(rank).start) as u64
    };
    let indices: Vec<u64> = small.indices().iter().map(shifted).collect();
    let large = Pattern::<u64, u64>::new(40, far.rows(), small.offsets().to_vec(), indices)?;
    for communication in Communication::ALL {
        let dtype = gustav_core::DType::F32;
        let shape = ProductShape { columns: 3, dtype, transpose_a: false, communication };
        let of_large = Volume::of(&large.view(), &rows, &far, shape)?;
        let of_small = Volume::of(&small.view().pattern(), &rows, &near, shape)?;
        assert!(of_small.bytes() > 0 && far.rows() > 1 << 33);
        assert_eq!((&of_large.ranks, of_large.bytes()), (&of_small.ranks, of_small.bytes()));
    }
    Ok(())
}
