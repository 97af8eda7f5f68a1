//! Gradients of an SpMM with max or min: of B by `segmented`, with the winners as a filter; of the
//! values of A by `kernels/spmm/winner_gradients.cu`.

use gustav_core::{
    Batch, DType, Index, IndexType, Layout, Problem, Reduce, Result, Scalar, Semiring, validate,
};
use gustav_plan::{Algorithm, Chooser};

use super::plan::{Options, SpmmPlan};
use crate::device::graph::{self, SharedCore};
use crate::device::order::{Access, PlanOrder, Uses};
use crate::device::{Device, DeviceBuffer};
use crate::jit::Request;
use crate::jit::source::bits;
use crate::launch::Kernel;
use crate::matrix::{DeviceDense, DevicePattern, DeviceValues, HeldPattern};
use crate::product::winners::DeviceWinners;
use crate::product::{Call, SddmmCall, checks, unsupported};

const BLOCK: u32 = 128;
/// Nonzeros of a group: neighbouring ones share loads of a row of winners.
const NONZEROS: u32 = 8;

/// The source with its parameters.
pub(crate) fn request(
    dtype: DType,
    winner: IndexType,
    (index, offset): (IndexType, IndexType),
    lanes: u32,
    transposed: bool,
) -> Request {
    request!("spmm/winner_gradients.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("WINNER", winner)
        .with("BLOCK", BLOCK)
        .with("LANES", lanes)
        .with("NONZEROS", NONZEROS)
        .with("TRANSPOSED", transposed)
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        g: *const Value,
        b: *const Value,
        winners: *const Winner,
        values: *mut Value,
        rows: u64,
        nonzeros: u64,
        columns: u64,
        /// Distances between neighbouring rows, and between columns.
        g_row: u64,
        g_column: u64,
        b_row: u64,
        b_column: u64,
        alpha: u64,
        beta: u64,
    }
}

/// Plans for both gradients of an SpMM with max or min, for one pattern of A.
pub struct WinnerGradients<T: Scalar> {
    device: Device,
    problem: Problem,
    of_b: SpmmPlan<T>,
    work: SharedCore<Work>,
}

struct Work {
    pattern: HeldPattern,
    /// The kernels for either type of winners, compiled on first use.
    kernels: [Option<Kernel<Arguments>>; 2],
}

impl<T: Scalar> WinnerGradients<T> {
    /// Plans the gradients of the product that `problem` describes, with a `pattern` of A.
    ///
    /// # Errors
    /// [`gustav_core::Error::Unsupported`] unless `problem` is an SpMM with max or min, and those of
    /// [`SpmmPlan::new`].
    pub fn new<I: Index, O: Index>(
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let (device, problem) = (pattern.device().clone(), problem.typed::<T, I, O>());
        let backend = "gradients of max and min on CUDA";
        problem.check_extremum(backend)?;
        problem.check_batch(backend)?;
        if problem.extremum.is_none() {
            let nearest = "an SpMM and an SDDMM, which are the gradients of sums";
            return Err(unsupported(&problem, backend, "nothing wins in a sum", nearest));
        }
        let of_b = Problem {
            transpose_a: !problem.transpose_a,
            layout_b: problem.layout_c,
            layout_c: problem.layout_b,
            tf32: false,
            ..problem.clone().reduce(Reduce::Sum)
        };
        let options =
            Options { chooser: Chooser::Named(Algorithm::Segmented), ..Options::default() };
        let of_b = SpmmPlan::new(pattern, &of_b, &options)?;
        pattern.join(&device)?;
        let order = PlanOrder::new(&device, problem.calls)?;
        let work = Work { pattern: pattern.held(), kernels: [None, None] };
        Ok(WinnerGradients { device, problem, of_b, work: graph::core(order, work) })
    }

    /// Bytes that the plans hold on the device beside the caller's arrays and the pattern.
    pub fn workspace_bytes(&self) -> usize {
        self.of_b.workspace_bytes()
    }

