//! The products, compiled once for every type of values, in this crate: the functions that programs
//! call are generic in the index types alone.

use std::any::TypeId;

use bytemuck::cast_slice;
use gustav_core::parallel::Shared;
use gustav_core::{
    AnyPattern, Arith, Buffer, Csr, DType, Ops, PatternId, PlusTimes, Problem, Result, Scalar,
    Semiring, Values, bf16, f16,
};
use gustav_plan::{Algorithm, Choice};

use super::gustavson::{self, Task, Workers};
use super::operands::{Indices, Matrix, Product, Rows};
use super::plan::{same, unknown_pattern};
use super::setup::{Setup, Transposed, gather};
use super::{add, masked, refill};
use crate::{Options, papers};

/// A type of values that SpGEMM is compiled for.
pub trait SpgemmKernels: Scalar {
    /// Plus-times as compiled for this type: floating-point types have loops of their own.
    #[doc(hidden)]
    type PlusTimes: Ops<Self::Accum>;

    #[doc(hidden)]
    fn spgemm_plan<'a>(
        operands: [AnyPattern<'a>; 2],
        mask: Option<AnyPattern<'a>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Plan<'a, Self>>;

    /// The product with values of the type of the operands.
    #[doc(hidden)]
    fn spgemm(
        plan: &mut Plan<'_, Self>,
        a: Values<'_, Self>,
        b: Values<'_, Self>,
        request: Request<'_, Self::Accum, Self>,
    ) -> Result<Option<Product<Self>>>;

    /// The product with values of the type of their sums.
    #[doc(hidden)]
    fn spgemm_of_sums(
        plan: &mut Plan<'_, Self>,
        a: Values<'_, Self>,
        b: Values<'_, Self>,
        request: Request<'_, Self::Accum, Self::Accum>,
    ) -> Result<Option<Product<Self::Accum>>>;
}

macro_rules! compiled {
    ($($t:ty: $plus_times:ty;)*) => {$(
        impl SpgemmKernels for $t {
            type PlusTimes = $plus_times;

            fn spgemm_plan<'a>(
                operands: [AnyPattern<'a>; 2],
                mask: Option<AnyPattern<'a>>,
                problem: &Problem,
                options: &Options,
            ) -> Result<Plan<'a, Self>> {
                Plan::new(operands, mask, problem, options)
            }
            fn spgemm(
                plan: &mut Plan<'_, Self>,
                a: Values<'_, Self>,
                b: Values<'_, Self>,
                request: Request<'_, Self::Accum, Self>,
            ) -> Result<Option<Product<Self>>> {
                plan.execute(a, b, request)
            }
            fn spgemm_of_sums(
                plan: &mut Plan<'_, Self>,
                a: Values<'_, Self>,
                b: Values<'_, Self>,
                request: Request<'_, Self::Accum, Self::Accum>,
            ) -> Result<Option<Product<Self::Accum>>> {
                plan.execute(a, b, request)
            }
        }
    )*};
}

compiled! {
    f32: PlusTimes;
    f64: PlusTimes;
    f16: PlusTimes;
    bf16: PlusTimes;
    i32: Semiring;
    i64: Semiring;
}

/// A plan for values of type `T` and patterns of any index types.
pub struct Plan<'a, T: SpgemmKernels> {
    pub(super) setup: Setup<'a>,
    pub(super) workers: Workers<T::Accum>,
    /// Values of op(A) and B in the type of sums, where the caller's have another type.
    a_values: Buffer<T::Accum>,
    b_values: Buffer<T::Accum>,
    /// The pattern of C once it is computed, if it depends on the patterns of A and B alone.
    pub(super) pattern: Option<AnyPattern<'static>>,
}

