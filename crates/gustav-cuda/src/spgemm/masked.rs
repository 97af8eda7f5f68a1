//! `masked`: the entries of C = α·op(A)·B at the places of a given pattern, summed in A's order. See
//! `kernels/spgemm/masked.cu`.

use gustav_core::{
    DType, Error, Index, IndexType, Operation, Problem, Result, Scalar, SemiringKind,
};

use super::canonical::{canonical, increases};
use super::operands::{Operands, Sparse};
use super::plan::{check, end, left};
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::scan::Scan;
use crate::spmm::{bits, unsupported};
use crate::stream::Stream;
use crate::transposed::Transposed;
use crate::{Device, DeviceBuffer, DeviceCsr, source};

// Threads of CTAs that have several rows and of those that have one, as in the kernels.
const BLOCK: u32 = 128;
const WIDE: u32 = 256;
// Places of a row that a warp takes.
const FEW: usize = 256;
// CTAs for every multiprocessor, before they take more rows each.
const CTAS: u64 = 32;

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
    ordered: u32,
}

/// The kernels.
pub(super) struct Places {
    few: Kernel,
    many: Kernel,
    keep: Kernel,
    most: u64,
}

impl Places {
    /// Compiled for the types of `problem`.
    pub(super) fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let module = device.module(&request(Types {
            dtype: problem.dtype,
            out: problem.dtype,
            index: problem.index_type,
            offset: problem.offset_type,
            semiring: problem.semiring,
        }))?;
        Ok(Places {
            few: module.kernel(c"few")?,
            many: module.kernel(c"many")?,
            keep: module.kernel(c"keep")?,
            most: device.profile().multiprocessors as u64 * CTAS,
        })
    }

    /// Queues the values at all places of `c`, whose rows increase as those of B do: every sum in
    /// A's order.
    ///
    /// # Safety
    /// The operands and `c` are valid until the stream has done the work, and of one product.
    pub(super) unsafe fn fill<T: Scalar, I: Index, O: Index>(
        &self,
        stream: &Stream,
        o: &Operands,
        c: &DeviceCsr<T, I, O>,
    ) -> Result<()> {
        let arguments = Arguments { values: c.values().address(), ordered: 1, ..of(o, c) };
        // SAFETY: the caller's promise; the values are as many as the places.
        unsafe { self.sum(stream, &arguments, c.nnz()) }
    }

    /// Queues the sums at `count` places.
    ///
    /// # Safety
    /// What the arguments name is valid until the stream has done the work.
    unsafe fn sum(&self, stream: &Stream, arguments: &Arguments, count: usize) -> Result<()> {
        // SAFETY: `Arguments` is the kernels' parameter.
        unsafe {
            self.few.launch(stream, self.grid(arguments.rows), BLOCK, arguments)?;
            if count > FEW {
                let grid = (arguments.rows.min(self.most), 1);
                self.many.launch(stream, grid, WIDE, arguments)?;
            }
        }
        Ok(())
    }

    fn grid(&self, rows: u64) -> (u64, u64) {
        (rows.div_ceil(u64::from(BLOCK / 32)).min(self.most), 1)
    }
}

/// The operands, and the places of `m`.
fn of<T: Scalar, I: Index, O: Index>(o: &Operands, m: &DeviceCsr<T, I, O>) -> Arguments {
    Arguments {
        a_offsets: o.a.offsets,
        a_indices: o.a.indices,
        a_values: o.a.values,
        b_offsets: o.b.offsets,
        b_indices: o.b.indices,
        b_values: o.b.values,
        places_offsets: m.offsets().address(),
        places: m.indices().address(),
        rows: o.a.rows as u64,
        alpha: o.alpha,
        ..Arguments::default()
    }
}

/// Any product of two sparse matrices whose columns are counted in 32 bits.
///
/// # Errors
/// [`Error::Unsupported`] for others.
pub fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason, nearest| Err(unsupported(problem, "masked on CUDA", reason, nearest));
    if problem.operation != Operation::Spgemm {
        return refuse("it multiplies two sparse matrices", "Problem::spgemm");
    }
    if problem.columns >= u32::MAX as usize {
        return refuse("it counts columns in 32 bits", "masked on the device cpu");
    }
    Ok(())
}

