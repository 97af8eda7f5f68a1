//! C of a rank from the products of consecutive rows on its GPU.

use std::ops::Range;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Operation, Pattern, Problem, Result};
use gustav_cuda::{Device, DeviceBuffer, DeviceCsr, DevicePattern, SpgemmCall, SpgemmPlan, Stream};

use crate::local::DistScalar;
use crate::row_parts::RowPart;

/// The products of a rank's rows of A, in order.
pub struct Parts<T: DistScalar, I: Index, O: Index> {
    device: Device,
    columns: usize,
    parts: Vec<Part<T, I, O>>,
    /// The number of the part with the most intermediate products.
    largest: usize,
    /// Whether entries of C are in the same order in every product.
    is_ordered: bool,
    last: Option<Known<I, O>>,
}

/// Some of the rows, times the rank's rows of B, or all that it multiplies with.
struct Part<T: DistScalar, I: Index, O: Index> {
    of: RowPart,
    /// Where their values of A are.
    values: Range<usize>,
    plan: SpgemmPlan<T, I, O>,
}

/// The patterns of the last product: plans reuse those of the parts, as long as they are there.
struct Known<I: Index, O: Index> {
    parts: Vec<DevicePattern<I, O>>,
    whole: DevicePattern<I, O>,
}

/// How rows of B are numbered, and which part is the largest.
pub struct Numbered<'n> {
    /// The row that each nonzero of A needs.
    pub of_a: &'n [u32],
    /// The number of the part with the most intermediate products.
    pub largest: usize,
    /// The first row, and the first value, of this rank.
    pub own_row: usize,
    pub own_at: usize,
}

impl<T: DistScalar, I: Index, O: Index> Parts<T, I, O> {
    /// Plans `parts` of the rows of A, the rank's `a`, with B, of which it has `b` and multiplies with `all`.
    ///
    /// # Errors
    /// As [`SpgemmPlan::new`], and [`gustav_core::Error::Overflow`] when the index types are too narrow.
    pub fn new(
        device: &Device,
        [a, b]: [&Pattern<I, O>; 2],
        all: &Pattern<I, O>,
        (parts, numbered): (Vec<RowPart>, Numbered<'_>),
        problem: &Problem,
    ) -> Result<Self> {
        let of_all = DevicePattern::upload(device, all)?;
        let own = |of_all: &DevicePattern<I, O>| {
            let offsets = DeviceBuffer::from_slice(device, b.offsets(), "row offsets of B")?;
            // SAFETY: nobody writes them. They are the indices of `b`, whose offsets and shape these are.
            unsafe {
                let indices = of_all.indices().part(numbered.own_at, b.nnz());
                Ok(DevicePattern::new_unchecked(b.nrows(), b.ncols(), offsets, indices))
            }
        };
        let has_ghosts = all.nrows() > b.nrows();
        let is_own = |part: &RowPart| has_ghosts && part.needs.is_empty();
        let of_own = parts.iter().find(|part| is_own(part)).map(|_| own(&of_all)).transpose()?;
        let part = |of: RowPart| {
            let of_own = of_own.as_ref().filter(|_| is_own(&of));
            let first = of_own.map_or(0, |_| numbered.own_row);
            let of_b = of_own.unwrap_or(&of_all);
            let values = of.nonzeros(a.offsets());
            let (rows, inner) = (of.rows.len(), of_b.nrows());
            let row_of_b = |at: usize| {
                I::try_from_usize(numbered.of_a[at] as usize - first, "rows of B on one rank")
            };
            let of_a: Pattern<I, O> = of.pattern(a.offsets(), inner, row_of_b)?;
            let planned = Problem {
                columns: of_b.ncols(),
                nnz_b: Some(of_b.nnz()),
                sorted: problem.sorted,
                deterministic: problem.deterministic,
                semiring: problem.semiring,
                calls: problem.calls,
                ..Problem::of_pattern(Operation::Spgemm, rows, inner, of_a.nnz())
            };
            let of_a = DevicePattern::upload(device, &of_a)?;
            let options = gustav_cuda::spgemm::Options::default();
            let plan = SpgemmPlan::new(&of_a, of_b, &planned, &options)?;
            Ok(Part { of, values, plan })
        };
        Ok(Parts {
            device: device.clone(),
            columns: b.ncols(),
            parts: parts.into_iter().map(part).collect::<Result<_>>()?,
            largest: numbered.largest,
            is_ordered: problem.sorted || problem.deterministic,
            last: None,
        })
    }

    /// What was chosen for the part with the most intermediate products.
    pub fn choice(&self) -> &gustav_plan::Choice<gustav_cuda::spgemm::Config> {
        self.parts[self.largest].plan.choice()
    }

    /// Bytes that the plans hold.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.plan.workspace_bytes()).sum()
    }

