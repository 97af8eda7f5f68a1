//! Checks that the operands of an execution fit the plan.

use std::ops::Range;

use gustav_core::{Batch, Error, Layout, Operation, Problem, Result, Scalar, Strides};
use gustav_plan::Algorithm;

use super::{operands, unsupported};
use crate::device::{Device, DeviceBuffer};
use crate::matrix::{DeviceDense, HeldPattern};

/// Checks that B and C have the shapes and layouts of `problem` and enough values, that all
/// operands are on one device, and that C overlaps none. The batch, and the leading dimensions of B
/// and C.
pub(crate) fn dense<T: Scalar>(
    problem: &Problem,
    device: &Device,
    a: &HeldPattern,
    values: &DeviceBuffer<T>,
    b: &DeviceDense<T>,
    c: &DeviceDense<T>,
) -> Result<(operands::Batch, usize, usize)> {
    let (of_b, of_c) = (strides(&problem.batch_b("B"), b)?, strides(&problem.batch_c("C"), c)?);
    memory(device, a, values, ("B", b.data()), ("C", c.data()))?;
    let each = if values.len() == problem.nnz { 0 } else { problem.nnz };
    let batch =
        operands::Batch { count: problem.batch, values: each, b: of_b.matrix, c: of_c.matrix };
    Ok((batch, of_b.line, of_c.line))
}

/// Where the matrices of the batch are in `m`. Errors if `m` does not hold the batch.
pub(crate) fn strides<T: Scalar>(batch: &Batch, m: &DeviceDense<T>) -> Result<Strides> {
    let strides = batch.strides((m.nrows(), m.ncols()), m.layout(), m.leading_dimension())?;
    m.check_length()?;
    Ok(strides)
}

/// Checks that `algorithm` supports the batch: several products need row-major matrices and an
/// algorithm that computes them in one launch.
pub(crate) fn batch(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    let backend = format!("{algorithm} on CUDA");
    if matches!(problem.operation, Operation::Attention | Operation::Softmax) {
        return Ok(());
    }
    problem.check_batch(&backend)?;
    let refuse = |reason: &str, nearest: &str| Err(unsupported(problem, &backend, reason, nearest));
    match (problem.operation, algorithm) {
        _ if problem.batch == 1 => Ok(()),
        (Operation::Spmm, Algorithm::Segmented) | (Operation::Sddmm, Algorithm::NonzeroSplit) => {
            match (problem.layout_b, problem.layout_c) {
                (Layout::RowMajor, Layout::RowMajor) => Ok(()),
                _ => refuse("its batches are of row-major matrices", "row-major operands"),
            }
        }
        _ => refuse("it computes one product at a time", "segmented (SpMM), nonzero-split (SDDMM)"),
    }
}

/// Checks that `algorithm` supports the epilogue.
pub(crate) fn epilogue(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    use Algorithm::{BStationary, ColumnPanel, EvenShares, RowBlock, Segmented, Tensor};
    let backend = format!("{algorithm} on CUDA");
    let ours =
        matches!(algorithm, Segmented | RowBlock | EvenShares | ColumnPanel | BStationary | Tensor);
    if ours && problem.operation == Operation::Spmm {
        if algorithm == Segmented && problem.extremum.is_some() {
            return problem.check_extremum(&backend);
        }
        problem.without_extremum(&backend)?;
        return problem.check_epilogue(&backend);
    }
    problem.without_epilogue(&backend)
}