/// Options of one product.
pub struct Request<'c, A, U> {
    pub(super) alpha: Option<A>,
    pub(super) add: Option<(A, Matrix<'c, U>)>,
    /// The pattern of C, and memory for its values.
    pub(super) reuse: Option<(PatternId, &'c mut [U])>,
}

impl<'a, T: SpgemmKernels> Plan<'a, T> {
    fn new(
        operands: [AnyPattern<'a>; 2],
        mask: Option<AnyPattern<'a>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let setup = Setup::new(operands, mask, problem, options)?;
        let threads = if setup.mask.is_some() { 0 } else { setup.choice.config.threads };
        let workers = Workers::new(threads, setup.width())?;
        let none = || Buffer::zeroed(0, VALUES);
        Ok(Plan { setup, workers, a_values: none()?, b_values: none()?, pattern: None })
    }

    /// Bytes beside the patterns that the caller holds.
    pub(super) fn bytes(&self) -> usize {
        let Plan { setup, workers, a_values, b_values, pattern } = self;
        let of_c = pattern.as_ref().map_or(0, |pattern| {
            let (column, offset) = pattern.index_types();
            pattern.nnz() * column.bytes() + pattern.nrows() * offset.bytes()
        });
        let values = size_of_val(&**a_values) + size_of_val(&**b_values);
        setup.bytes() + workers.bytes(setup.needs()) + values + of_c
    }

    /// Computes C, or with [`Request::reuse`] its values.
    fn execute<U: Scalar<Accum = T::Accum>>(
        &mut self,
        a: Values<'_, T>,
        b: Values<'_, T>,
        request: Request<'_, T::Accum, U>,
    ) -> Result<Option<Product<U>>> {
        let Request { alpha, add, reuse } = request;
        let (kind, threads) = (self.setup.problem.semiring, self.setup.threads.clone());
        let operands = self.setup.fit(a, b)?;
        let alpha = alpha.unwrap_or_else(|| kind.one());
        let add = self.checked(add, kind)?;
        if let Some((id, _)) = &reuse {
            self.check_reuse(*id, add.is_some())?;
        }
        let product = match (self.setup.choice.algorithm, kind) {
            (Algorithm::DenseNaive | Algorithm::HashRows, _) => self.paper(operands, alpha)?,
            (_, Semiring::PlusTimes) => self.run(T::PlusTimes::of(kind), operands, alpha, reuse)?,
            _ => self.run(kind, operands, alpha, reuse)?,
        };
        match (product, add) {
            (Some(p), Some((beta, d))) => threads.run(|| {
                let p = Matrix { rows: Rows::new(&p.pattern), values: &p.values };
                let (types, drop_zeros) = (self.setup.types(), self.setup.drop_zeros);
                add::add(kind, &p, beta, &d, drop_zeros, types).map(Some)
            }),
            (product, _) => Ok(product),
        }
    }

    /// D and its factor, unless the factor is the semiring's zero.
    fn checked<'c, U>(
        &self,
        add: Option<(T::Accum, Matrix<'c, U>)>,
        kind: Semiring,
    ) -> Result<Option<(T::Accum, Matrix<'c, U>)>> {
        let Some((beta, d)) = add else { return Ok(None) };
        self.setup.problem.check_like_c("D", (d.rows.nrows, d.rows.ncols))?;
        if self.setup.mask.is_some() {
            let (reason, nearest) =
                ("it computes the entries of the mask alone", "the product without a mask");
            return Err(self.setup.refusal("and a sum with D", reason, nearest));
        }
        Ok((beta != kind.zero()).then_some((beta, d)))
    }

    fn check_reuse(&self, id: PatternId, adds: bool) -> Result<()> {
        if adds || !self.setup.same_pattern() {
            let reason = "its pattern of C is not that of A and B alone";
            let nearest = "the product as a new matrix";
            return Err(self.setup.refusal("into a known pattern", reason, nearest));
        }
        match &self.pattern {
            None => Err(unknown_pattern()),
            Some(pattern) => pattern.id().check("C", Some(id)),
        }
    }

    /// The algorithms of Chen et al., compiled for the types that they were published for.
    fn paper<U: Scalar<Accum = T::Accum>>(
        &self,
        [a, b]: [&[T]; 2],
        alpha: T::Accum,
    ) -> Result<Option<Product<U>>> {
        let Setup { problem, choice: Choice { algorithm, .. }, threads, .. } = &self.setup;
        let refused = || papers::refusal(problem.to_string());
        let [of_a, of_b] = self.setup.narrow().ok_or_else(refused)?.map(|p| p.view());
        macro_rules! product {
            ($t:ty) => {{
                let a = of_a.with_values(cast_slice::<_, $t>(a))?;
                let b = of_b.with_values(cast_slice::<_, $t>(b))?;
                same(papers::multiply(*algorithm, threads, a, bytemuck::cast(alpha), b)?)
            }};
        }
        let c: Option<Csr<U>> = match T::DTYPE {
            DType::F32 => product!(f32),
            DType::F64 => product!(f64),
            _ => None,
        };
        Product::from_csr(c.ok_or_else(refused)?).map(Some)
    }

    fn run<S: Ops<T::Accum>, U: Scalar<Accum = T::Accum>>(
        &mut self,
        s: S,
        [a, b]: [&[T]; 2],
        alpha: T::Accum,
        reuse: Option<(PatternId, &mut [U])>,
    ) -> Result<Option<Product<U>>> {
        let Plan { setup, workers, a_values, b_values, pattern } = self;
        let threads = &setup.threads;
        let (a, b) = threads.run(|| {
            let a = in_order(a, a_values, setup.transposed.as_ref())?;
            Ok::<_, gustav_core::Error>((a, in_order(b, b_values, None)?))
        })?;
        let to = reuse.map(|(_, values)| values);
        let known = pattern.as_ref().filter(|_| setup.same_pattern());
        let task = setup.task(a, b, alpha);
        let product = match (&setup.mask, task) {
            (Some(mask), _) => {
                let job = setup.masked(mask, a, b, alpha);
                let c = threads.run(|| masked::multiply(s, &job, setup.types(), known))?;
                if let Some(to) = to {
                    to.copy_from_slice(&c.values);
                    return Ok(None);
                }
                c
            }
            (None, Some(task)) => {
                let product = match task.narrow() {
                    Some(task) => all_of(s, &task, known, to, workers)?,
                    None => all_of(s, &task, known, to, workers)?,
                };
                match product {
                    Some(product) => product,
                    None => return Ok(None),
                }
            }
            (None, None) => return Err(unknown_pattern()),
        };
        if setup.same_pattern() {
            *pattern = Some(product.pattern.clone());
        }
        Ok(Some(product))
    }
}

/// C without a mask, or only its values, in `to`, where its pattern is known.
fn all_of<S: Ops<A>, A: Arith, X: Indices, U: Scalar<Accum = A>>(
    s: S,
    task: &Task<'_, A, X>,
    known: Option<&AnyPattern<'static>>,
    to: Option<&mut [U]>,
    workers: &Workers<A>,
) -> Result<Option<Product<U>>> {
    let Some(known) = known else { return gustavson::multiply(s, task, workers).map(Some) };
    if let Some(to) = to {
        // SAFETY: an earlier product of this plan had this pattern, and `to` are the values of a
        // matrix of this pattern.
        unsafe { refill::refill(s, task, known, Shared::new(to), workers)? };
        return Ok(None);
    }
    let nnz = known.nnz();
    let mut values = Buffer::uninit(nnz, "values of C")?;
    // SAFETY: as above; every value is written.
    let values = unsafe {
        refill::refill(s, task, known, values.shared(), workers)?;
        values.assume_init(nnz)
    };
    Ok(Some(Product { pattern: known.clone(), values }))
}

const VALUES: &str = "values of operands";

/// `values` as kernels read them: themselves, or gathered in `buffer`.
fn in_order<'v, T: Scalar>(
    values: &'v [T],
    buffer: &'v mut Buffer<T::Accum>,
    transposed: Option<&Transposed>,
) -> Result<&'v [T::Accum]> {
    if transposed.is_none() && TypeId::of::<T>() == TypeId::of::<T::Accum>() {
        return Ok(cast_slice(values));
    }
    if buffer.len() != values.len() {
        *buffer = Buffer::zeroed(values.len(), VALUES)?;
    }
    gather(values, buffer, transposed);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_pass_finds_the_entries_of_the_product() {
        // Rows near each other, rows far apart, empty ones, duplicates, and one long row.
        let (n, mut offsets, mut indices) = (9000u32, vec![0u32], Vec::new());
        for row in 0..n {
            let step = if row % 3 == 0 { 1 } else { 2654 };
            let len = [0, 3, 9, 1][row as usize % 4] + if row == 5 { 4000 } else { 0 };
            indices.extend((0..len).map(|k| (row.wrapping_mul(7) + k * step) % n));
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0f32; indices.len()];
        let n = n as usize;
        let a = Csr::<f32>::new(n, n, offsets, indices, values).unwrap();
        for (a, sorted) in
            [(a.clone(), false), (a.clone(), true), (a.canonicalize().unwrap(), false)]
        {
            let problem = Problem::spgemm(&a.view(), &a.view()).sorted(sorted);
            let any = || gustav_core::PatternRef::from(a.pattern()).into();
            let mut plan =
                Plan::<f32>::new([any(), any()], None, &problem, &Options::default()).unwrap();
            let request = Request { alpha: None, add: None, reuse: None };
            let c: Product<f32> = plan.execute(a.values(), a.values(), request).unwrap().unwrap();
            let values = a.values().as_slice();
            let task = plan.setup.task(values, values, 1.0).unwrap();
            assert_eq!(gustavson::count(&task, &plan.workers).unwrap(), c.values.len());
        }
    }
}
