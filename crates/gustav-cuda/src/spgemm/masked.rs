//! `masked`: the entries of C = α·op(A)·B at the places of a given pattern, summed in A's order. See
//! `kernels/spgemm/masked.cu`.

use gustav_core::{
    DType, Error, Index, IndexType, Operation, Problem, Result, Scalar, SemiringKind,
};

use super::canonical::{canonical, increases};
use super::operands::Operands;
use super::plan::{begin, check, check_result, end};
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::scan::Scan;
use crate::spmm::unsupported;
use crate::stream::Stream;
use crate::transposed::Transposed;
use crate::{Device, DeviceBuffer, DeviceCsr, source};

// Threads of a CTA, and places of a row that one warp takes, as in the kernels.
const BLOCK: u32 = 128;
const FEW: usize = 256;
// CTAs for every multiprocessor, before they take more rows each.
const CTAS: u64 = 32;
// CTAs that share a longer row, and longer rows for every multiprocessor that are under way.
const SHARING: u64 = 64;
const LONGER: u64 = 2;

/// What the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Types {
    pub dtype: DType,
    /// Of the values of C.
    pub out: DType,
    pub index: IndexType,
    pub offset: IndexType,
    pub semiring: SemiringKind,
}

/// The source with its parameters.
pub(crate) fn request(types: Types) -> Request {
    Request::new("spgemm/masked.cu", include_str!("../../kernels/spgemm/masked.cu"))
        .with("INDEX", types.index)
        .with("OFFSET", types.offset)
        .with("VALUE", types.dtype)
        .with("OUT", types.out)
        .with("SEMIRING", source::semiring(types.semiring))
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Arguments {
    a_offsets: u64,
    a_indices: u64,
    a_values: u64,
    b_offsets: u64,
    b_indices: u64,
    b_values: u64,
    places_offsets: u64,
    places: u64,
    values: u64,
    met: u64,
    c_offsets: u64,
    c_indices: u64,
    c_values: u64,
    rows: u64,
    alpha: u64,
    longer: u64,
    longer_count: u64,
    ordered: u32,
}

/// The kernels.
pub(super) struct Places {
    few: Kernel,
    many: Kernel,
    keep: Kernel,
    multiprocessors: u64,
    /// How many rows have more places than a warp takes, and these rows.
    longer: DeviceBuffer<u32>,
}

impl Places {
    /// Compiled for the types of `problem`.
    pub(super) fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let module = device.module(&request(Types {
            dtype: problem.dtype,
            out: problem.output,
            index: problem.index_type,
            offset: problem.offset_type,
            semiring: problem.semiring,
        }))?;
        Ok(Places {
            few: module.kernel(c"few")?,
            many: module.kernel(c"many")?,
            keep: module.kernel(c"keep")?,
            multiprocessors: device.profile().multiprocessors as u64,
            longer: DeviceBuffer::queued(device, 0, "")?,
        })
    }

    /// Makes room for a pattern of up to `count` places.
    pub(super) fn prepare(&mut self, device: &Device, count: usize) -> Result<()> {
        let what = "rows of many places";
        self.longer = DeviceBuffer::queued(device, 1 + count / (FEW + 1), what)?;
        Ok(())
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.longer.bytes()
    }

    /// Queues the values at all places of `c`, whose rows increase: every sum in A's order where those
    /// of B do, which `ordered` says.
    ///
    /// # Safety
    /// The operands and `c` are valid until the stream has done the work, and of one product with not
    /// more places than were prepared for.
    pub(super) unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &self,
        stream: &Stream,
        o: &Operands,
        c: &DeviceCsr<T, I, O>,
        ordered: bool,
    ) -> Result<()> {
        let arguments = Arguments {
            values: c.values().address(),
            ordered: u32::from(ordered),
            ..of(o, c.offsets(), c.indices())
        };
        // SAFETY: the caller's promise; the values are as many as the places.
        unsafe { self.sum(stream, &arguments) }
    }

    /// Queues the sums at all places. Where places are counted, `c_offsets` begins with zeros.
    ///
    /// # Safety
    /// What the arguments name is valid until the stream has done the work, and there are not more
    /// places than were prepared for.
    unsafe fn sum(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        let (longer_count, longer) = (self.longer.address(), self.longer.address() + 4);
        let arguments = Arguments { longer_count, longer, ..*arguments };
        // SAFETY: the word is the first of the buffer, which has room for as many rows as can have
        // more places than a warp takes; `Arguments` is the kernels' parameter.
        unsafe {
            DeviceBuffer::<u32>::borrowed(self.longer.device(), longer_count, 1).fill(0, stream)?;
            self.few.launch(stream, self.grid(arguments.rows), BLOCK, &arguments)?;
            let rows =
                (self.longer.len() as u64).saturating_sub(1).min(LONGER * self.multiprocessors);
            self.many.launch(stream, (rows, SHARING), BLOCK, &arguments)
        }
    }

    /// Queues moving the places that were met to C.
    ///
    /// # Safety
    /// As [`Places::sum`].
    unsafe fn keep(&self, stream: &Stream, arguments: &Arguments) -> Result<()> {
        // SAFETY: `Arguments` is the kernel's parameter; the rest is the caller's promise.
        unsafe { self.keep.launch(stream, self.grid(arguments.rows), BLOCK, arguments) }
    }

    fn grid(&self, rows: u64) -> (u64, u64) {
        (rows.div_ceil(u64::from(BLOCK / 32)).min(CTAS * self.multiprocessors), 1)
    }
}