    /// Begins a product: none of the parts is computed.
    pub fn begin(&self) -> Vec<Option<DeviceCsr<T, I, O>>> {
        self.parts.iter().map(|_| None).collect()
    }

    /// Computes part `number` on `stream`, with the rank's values `own` of B, or all that it multiplies with.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`].
    pub fn execute(
        &mut self,
        products: &mut [Option<DeviceCsr<T, I, O>>],
        number: usize,
        (a, [own, all], alpha): (&DeviceBuffer<T>, [&DeviceBuffer<T>; 2], Option<T::Accum>),
        stream: &Stream,
    ) -> Result<()> {
        let part = &mut self.parts[number];
        let call = alpha.map_or_else(SpgemmCall::new, |alpha| SpgemmCall::new().alpha(alpha));
        // SAFETY: nobody writes values of A.
        let a = unsafe { a.part(part.values.start, part.values.len()) };
        let b = if part.of.needs.is_empty() { own } else { all };
        products[number] = Some(part.plan.execute(&a, b, call.on(stream))?);
        Ok(())
    }

    /// C, of whose parts all are computed.
    ///
    /// # Errors
    /// [`gustav_core::Error::Overflow`] when its entries outnumber the offset type,
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn join(
        &mut self,
        products: Vec<Option<DeviceCsr<T, I, O>>>,
        stream: &Stream,
    ) -> Result<DeviceCsr<T, I, O>> {
        let products: Vec<DeviceCsr<T, I, O>> = products.into_iter().flatten().collect();
        let products = match <[_; 1]>::try_from(products) {
            Ok([product]) => return Ok(product),
            Err(products) => products,
        };
        let same = |known: &Known<I, O>| {
            let ids = known.parts.iter().map(DevicePattern::id);
            ids.eq(products.iter().map(|product| product.pattern().id()))
        };
        let whole = match self.last.take().filter(same) {
            Some(known) => known.whole,
            None => self.pattern(&products, stream)?,
        };
        let values = products.iter().map(|product| product.values().buffer());
        let values = self.joined(values, whole.nnz(), "values of C on the device", stream)?;
        if self.is_ordered {
            let parts = products.iter().map(|product| product.pattern().clone()).collect();
            self.last = Some(Known { parts, whole: whole.clone() });
        }
        DeviceCsr::from_pattern(&whole, values)
    }

    /// The pattern of all rows of `products`.
    fn pattern(
        &self,
        products: &[DeviceCsr<T, I, O>],
        stream: &Stream,
    ) -> Result<DevicePattern<I, O>> {
        let rows = products.iter().map(DeviceCsr::nrows).sum::<usize>();
        let mut offsets = try_vec::<O>(rows + 1, "row offsets of C")?;
        offsets.push(O::try_from_usize(0, "row offsets of C")?);
        let mut nnz = 0;
        for product in products {
            for end in &product.offsets().to_host()?[1..] {
                offsets.push(O::try_from_usize(nnz + end.to_usize(), "row offsets of C")?);
            }
            nnz += product.nnz();
        }
        let indices = products.iter().map(DeviceCsr::indices);
        let indices = self.joined(indices, nnz, "column indices of C on the device", stream)?;
        let offsets = DeviceBuffer::from_slice(&self.device, &offsets, "row offsets of C")?;
        // SAFETY: the rows are those of patterns over the same columns, and nobody else has the arrays.
        Ok(unsafe { DevicePattern::new_unchecked(rows, self.columns, offsets, indices) })
    }

    /// The `len` values of `parts`, one after another.
    fn joined<'b, V: bytemuck::Pod>(
        &self,
        parts: impl Iterator<Item = &'b DeviceBuffer<V>>,
        len: usize,
        what: &'static str,
        stream: &Stream,
    ) -> Result<DeviceBuffer<V>> {
        let (whole, mut first) = (DeviceBuffer::zeros(&self.device, len, what)?, 0);
        for part in parts {
            // SAFETY: nothing else is queued on these values but that they are zero.
            let mut to = unsafe { whole.part(first, part.len()) };
            to.copy_from(part, stream)?;
            first += part.len();
        }
        Ok(whole)
    }
}
