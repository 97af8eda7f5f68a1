//! C = α·op(A)·B ⊕ β·D: the union of a finished product and a sparse matrix. See
//! `kernels/spgemm/add.cu`.

use gustav_core::{DType, Error, Index, IndexType, PatternId, Result, Scalar, Semiring};

use super::canonical::canonical;
use super::plan::{Factors, SpgemmPlan};
use crate::device::order::Uses;
use crate::device::{Device, DeviceBuffer};
use crate::jit::Request;
use crate::jit::source::{self, bits};
use crate::launch::Kernel;
use crate::matrix::scan::Scan;
use crate::matrix::{DeviceCsr, WeakPattern};
use crate::product::call::Common;
use crate::product::sparse_operands::{Matrix, Output, Sparse};
use crate::product::unsupported;

const BLOCK: u32 = 128;
// Most CTAs per multiprocessor; larger matrices have more rows per CTA.
const CTAS: u64 = 32;

/// The source with its parameters.
pub(crate) fn request(
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: Semiring,
) -> Request {
    request!("spgemm/add.cu")
        .with_block::<Arguments>()
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("VALUE", dtype)
        .with("SEMIRING", source::semiring(semiring))
        .with("BLOCK", BLOCK)
}

parameter_block! {
    struct Arguments {
        p: Matrix,
        d: Matrix,
        c: Output,
        rows: u64,
        beta: u64,
    }
}

/// The kernels, and the product to which D is added.
pub(super) struct Union<T, I: Index, O: Index> {
    count: Kernel<Arguments>,
    fill: Kernel<Arguments>,
    scan: Scan,
    /// The last product, cached if there will be more of its pattern.
    product: Option<DeviceCsr<T, I, O>>,
    /// The pattern of the last C, while it exists, and that of its D.
    result: WeakPattern<I, O>,
    d: Option<PatternId>,
}

impl<T: Scalar, I: Index, O: Index> Union<T, I, O> {
    fn new(device: &Device, semiring: Semiring) -> Result<Self> {
        let module = device.module(&request(T::DTYPE, (I::TYPE, O::TYPE), semiring))?;
        Ok(Union {
            count: module.kernel(c"count")?,
            fill: module.kernel(c"fill")?,
            scan: Scan::new(device, O::TYPE)?,
            product: None,
            result: WeakPattern::default(),
            d: None,
        })
    }

    fn launch(
        &self,
        device: &Device,
        kernel: &Kernel<Arguments>,
        arguments: &Arguments,
    ) -> Result<()> {
        let most = device.profile().multiprocessors as u64 * CTAS;
        let grid = (arguments.rows.div_ceil(u64::from(BLOCK / 32)).min(most), 1);
        // SAFETY: the matrices are alive, have one shape and
        // rows that increase, and their buffers wait for the stream when they are freed.
        unsafe { kernel.launch(device.stream(), grid, BLOCK, arguments) }
    }

    /// P ⊕ β·D, rows of both increasing, as a new matrix on the device's own stream.
    fn unite(
        &self,
        device: &Device,
        p: &DeviceCsr<T, I, O>,
        beta: u64,
        d: &DeviceCsr<T, I, O>,
    ) -> Result<DeviceCsr<T, I, O>> {
        let (rows, cols) = (p.nrows(), p.ncols());
        let what = "row offsets of C on the device";
        let offsets = DeviceBuffer::<O>::queued(device, rows + 1, what)?;
        let c = Output { offsets: offsets.address(), indices: 0, values: 0 };
        let (p, d) = (Sparse::of(p).into(), Sparse::of(d).into());
        let arguments = Arguments { p, d, c, rows: rows as u64, beta };
        self.launch(device, &self.count, &arguments)?;
        let nnz = self.scan.sum(device, &offsets)?;
        let indices = DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
        let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
        let c = Output { indices: indices.address(), values: values.address(), ..c };
        self.launch(device, &self.fill, &Arguments { c, ..arguments })?;
        // SAFETY: offsets increase to `nnz`; the columns are from matrices of the same width.
        Ok(unsafe { DeviceCsr::from_parts_unchecked(rows, cols, offsets, indices, values) })
    }

    /// Bytes of the cached product.
    pub(super) fn bytes(&self) -> usize {
        self.product.as_ref().map_or(0, DeviceCsr::bytes)
    }

    /// Computes the values of the same in `c`, which has the pattern.
    fn refill(
        &self,
        device: &Device,
        p: &DeviceCsr<T, I, O>,
        beta: u64,
        d: &DeviceCsr<T, I, O>,
        c: &DeviceCsr<T, I, O>,
    ) -> Result<()> {
        let rows = p.nrows() as u64;
        let [p, d] = [p, d].map(|m| Sparse::of(m).into());
        let c = Sparse::of(c).into();
        self.launch(device, &self.fill, &Arguments { p, d, c, rows, beta })
    }
}