/// C⟨M⟩ = α·op(A)·B: of the product's entries those at the places where `mask` has an entry, of any
/// value, after the work queued on `stream`, which then waits for it. A place that no product meets
/// has no entry in C. Rows come out sorted. Takes, beside C, a value and a byte for every place of the
/// mask until C is there; a mask whose rows do not increase is sorted first.
///
/// Every sum is in A's order, the same in every run, unless columns of a row of B do not increase.
///
/// # Errors
/// [`Error::Shape`] when A and B do not fit together or the mask is not of C's shape,
/// [`Error::Pattern`] when `problem` was made for others, [`Error::Unsupported`] by [`supports`] and
/// for a promised order of summation where B's rows do not increase, [`Error::Argument`] when the
/// operands are on two devices, [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time
/// compiler is missing, [`Error::Device`].
pub fn multiply<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    alpha: T::Accum,
    b: &DeviceCsr<T, I, O>,
    mask: &DeviceCsr<T, I, O>,
    problem: &Problem,
    stream: &Stream,
) -> Result<DeviceCsr<T, I, O>> {
    let device = a.device().clone();
    check(&device, problem, a, b)?;
    supports(problem)?;
    let shape = (problem.output_rows(), problem.columns);
    if (mask.nrows(), mask.ncols()) != shape {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("a mask of {} x {}", shape.0, shape.1),
            found: format!("{} x {}", mask.nrows(), mask.ncols()),
        });
    }
    if *mask.device() != device {
        return Err(Error::Argument {
            name: "mask",
            found: "one on another device".into(),
            expected: format!("all operands on {}", device.profile().name),
        });
    }
    if stream.handle() != device.stream().handle() {
        device.stream().wait(&stream.record()?)?;
    }
    for m in [a, b, mask] {
        m.offsets().join()?;
        m.indices().join()?;
        m.values().join()?;
    }
    let ordered = increases(b)?;
    if problem.deterministic && !ordered {
        return Err(unordered(problem, "masked on CUDA"));
    }
    let sorted = canonical(mask, problem.semiring)?;
    let mask = sorted.as_ref().unwrap_or(mask);
    let transposed = problem.transpose_a.then(|| Transposed::new(&device, a)).transpose()?;
    if let Some(transposed) = &transposed {
        transposed.refresh(device.stream(), a)?;
    }
    let a = left(a, transposed.as_ref());
    let operands = Operands::new(problem, a, Sparse::of(b), bits(alpha));
    let c = keep(&device, problem, &operands, mask, ordered)?;
    end(&device, stream)?;
    Ok(c)
}

/// A refusal to promise an order of summation for rows of B that do not increase.
pub(super) fn unordered(problem: &Problem, backend: &str) -> Error {
    let reason = "columns of B repeat or are unsorted, and such sums are added atomically";
    unsupported(problem, backend, reason, "Csr::canonicalize of B first")
}

/// The sums at the places of `mask`, and of them those that a product met.
fn keep<T: Scalar, I: Index, O: Index>(
    device: &Device,
    problem: &Problem,
    o: &Operands,
    mask: &DeviceCsr<T, I, O>,
    ordered: bool,
) -> Result<DeviceCsr<T, I, O>> {
    let (stream, places) = (device.stream(), Places::new(device, problem)?);
    let (rows, count) = (mask.nrows(), mask.nnz());
    let sums = DeviceBuffer::<T>::queued(device, count, "values at the places of a mask")?;
    let met = DeviceBuffer::<u8>::queued(device, count.max(1), "places of a mask that are met")?;
    let offsets = DeviceBuffer::<O>::queued(device, rows + 1, "row offsets of C on the device")?;
    let arguments = Arguments {
        values: sums.address(),
        met: met.address(),
        c_offsets: offsets.address(),
        ordered: u32::from(ordered),
        ..of(o, mask)
    };
    // SAFETY: the arguments describe arrays that are alive, and wait for the stream when freed.
    unsafe { places.sum(stream, &arguments, count)? };
    let nnz = Scan::new(device, O::TYPE)?.sum(device, &offsets)?;
    let indices = DeviceBuffer::<I>::queued(device, nnz, "column indices of C on the device")?;
    let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
    let (c_indices, c_values) = (indices.address(), values.address());
    let arguments = Arguments { c_indices, c_values, ..arguments };
    // SAFETY: as above; C has as many entries as places were met.
    unsafe {
        places.keep.launch(stream, places.grid(arguments.rows), BLOCK, &arguments)?;
        DeviceCsr::from_parts(rows, mask.ncols(), offsets, indices, values)
    }
}
