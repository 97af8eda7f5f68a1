//! C = α·op(A)·B ⊕ β·D: a finished product united with a sparse matrix. See
//! `kernels/spgemm/add.cu`.

use gustav_core::{DType, Error, Index, IndexType, Result, Scalar, SemiringKind};

use super::canonical::canonical;
use super::operands::{Matrix, Output, Sparse};
use super::plan::SpgemmPlan;
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::scan::Scan;
use crate::spmm::{bits, unsupported};
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, DeviceCsr, source};

const BLOCK: u32 = 128;
// CTAs for every multiprocessor, before they take more rows each.
const CTAS: u64 = 32;

/// The source with its parameters.
pub(crate) fn request(
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: SemiringKind,
) -> Request {
    Request::new("spgemm/add.cu", include_str!("../../kernels/spgemm/add.cu"))
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

/// The kernels, and the product that they add to.
pub(super) struct Union<T, I, O> {
    count: Kernel<Arguments>,
    fill: Kernel<Arguments>,
    scan: Scan,
    /// The product before this one, kept where there will be more of its pattern.
    product: Option<DeviceCsr<T, I, O>>,
    /// Entries of the last C, and of its D.
    nnz: Option<(usize, usize)>,
}

impl<T: Scalar, I: Index, O: Index> Union<T, I, O> {
    fn new(device: &Device, semiring: SemiringKind) -> Result<Self> {
        let module = device.module(&request(T::DTYPE, (I::TYPE, O::TYPE), semiring))?;
        Ok(Union {
            count: module.kernel(c"count")?,
            fill: module.kernel(c"fill")?,
            scan: Scan::new(device, O::TYPE)?,
            product: None,
            nnz: None,
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
        // SAFETY: offsets rise to `nnz`; the columns are those of matrices as wide.
        unsafe { DeviceCsr::from_parts(rows, cols, offsets, indices, values) }
    }

    /// Bytes of the product that is kept.
    pub(super) fn bytes(&self) -> usize {
        self.product
            .as_ref()
            .map_or(0, |p| p.offsets().bytes() + p.indices().bytes() + p.values().bytes())
    }

    /// The same into `c`, which has the pattern.
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
    /// Computes C = α·op(A)·B ⊕ β·D as a new matrix with a sparse `d` of C's shape: C holds the
    /// union of both patterns, rows sorted. β equal to the semiring's zero leaves `d` unread and C
    /// with the pattern of the product. Otherwise as [`SpgemmPlan::execute`]; where
    /// [`Problem::calls`](gustav_core::Problem::calls) says that there will be more, the product is kept beside C for
    /// [`SpgemmPlan::execute_add_into`].
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`], and [`Error::Shape`] when `d` has another shape,
    /// [`Error::Argument`] when it is on another device.
    pub fn execute_add(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        beta: T::Accum,
        d: &DeviceCsr<U, I, O>,
        stream: &Stream,
    ) -> Result<DeviceCsr<U, I, O>> {
        self.patterns.check_like_c("D", d)?;
        let made = || Union::new(&self.patterns.device, self.patterns.problem.semiring);
        let mut union = self.union.take().map_or_else(made, Ok)?;
        let done = self.united(&mut union, (a, alpha, b), (beta, d), stream);
        self.union = Some(union);
        done
    }

    /// D with increasing columns, where it has them not.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the sum of entries of one place would not be what is promised.
    fn in_order(&self, d: &DeviceCsr<U, I, O>) -> Result<Option<DeviceCsr<U, I, O>>> {
        let problem = &self.patterns.problem;
        let found = canonical(d, problem.semiring)?;
        let repeats = found.as_ref().is_some_and(|m| m.nnz() != d.nnz());
        let reason = match U::DTYPE {
            _ if !repeats => return Ok(found),
            DType::F16 | DType::Bf16 => "D's entries of one place would be rounded before β",
            _ if problem.deterministic => "D's entries of one place are added in any order",
            _ => return Ok(found),
        };
        Err(unsupported(problem, "α·A·B + β·D on CUDA", reason, "Csr::canonicalize of D first"))
    }

    fn united(
        &mut self,
        union: &mut Union<U, I, O>,
        (a, alpha, b): (&DeviceCsr<T, I, O>, T::Accum, &DeviceCsr<T, I, O>),
        (beta, d): (T::Accum, &DeviceCsr<U, I, O>),
        stream: &Stream,
    ) -> Result<DeviceCsr<U, I, O>> {
        // Its memory is wanted for the next.
        union.product = None;
        let product = self.execute(a, alpha, b, stream)?;
        if beta == self.patterns.problem.semiring.zero() {
            return Ok(product);
        }
        let sorted = [canonical(&product, self.patterns.problem.semiring)?, self.in_order(d)?];
        let keeps = self.patterns.problem.calls > 1 && sorted[0].is_none();
        let [p, summand] =
            [sorted[0].as_ref().unwrap_or(&product), sorted[1].as_ref().unwrap_or(d)];
        p.join(&self.patterns.device)?;
        summand.join(&self.patterns.device)?;
        let c = union.unite(&self.patterns.device, p, bits(beta), summand)?;
        self.patterns.end(stream)?;
        (union.nnz, union.product) = (Some((c.nnz(), d.nnz())), keeps.then_some(product));
        Ok(c)
    }

    /// Computes the values of C = α·op(A)·B ⊕ β·D into `c`, a matrix that an earlier
    /// [`SpgemmPlan::execute_add`] of this plan returned for the pattern of `d`. Where the plan kept
    /// the product and the rows of both are sorted, nothing symbolic is done, and no memory is taken
    /// but a word that says whether they are. Where `d` has as many entries in other places, C is not
    /// what was asked for.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute_add`], and [`Error::Pattern`] when `c` or `d` has another shape or
    /// number of entries than then, or nothing was added before; [`Error::Argument`] for a β that
    /// leaves `d` unread.
    pub fn execute_add_into(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        beta: T::Accum,
        d: &DeviceCsr<U, I, O>,
        c: &mut DeviceCsr<U, I, O>,
        stream: &Stream,
    ) -> Result<()> {
        self.patterns.check_like_c("D", d)?;
        if beta == self.patterns.problem.semiring.zero() {
            return Err(Error::Argument {
                name: "beta",
                found: "the semiring's zero".into(),
                expected: "a factor of D, whose pattern C has; else execute_into".into(),
            });
        }
        let Some(mut union) = self.union.take() else {
            return self.patterns.check_result(c, None);
        };
        let done = self.united_into(&mut union, (a, alpha, b), (beta, d), c, stream);
        self.union = Some(union);
        done
    }

    fn united_into(
        &mut self,
        union: &mut Union<U, I, O>,
        (a, alpha, b): (&DeviceCsr<T, I, O>, T::Accum, &DeviceCsr<T, I, O>),
        (beta, d): (T::Accum, &DeviceCsr<U, I, O>),
        c: &DeviceCsr<U, I, O>,
        stream: &Stream,
    ) -> Result<()> {
        self.patterns.check_result(c, union.nnz.map(|(c, _)| c))?;
        if let Some((_, then)) = union.nnz.filter(|(_, then)| *then != d.nnz()) {
            return Err(Error::Pattern {
                expected: format!("D with {then} nonzeros"),
                found: format!("D with {}", d.nnz()),
            });
        }
        let kept = match union.product.take() {
            Some(mut p) => match self.execute_into(a, alpha, b, &mut p, stream) {
                Err(Error::Unsupported { .. }) => None,
                other => other.map(|()| Some(p))?,
            },
            None => None,
        };
        let keeps = kept.is_some();
        let product = kept.map_or_else(|| self.execute(a, alpha, b, stream), Ok)?;
        let semiring = self.patterns.problem.semiring;
        let sorted = if keeps { None } else { canonical(&product, semiring)? };
        let other = self.in_order(d)?;
        let [p, d] = [sorted.as_ref().unwrap_or(&product), other.as_ref().unwrap_or(d)];
        p.join(&self.patterns.device)?;
        d.join(&self.patterns.device)?;
        c.join(&self.patterns.device)?;
        let done = union.refill(&self.patterns.device, p, bits(beta), d, c);
        // After an error too: parts of C may be under way.
        self.patterns.end(stream)?;
        union.product = keeps.then_some(product);
        done
    }
}