/// Checks that there is a bias if and only if `problem` has one: a value for every column, on the
/// device, not overlapping C.
pub(crate) fn bias<A: Scalar, T: Scalar>(
    problem: &Problem,
    device: &Device,
    bias: Option<&DeviceBuffer<A>>,
    c: &DeviceBuffer<T>,
) -> Result<()> {
    let expected = match problem.epilogue.bias {
        true => format!("{} values, one for every column of C", problem.columns),
        false => "none: the problem's epilogue has no bias".into(),
    };
    let wrong =
        |found: String| Err(Error::Argument { name: "bias", found, expected: expected.clone() });
    match bias {
        None if problem.epilogue.bias => wrong("none".into()),
        None => Ok(()),
        Some(bias) if !problem.epilogue.bias || bias.len() != problem.columns => {
            wrong(format!("{} values", bias.len()))
        }
        Some(bias) if bias.device() != device => wrong("values on another device".into()),
        Some(bias) => {
            let (values, out) =
                (range(bias.address(), bias.bytes()), range(c.address(), c.bytes()));
            match values.start < out.end && out.start < values.end {
                true => wrong("memory that overlaps C".into()),
                false => Ok(()),
            }
        }
    }
}

/// Checks the type of C's values: only `binned` stores them in the type of sums.
pub(crate) fn output(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    let backend = format!("{algorithm} on CUDA");
    match algorithm {
        Algorithm::Binned => problem.check_output(&backend),
        _ => problem.without_output(&backend),
    }
}

/// Checks that all operands are on one device, and that C overlaps none.
pub(crate) fn memory<T: Scalar>(
    device: &Device,
    a: &HeldPattern,
    values: &DeviceBuffer<T>,
    b: (&'static str, &DeviceBuffer<T>),
    c: (&'static str, &DeviceBuffer<T>),
) -> Result<()> {
    apart(device, a, c, &[b, ("the values of A", values)])
}

/// Checks that `inputs` and the result are on one device, and that the result overlaps neither them
/// nor the pattern.
pub(crate) fn apart<T: Scalar>(
    device: &Device,
    a: &HeldPattern,
    (name_out, out): (&'static str, &DeviceBuffer<T>),
    inputs: &[(&'static str, &DeviceBuffer<T>)],
) -> Result<()> {
    for (name, buffer) in inputs.iter().chain([&(name_out, out)]) {
        on(device, name, buffer)?;
    }
    apart_from(a, (name_out, out), inputs)
}

/// Checks that the result overlaps neither `inputs` nor the pattern.
pub(crate) fn apart_from<T: Scalar, R>(
    a: &HeldPattern,
    (name_out, out): (&'static str, &DeviceBuffer<R>),
    inputs: &[(&'static str, &DeviceBuffer<T>)],
) -> Result<()> {
    let offsets = (a.nrows + 1) * a.offset_type.bytes();
    let arrays = [
        ("the row offsets of the pattern", range(a.offsets.address(), offsets)),
        (
            "the column indices of the pattern",
            range(a.indices.address(), a.nnz * a.index_type.bytes()),
        ),
    ];
    for (name, input) in inputs {
        separate((name_out, out), (name, input))?;
    }
    arrays.into_iter().try_for_each(|input| no_overlap((name_out, out), input))
}

/// Checks that the result does not overlap `input`.
pub(crate) fn separate<T, R>(
    out: (&'static str, &DeviceBuffer<R>),
    (name, input): (&str, &DeviceBuffer<T>),
) -> Result<()> {
    no_overlap(out, (name, range(input.address(), input.bytes())))
}

fn no_overlap<R>(
    (name_out, out): (&'static str, &DeviceBuffer<R>),
    (name, input): (&str, Range<u64>),
) -> Result<()> {
    let out = range(out.address(), out.bytes());
    if input.start < out.end && out.start < input.end {
        return Err(Error::Argument {
            name: name_out,
            found: format!("memory that overlaps {name}"),
            expected: "memory of its own".into(),
        });
    }
    Ok(())
}

/// Checks that `array` is on `device`.
pub(crate) fn on<T>(device: &Device, name: &'static str, array: &DeviceBuffer<T>) -> Result<()> {
    if array.device() == device {
        return Ok(());
    }
    Err(Error::Argument {
        name,
        found: "one on another device".into(),
        expected: format!("all operands on {}", device.profile().name),
    })
}

fn range(address: u64, bytes: usize) -> std::ops::Range<u64> {
    address..address + bytes as u64
}