impl<T: Scalar, I: Index, O: Index, U: Scalar<Accum = T::Accum>> SpgemmPlan<T, I, O, U> {
    /// C = α·op(A)·B ⊕ β·D as a new matrix.
    pub(super) fn execute_add(
        &mut self,
        values: Factors<'_, T>,
        d: &DeviceCsr<U, I, O>,
        call: &Common<'_, T::Accum>,
    ) -> Result<DeviceCsr<U, I, O>> {
        self.patterns.check_like_c("D", d.pattern())?;
        let made = || Union::new(&self.patterns.device, self.patterns.problem.semiring);
        let mut union = self.union.take().map_or_else(made, Ok)?;
        let done = self.united(&mut union, values, d, call);
        self.union = Some(union);
        done
    }

    /// D with increasing columns; `None` if it has them already.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if summing repeated entries of D first would change the result.
    fn in_order(&self, d: &DeviceCsr<U, I, O>) -> Result<Option<DeviceCsr<U, I, O>>> {
        let problem = &self.patterns.problem;
        let found = canonical(d, problem.semiring)?;
        let repeats = found.as_ref().is_some_and(|m| m.nnz() != d.nnz());
        let reason = match U::DTYPE {
            _ if !repeats => return Ok(found),
            DType::F16 | DType::Bf16 => "repeated entries of D would be rounded before β",
            _ if problem.deterministic => "repeated entries of D are added in any order",
            _ => return Ok(found),
        };
        Err(unsupported(problem, "α·A·B + β·D on CUDA", reason, "Csr::canonicalize of D first"))
    }

    fn united(
        &mut self,
        union: &mut Union<U, I, O>,
        values: Factors<'_, T>,
        d: &DeviceCsr<U, I, O>,
        call: &Common<'_, T::Accum>,
    ) -> Result<DeviceCsr<U, I, O>> {
        // Frees its memory for the next product.
        union.product = None;
        let product = self.product(values, call, None)?;
        let semiring = self.patterns.problem.semiring;
        let beta = call.beta(semiring);
        if beta == semiring.zero() {
            return Ok(product);
        }
        let sorted = [canonical(&product, semiring)?, self.in_order(d)?];
        let caches = self.patterns.problem.calls > 1 && sorted[0].is_none();
        let [p, summand] =
            [sorted[0].as_ref().unwrap_or(&product), sorted[1].as_ref().unwrap_or(d)];
        p.join(&self.patterns.device)?;
        summand.join(&self.patterns.device)?;
        let c = union.unite(&self.patterns.device, p, bits(beta), summand)?;
        self.patterns.end(call)?;
        union.result = c.pattern().downgrade();
        (union.d, union.product) = (Some(d.pattern().id()), caches.then_some(product));
        Ok(c)
    }

    /// Computes the values of C = α·op(A)·B ⊕ β·D in `c`. If the plan cached the product and the
    /// rows of both are sorted, there is no symbolic phase, and only a word is allocated, for the
    /// check that they are.
    pub(super) fn execute_add_into(
        &mut self,
        values: Factors<'_, T>,
        d: &DeviceCsr<U, I, O>,
        c: &mut DeviceCsr<U, I, O>,
        call: &Common<'_, T::Accum>,
    ) -> Result<()> {
        self.patterns.check_like_c("D", d.pattern())?;
        let semiring = self.patterns.problem.semiring;
        if call.beta(semiring) == semiring.zero() {
            return Err(Error::Argument {
                name: "beta",
                found: "the semiring's zero".into(),
                expected: "a factor of D, whose pattern C has; else a call without D".into(),
            });
        }
        let Some(mut union) = self.union.take() else {
            return WeakPattern::<I, O>::default().check(c.pattern().id());
        };
        let done = self.united_into(&mut union, values, d, c, call);
        self.union = Some(union);
        done
    }

    fn united_into(
        &mut self,
        union: &mut Union<U, I, O>,
        values: Factors<'_, T>,
        d: &DeviceCsr<U, I, O>,
        c: &DeviceCsr<U, I, O>,
        call: &Common<'_, T::Accum>,
    ) -> Result<()> {
        union.result.check(c.pattern().id())?;
        if let Some(then) = union.d {
            then.check("D", Some(d.pattern().id()))?;
        }
        let cached = match union.product.take() {
            Some(mut p) => match self.product_into(values, &mut p, call) {
                Err(Error::Unsupported { .. }) => None,
                other => other.map(|()| Some(p))?,
            },
            None => None,
        };
        let caches = cached.is_some();
        let product = cached.map_or_else(|| self.product(values, call, None), Ok)?;
        let semiring = self.patterns.problem.semiring;
        let sorted = if caches { None } else { canonical(&product, semiring)? };
        let other = self.in_order(d)?;
        let [p, d] = [sorted.as_ref().unwrap_or(&product), other.as_ref().unwrap_or(d)];
        let device = &self.patterns.device;
        p.join(device)?;
        d.join(device)?;
        c.pattern().join(device)?;
        Uses::on(device.stream()).ordered(call.ordered).write(c.values().buffer())?;
        let done = union.refill(device, p, bits(call.beta(semiring)), d, c);
        // Also after an error: kernels that write C may still run.
        self.patterns.end(call)?;
        union.product = caches.then_some(product);
        done
    }
}