    /// Queues the gradient of B: `to[k, j]` = α·Σ `values[p]`·G[i, j] + β·`to[k, j]` over the
    /// nonzeros p of op(A) in column k that are the winner of (i, j), where i is the row of p.
    /// `winners` as [`SpmmPlan::execute_with_winners`] wrote them; a number that is not the
    /// position of a nonzero in row i is ignored.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`].
    pub fn of_b<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        g: &DeviceDense<T>,
        winners: impl Into<DeviceWinners<'v>>,
        to: &mut DeviceDense<T>,
        call: Call<'_, T>,
    ) -> Result<()> {
        let winners = winners.into();
        self.problem.check_reduction(false, false, Some(winners.description()))?;
        self.of_b.execute_filtered(values.into(), g, to, winners, call)
    }

    /// Queues the gradient of the values of A: `to[p]` = α·Σ G[i, j]·B[k, j] + β·`to[p]` over the
    /// columns j whose winner in row i is p, where p is in row i and column k of op(A). The first
    /// execution with winners of a type compiles the kernel for it.
    ///
    /// # Errors
    /// [`gustav_core::Error::Shape`] when G or B does not fit, [`gustav_core::Error::Length`] for another number of
    /// values or winners, [`gustav_core::Error::Argument`] when `to` overlaps an operand or an operand is on another
    /// device, [`gustav_core::Error::Unsupported`] for factors, [`gustav_core::Error::Device`].
    pub fn of_values<'v>(
        &mut self,
        g: &DeviceDense<T>,
        b: &DeviceDense<T>,
        winners: impl Into<DeviceWinners<'v>>,
        to: &mut DeviceBuffer<T>,
        call: impl Into<SddmmCall<'v, T>>,
    ) -> Result<()> {
        let (p, device, winners, call) = (&self.problem, &self.device, winners.into(), call.into());
        if call.factors.is_some() {
            let nearest = "the call without them, and the gradient multiplied by them";
            let reason = "its values have no factors";
            return Err(unsupported(p, "gradients of max and min on CUDA", reason, nearest));
        }
        let stream = call.common.stream(device);
        p.check_reduction(false, false, Some(winners.description()))?;
        let (g_row, g_column) = strides(&p.batch_c("G"), g)?;
        let (b_row, b_column) = strides(&p.batch_b("B"), b)?;
        validate::length("values", p.nnz, to.len())?;
        let mut core = graph::lock(&self.work);
        let name = "values";
        let inputs = [("G", g.data()), ("B", b.data())];
        checks::apart(device, &core.method.pattern, (name, to), &inputs)?;
        winners.check(device, (name, to))?;
        if p.nnz == 0 {
            return Ok(());
        }
        core.order.next(stream)?;
        let Work { pattern, kernels } = &mut core.method;
        let lanes = (p.columns.next_power_of_two() as u32).clamp(1, 32);
        let winner = winners.description().0;
        let kernel = match &mut kernels[usize::from(winner == IndexType::U64)] {
            Some(kernel) => kernel,
            none => {
                let types = (p.index_type, p.offset_type);
                let request = request(p.dtype, winner, types, lanes, p.transpose_a);
                none.insert(device.module(&request)?.kernel(c"winner_gradients")?)
            }
        };
        let mut uses = Uses::on(stream).ordered(call.common.ordered);
        uses.access(&pattern.offsets, Access::Read)?;
        uses.access(&pattern.indices, Access::Read)?;
        uses.read(g.data())?;
        uses.read(b.data())?;
        let winners = winners.read(&mut uses)?;
        uses.write(to)?;
        let arguments = Arguments {
            offsets: pattern.offsets.address(),
            indices: pattern.indices.address(),
            g: g.data().address(),
            b: b.data().address(),
            winners,
            values: to.address(),
            rows: p.rows as u64,
            nonzeros: p.nnz as u64,
            columns: p.columns as u64,
            g_row,
            g_column,
            b_row,
            b_column,
            alpha: bits(call.common.alpha(Semiring::PlusTimes)),
            beta: bits(call.common.beta(Semiring::PlusTimes)),
        };
        let of_cta = u64::from(NONZEROS * (BLOCK / lanes));
        // SAFETY: shapes, leading dimensions and lengths were checked against the buffers, which
        // wait for the stream when they are freed; the pattern is the plan's own; winners are only
        // compared, never used as indices.
        unsafe {
            kernel.launch(stream, (arguments.nonzeros.div_ceil(of_cta), 1), BLOCK, &arguments)
        }
    }
}

/// Distances between neighbouring rows, and between columns, of `m`, which has to be `expected`.
fn strides<T: Scalar>(expected: &Batch, m: &DeviceDense<T>) -> Result<(u64, u64)> {
    let ld = checks::strides(expected, m)?.line as u64;
    Ok(match expected.layout {
        Layout::RowMajor => (ld, 1),
        Layout::ColumnMajor => (1, ld),
    })
}
