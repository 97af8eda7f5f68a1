//! C of a rank from the products of consecutive rows.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Buffer, Csr, Index, Pattern, Result};
use gustav_cpu::SpgemmPlan;
use gustav_cpu::spgemm::SpgemmCall;

use crate::local::DistScalar;

/// Some of this rank's rows of A times the rows of B that the rank multiplies with.
pub struct Part<T: DistScalar> {
    /// Where their values of A are.
    pub values: Range<usize>,
    /// Their product, whose columns are numbered by those that occur.
    pub plan: SpgemmPlan<'static, T, u32, u64>,
}

/// The pattern of C, of which all products are, once there was one.
pub struct Known<I: Index, O: Index> {
    /// Those of the parts, as their plans number columns.
    parts: Vec<Pattern<u32, u64>>,
    /// That of all rows, over all columns.
    whole: Pattern<I, O>,
}

/// C while it is computed.
pub enum Unfinished<T: DistScalar, I: Index, O: Index> {
    /// Of a pattern that is not known: the parts that are computed.
    Parts(Vec<Option<Csr<T, u32, u64>>>),
    /// Of a pattern that is known: its values.
    Values(Known<I, O>, Buffer<T>),
}

impl<T: DistScalar, I: Index, O: Index> Unfinished<T, I, O> {
    /// A product of `parts`, of the pattern of the last one, if there was one.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn new(parts: &[Part<T>], last: Option<Known<I, O>>) -> Result<Self> {
        let known = last.filter(|_| parts.iter().all(|part| part.plan.keeps_pattern()));
        Ok(match known {
            None => Unfinished::Parts(parts.iter().map(|_| None).collect()),
            Some(known) => {
                let values = Buffer::zeroed(known.whole.nnz(), "values of C")?;
                Unfinished::Values(known, values)
            }
        })
    }

    /// Computes part `number` of `parts`.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`].
    pub fn execute(
        &mut self,
        parts: &mut [Part<T>],
        number: usize,
        (a, b, alpha): (&[T], &[T], Option<T::Accum>),
    ) -> Result<()> {
        let part = &mut parts[number];
        let a = &a[part.values.clone()];
        match self {
            Unfinished::Parts(products) => {
                let call = SpgemmCall { alpha, ..SpgemmCall::default() };
                products[number] = Some(part.plan.execute(a, b, call)?);
                Ok(())
            }
            Unfinished::Values(known, values) => {
                let first = known.parts[..number].iter().map(Pattern::nnz).sum::<usize>();
                let pattern = &known.parts[number];
                let to = &mut values[first..][..pattern.nnz()];
                part.plan.execute_into(a, b, alpha, (pattern, to))
            }
        }
    }

    /// C, all of whose parts are computed, over `columns` columns, of which `of_c` are numbered by the plans; and its
    /// pattern.
    ///
    /// # Errors
    /// [`gustav_core::Error::Overflow`] when its entries outnumber the offset type,
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn finish(self, of_c: &[I], columns: usize) -> Result<(Known<I, O>, Csr<T, I, O>)> {
        let products = match self {
            Unfinished::Values(known, values) => {
                let c = Csr::from_pattern(&known.whole, values)?;
                return Ok((known, c));
            }
            Unfinished::Parts(products) => products.into_iter().flatten().collect::<Vec<_>>(),
        };
        let (mut rows, mut nnz) = (0, 0);
        for product in &products {
            rows += product.nrows();
            nnz += product.nnz();
        }
        let mut offsets = try_vec::<O>(rows + 1, "row offsets of C")?;
        let mut indices = try_vec::<I>(nnz, "column indices of C")?;
        offsets.push(O::try_from_usize(0, "row offsets of C")?);
        for product in &products {
            let first = indices.len();
            for end in &product.offsets()[1..] {
                offsets.push(O::try_from_usize(first + *end as usize, "row offsets of C")?);
            }
            indices.extend(product.indices().iter().map(|k| of_c[*k as usize]));
        }
        let whole = Pattern::new(rows, columns, offsets, indices)?;
        let parts = products.iter().map(|product| product.pattern().clone()).collect();
        let values = match <[_; 1]>::try_from(products) {
            Ok([product]) => product.into_values(),
            Err(products) => {
                let mut values = try_vec::<T>(nnz, "values of C")?;
                products.iter().for_each(|p| values.extend_from_slice(p.values().as_slice()));
                values.into()
            }
        };
        let c = Csr::from_pattern(&whole, values)?;
        Ok((Known { parts, whole }, c))
    }
}