/// The operands, and the places of a pattern.
fn of<I, O>(o: &Operands, offsets: &DeviceBuffer<O>, places: &DeviceBuffer<I>) -> Arguments {
    Arguments {
        a_offsets: o.a.offsets,
        a_indices: o.a.indices,
        a_values: o.a.values,
        b_offsets: o.b.offsets,
        b_indices: o.b.indices,
        b_values: o.b.values,
        places_offsets: offsets.address(),
        places: places.address(),
        rows: o.a.rows as u64,
        alpha: o.alpha,
        ..Arguments::default()
    }
}

/// Any product of two sparse matrices whose rows and columns are counted in 32 bits.
///
/// # Errors
/// [`Error::Unsupported`] for others.
pub fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason, nearest| Err(unsupported(problem, "masked on CUDA", reason, nearest));
    if problem.operation != Operation::Spgemm {
        return refuse("it multiplies two sparse matrices", "Problem::spgemm");
    }
    problem.without_output("masked on CUDA")?;
    if problem.output_rows().max(problem.columns) >= u32::MAX as usize {
        return refuse("it counts rows and columns in 32 bits", "masked on the device cpu");
    }
    Ok(())
}

/// A plan for C⟨M⟩ = α·op(A)·B, for one pattern of A, of B and of the mask and any values: of the
/// product's entries those at the places where the mask has one. A place that no product meets has no
/// entry in C. Rows come out sorted.
///
/// Every sum is in A's order, the same in every run, unless columns of a row of B do not increase.
pub struct MaskedPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    device: Device,
    problem: Problem,
    kernels: Places,
    scan: Scan,
    transposed: Option<Transposed<T, I, O>>,
    /// The mask, rows increasing.
    offsets: DeviceBuffer<O>,
    places: DeviceBuffer<I>,
    /// Whether rows of B increase.
    ordered: bool,
    /// Entries of the last C.
    nnz: Option<usize>,
}

/// C⟨M⟩ = α·op(A)·B in one call, without keeping a plan.
///
/// # Errors
/// As [`MaskedPlan::new`] and [`MaskedPlan::execute`].
pub fn multiply<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    alpha: T::Accum,
    b: &DeviceCsr<T, I, O>,
    mask: &DeviceCsr<T, I, O>,
    problem: &Problem,
    stream: &Stream,
) -> Result<DeviceCsr<T, I, O>> {
    MaskedPlan::new(a, b, mask, problem)?.execute(a, alpha, b, stream)
}

impl<T: Scalar, I: Index, O: Index> MaskedPlan<T, I, O> {
    /// Takes the places where `mask`, of C's shape, has an entry of any value; the mask may have its
    /// rows in any order, and is free afterwards. Work that was queued on the matrices on other
    /// streams is waited for.
    ///
    /// # Errors
    /// [`Error::Shape`] when A and B do not fit together or the mask is not of C's shape,
    /// [`Error::Pattern`] when `problem` was made for others, [`Error::Unsupported`] by [`supports`]
    /// and for a promised order of summation where B's rows do not increase, [`Error::Argument`] when
    /// the operands are on two devices, [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time
    /// compiler is missing, [`Error::Device`].
    pub fn new(
        a: &DeviceCsr<T, I, O>,
        b: &DeviceCsr<T, I, O>,
        mask: &DeviceCsr<T, I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let device = a.device().clone();
        check(&device, problem, a, b)?;
        supports(problem)?;
        check_mask(&device, problem, mask)?;
        let ordered = increases(b)?;
        if problem.deterministic && !ordered {
            return Err(unordered(problem, "masked on CUDA"));
        }
        let sorted = canonical(mask, problem.semiring)?;
        let mask = sorted.as_ref().unwrap_or(mask);
        let what = "the places of a mask on the device";
        let mut offsets = DeviceBuffer::queued(&device, mask.nrows() + 1, what)?;
        let mut places = DeviceBuffer::queued(&device, mask.nnz(), what)?;
        offsets.copy_from(mask.offsets(), device.stream())?;
        places.copy_from(mask.indices(), device.stream())?;
        a.offsets().join()?;
        a.indices().join()?;
        let transposed = problem.transpose_a.then(|| Transposed::new(&device, a)).transpose()?;
        let mut kernels = Places::new(&device, problem)?;
        kernels.prepare(&device, mask.nnz())?;
        Ok(MaskedPlan {
            kernels,
            scan: Scan::new(&device, O::TYPE)?,
            problem: problem.clone(),
            device,
            transposed,
            offsets,
            places,
            ordered,
            nnz: None,
        })
    }

