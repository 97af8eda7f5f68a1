//! Random matrices, partitions and hosts, compared with the oracle.

use gustav_core::{Arith, Csr, Dense, Index, Layout, Result, Scalar, Scale, Semiring, bf16, f16};
use gustav_cpu::SddmmCall;
use gustav_mpi::{
    Communication, Device, DistScalar, Hosts, Options, Partition, SddmmPlan, SpgemmPlan, SpmmPlan,
};
use gustav_testkit::oracle;

use super::job::Job;
use super::rows::{Rows, joined, pattern_of, whole_of};

/// Numbers without a pattern, the same in every run.
pub struct Random(pub u64);

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
    pub fn matrix<T: Scalar, I: Index, O: Index>(
        &mut self,
        rows: usize,
        cols: usize,
    ) -> Csr<T, I, O> {
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

pub fn device(communication: Communication) -> Device {
    let threads = gustav_cpu::Threads::new(1, false).expect("one thread");
    Device::cpu(Options { threads, ..Options::default() }).communication(communication)
}

fn spmm<T: DistScalar, I: Index, O: Index>(job: &impl Job, seed: u64) -> Result<()> {
    let mut random = Random(seed);
    for size in job.sizes() {
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
            let parts = job.on_ranks(&hosts, limit, |ranks| {
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
                assert!(!deterministic || second.has_bits_of(&first));
                Ok(second)
            })?;
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

pub fn spmm_of_every_type(job: &impl Job) -> Result<()> {
    spmm::<f32, u32, u32>(job, 1)?;
    spmm::<f64, u64, u64>(job, 2)?;
    spmm::<f16, u64, u32>(job, 3)?;
    spmm::<bf16, u32, u64>(job, 4)?;
    spmm::<i32, u64, u64>(job, 5)?;
    spmm::<i64, u32, u32>(job, 6)
}

fn sddmm<T: DistScalar, I: Index, O: Index>(job: &impl Job, seed: u64) -> Result<()> {
    let mut random = Random(seed);
    for size in job.sizes() {
        for _ in 0..3 {
            let (m, k, n) = (random.below(50), random.below(50), random.below(9));
            let a = random.matrix::<T, I, O>(m, k);
            let (rows, columns) = (random.partition(m, size), random.partition(k, size));
            let (layout_x, layout_y) = (random.layout(), random.layout());
            let (x, y) = (random.dense(m, n, layout_x), random.dense(k, n, layout_y));
            let (alpha, beta) = (random.factor::<T::Accum>(), random.factor::<T::Accum>());
            let (hosts, limit) = random.ranks(size);
            let parts = job.on_ranks(&hosts, limit, |ranks| {
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
            })?;
            let before = Some(a.values().as_slice());
            let pattern = a.view().pattern();
            let of = oracle::Sddmm::new(pattern, x.view(), y.view());
            let verdict = oracle::Sddmm { alpha, beta, before, ..of }.verify(&parts.concat())?;
            assert!(verdict.ok, "{size} ranks, {m} x {k}: {verdict:?}");
        }
    }
    Ok(())
}

pub fn sddmm_of_every_type(job: &impl Job) -> Result<()> {
    sddmm::<f32, u32, u64>(job, 11)?;
    sddmm::<f64, u64, u32>(job, 12)?;
    sddmm::<f16, u32, u32>(job, 13)?;
    sddmm::<bf16, u64, u64>(job, 14)?;
    sddmm::<i32, u32, u32>(job, 15)?;
    sddmm::<i64, u64, u64>(job, 16)
}

fn spgemm<T: DistScalar, I: Index, O: Index>(
    job: &impl Job,
    seed: u64,
    semiring: Semiring,
) -> Result<()> {
    let mut random = Random(seed);
    for size in job.sizes() {
        for _ in 0..3 {
            let (m, k, n) = (random.below(40), random.below(40), random.below(40));
            let (a, b) = (random.matrix::<T, I, O>(m, k), random.matrix::<T, I, O>(k, n));
            let [rows, inner, columns] = [m, k, n].map(|len| random.partition(len, size));
            let alpha = [None, Some(random.factor::<T::Accum>())][random.below(2)];
            let (hosts, limit) = random.ranks(size);
            let parts = job.on_ranks(&hosts, limit, |ranks| {
                let (a, of_a) = pattern_of(&ranks, &a.view(), (&rows, &inner))?;
                let (b, of_b) = pattern_of(&ranks, &b.view(), (&inner, &columns))?;
                let request = a.spgemm(&b).semiring(semiring);
                let device = device(Communication::Cheapest);
                let mut plan: SpgemmPlan<T, I, O> = request.plan(&device)?;
                Ok(plan.execute(&of_a, &of_b, alpha)?.local().clone())
            })?;
            let found = joined(&parts, n)?;
            let of = oracle::Spgemm::new(a.view(), b.view());
            let verdict = oracle::Spgemm { semiring, alpha, ..of }.verify(found.view())?;
            assert!(verdict.ok, "{size} ranks, {m} x {k} x {n}: {verdict:?}");
        }
    }
    Ok(())
}

pub fn spgemm_of_every_type(job: &impl Job) -> Result<()> {
    spgemm::<f32, u64, u64>(job, 21, Semiring::PlusTimes)?;
    spgemm::<f64, u32, u32>(job, 22, Semiring::MaxTimes)?;
    spgemm::<f16, u32, u64>(job, 23, Semiring::PlusTimes)?;
    spgemm::<bf16, u32, u32>(job, 24, Semiring::MinPlus)?;
    spgemm::<i32, u64, u32>(job, 25, Semiring::PlusTimes)?;
    spgemm::<i64, u32, u32>(job, 26, Semiring::OrAnd)
}
