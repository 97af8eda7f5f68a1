//! `masked`: the entries of C = α·op(A)·B at the places of a given pattern, summed in A's order. See
//! `kernels/spgemm/masked.cu`.

mod kernels;

use gustav_core::{Error, Index, Operation, Problem, Result, Scalar};

pub(super) use self::kernels::Places;
#[cfg(test)]
pub(crate) use self::kernels::{Types, request};

use self::kernels::of;
use super::canonical::{canonical, increases};
use super::operands::Operands;
use super::plan::{begin, check, check_like_c, check_result, end};
use crate::scan::Scan;
use crate::spmm::unsupported;
use crate::stream::Stream;
use crate::transposed::Transposed;
use crate::{Device, DeviceBuffer, DeviceCsr};

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
/// Where [`Problem::deterministic`] asks for it, every sum is in A's order, the same in every run.
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
        check_like_c(&device, problem, "a mask", mask)?;
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
        kernels.prepare(&device, mask.nrows(), mask.nnz())?;
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
        let mut arguments = of(&o, &self.offsets, &self.places);
        arguments.ordered = u32::from(self.ordered);
        (arguments.values, arguments.met) = (sums.address(), met.address());
        arguments.c_offsets = offsets.address();
        // SAFETY: the arguments describe arrays that are alive, and wait for the stream when freed.
        unsafe { self.kernels.sum(device.stream(), &arguments)? };
        let nnz = self.scan.sum(device, &offsets)?;
        let what = "column indices of C on the device";
        let mut indices = DeviceBuffer::<I>::queued(device, nnz, what)?;
        let values = if nnz == count {
            indices.copy_from(&self.places, device.stream())?;
            sums
        } else {
            let values = DeviceBuffer::<T>::queued(device, nnz, "values of C on the device")?;
            (arguments.c_indices, arguments.c_values) = (indices.address(), values.address());
            // SAFETY: as above; C has as many entries as places were met.
            unsafe { self.kernels.keep(device.stream(), &arguments)? };
            values
        };
        // SAFETY: the offsets rise to the number of entries, which are at places of the mask.
        let c =
            unsafe { DeviceCsr::from_parts(rows, self.problem.columns, offsets, indices, values)? };
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

/// A refusal to promise an order of summation for rows of B that do not increase.
pub(super) fn unordered(problem: &Problem, backend: &str) -> Error {
    let reason = "columns of B repeat or are unsorted, and such sums are added atomically";
    unsupported(problem, backend, reason, "Csr::canonicalize of B first")
}