    /// Bytes that the plan holds on the device beside the caller's arrays. An execution takes a value
    /// and a byte for every place of the mask beside C until C is there.
    pub fn workspace_bytes(&self) -> usize {
        let transposed = self.transposed.as_ref().map_or(0, Transposed::bytes);
        self.offsets.bytes() + self.places.bytes() + self.kernels.bytes() + transposed
    }

    /// Computes C as a new matrix, after the work queued on `stream`, which then waits for it. `a` and
    /// `b` have the patterns that the plan was made for, and any values.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` or `b` has another shape or number of entries,
    /// [`Error::OutOfMemory`] with the device left usable, [`Error::Device`].
    pub fn execute(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<DeviceCsr<T, I, O>> {
        let o = self.begin(a, alpha, b, stream)?;
        let (device, rows) = (&self.device, self.problem.output_rows());
        let count = self.places.len();
        let sums = DeviceBuffer::<T>::queued(device, count, "values at the places of a mask")?;
        let met = DeviceBuffer::<u8>::queued(device, count.max(1), "met places of a mask")?;
        let mut offsets =
            DeviceBuffer::<O>::queued(device, rows + 1, "row offsets of C on the device")?;
        offsets.fill(0, device.stream())?;
        let arguments = Arguments {
            values: sums.address(),
            met: met.address(),
            c_offsets: offsets.address(),
            ordered: u32::from(self.ordered),
            ..of(&o, &self.offsets, &self.places)
        };
        // SAFETY: the arguments describe arrays that are alive, and wait for the stream when freed.
        unsafe { self.kernels.sum(device.stream(), &arguments)? };
        let nnz = self.scan.sum(device, &offsets)?;
        let indices = DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
        let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
        let (c_indices, c_values) = (indices.address(), values.address());
        let arguments = Arguments { c_indices, c_values, ..arguments };
        // SAFETY: as above; C has as many entries as places were met.
        let c = unsafe {
            self.kernels.keep(device.stream(), &arguments)?;
            DeviceCsr::from_parts(rows, self.problem.columns, offsets, indices, values)?
        };
        self.nnz = Some(nnz);
        end(device, stream)?;
        Ok(c)
    }

    /// Computes the values into `c`, a matrix that an earlier [`MaskedPlan::execute`] returned: nothing
    /// symbolic is done and no memory is taken. Otherwise as there.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a`, `b` or `c` has another shape or number of entries or nothing was
    /// computed before, [`Error::Device`].
    pub fn execute_into(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        c: &mut DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<()> {
        check_result(&self.problem, c, self.nnz)?;
        let o = self.begin(a, alpha, b, stream)?;
        c.offsets().join()?;
        c.indices().join()?;
        c.values().join()?;
        // SAFETY: the operands and C are alive and wait for the stream when freed; C's own places are
        // those of the mask that products meet.
        unsafe { self.kernels.fill(self.device.stream(), &o, c, self.ordered)? };
        end(&self.device, stream)
    }

    /// The checked operands, on the device's stream after the work queued on `stream`.
    fn begin(
        &self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<Operands> {
        begin(&self.device, &self.problem, self.transposed.as_ref(), (a, alpha, b), stream)
    }
}

/// `mask` has the shape of C and is on `device`.
fn check_mask<T: Scalar, I: Index, O: Index>(
    device: &Device,
    problem: &Problem,
    mask: &DeviceCsr<T, I, O>,
) -> Result<()> {
    let (rows, cols) = (problem.output_rows(), problem.columns);
    if (mask.nrows(), mask.ncols()) != (rows, cols) {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("a mask of {rows} x {cols}"),
            found: format!("{} x {}", mask.nrows(), mask.ncols()),
        });
    }
    if mask.device() != device {
        return Err(Error::Argument {
            name: "mask",
            found: "one on another device".into(),
            expected: format!("all operands on {}", device.profile().name),
        });
    }
    Ok(())
}

/// A refusal to promise an order of summation for rows of B that do not increase.
pub(super) fn unordered(problem: &Problem, backend: &str) -> Error {
    let reason = "columns of B repeat or are unsorted, and such sums are added atomically";
    unsupported(problem, backend, reason, "Csr::canonicalize of B first")
}
