//! Whether the operands of an execution fit the plan.

use gustav_core::{Error, Index, Layout, Operation, Problem, Result, Scalar};
use gustav_plan::Algorithm;

use crate::{Device, DeviceBuffer, DeviceCsr, DeviceDense};

/// `a` has the shape and number of entries of `problem`.
pub(crate) fn pattern<T: Scalar, I: Index, O: Index>(
    problem: &Problem,
    a: &DeviceCsr<T, I, O>,
) -> Result<()> {
    types::<T, I, O>(problem)?;
    problem.check_a(a.nrows(), a.ncols(), a.nnz())
}

/// `problem` was made for matrices of these types, which kernels take on its word.
pub(crate) fn types<T: Scalar, I: Index, O: Index>(problem: &Problem) -> Result<()> {
    let expected = (problem.dtype, problem.index_type, problem.offset_type);
    let found = (T::DTYPE, I::TYPE, O::TYPE);
    if expected == found {
        return Ok(());
    }
    let name = |(values, indices, offsets)| {
        format!("a matrix of {values} values, {indices} column indices and {offsets} row offsets")
    };
    Err(Error::Pattern { expected: name(expected), found: name(found) })
}

/// B and C have the shapes and layouts of `problem`, all is on one device, and C overlaps nothing.
pub(super) fn dense<T: Scalar, I: Index, O: Index>(
    problem: &Problem,
    device: &Device,
    a: &DeviceCsr<T, I, O>,
    b: &DeviceDense<T>,
    c: &DeviceDense<T>,
) -> Result<()> {
    let shape = |name: &str, m: &DeviceDense<T>, rows: usize, layout: Layout| {
        if (m.nrows(), m.ncols(), m.layout()) == (rows, problem.columns, layout) {
            return Ok(());
        }
        Err(Error::Shape {
            op: "spmm",
            expected: format!("{name} of {rows} x {}, {layout}", problem.columns),
            found: format!("{} x {}, {}", m.nrows(), m.ncols(), m.layout()),
        })
    };
    shape("B", b, problem.inner(), problem.layout_b)?;
    shape("C", c, problem.output_rows(), problem.layout_c)?;
    memory(device, a, ("B", b.data()), ("C", c.data()))
}

/// What our SpMM kernels alone do with finished sums.
pub(crate) fn epilogue(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    use Algorithm::{BStationary, ColumnPanel, EvenShares, RowBlock, Segmented, Tensor};
    let backend = format!("{algorithm} on CUDA");
    let ours =
        matches!(algorithm, Segmented | RowBlock | EvenShares | ColumnPanel | BStationary | Tensor);
    if ours && problem.operation == Operation::Spmm {
        return problem.check_epilogue(&backend);
    }
    problem.without_epilogue(&backend)
}

/// There is a bias where `problem` has one: a value for every column, on the device, apart from C.
pub(super) fn bias<A: Scalar, T: Scalar>(
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

/// What `binned` alone does: values of C in the type of sums.
pub(crate) fn output(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    let backend = format!("{algorithm} on CUDA");
    match algorithm {
        Algorithm::Binned => problem.check_output(&backend),
        _ => problem.without_output(&backend),
    }
}

/// All operands are on one device, and the product overlaps no other.
pub(crate) fn memory<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: &DeviceCsr<T, I, O>,
    (name_b, b): (&'static str, &DeviceBuffer<T>),
    (name_c, c): (&'static str, &DeviceBuffer<T>),
) -> Result<()> {
    let devices = [a.offsets().device(), a.indices().device(), a.values().device()];
    if devices.iter().chain(&[b.device(), c.device()]).any(|d| *d != device) {
        return Err(Error::Argument {
            name: "operand",
            found: "one on another device".into(),
            expected: format!("all operands on {}", device.profile().name),
        });
    }
    let out = range(c.address(), c.bytes());
    let inputs = [
        (name_b, range(b.address(), b.bytes())),
        ("the row offsets of A", range(a.offsets().address(), a.offsets().bytes())),
        ("the column indices of A", range(a.indices().address(), a.indices().bytes())),
        ("the values of A", range(a.values().address(), a.values().bytes())),
    ];
    for (name, input) in inputs {
        if input.start < out.end && out.start < input.end {
            return Err(Error::Argument {
                name: name_c,
                found: format!("memory that overlaps {name}"),
                expected: "memory of its own".into(),
            });
        }
    }
    Ok(())
}

fn range(address: u64, bytes: usize) -> std::ops::Range<u64> {
    address..address + bytes as u64
}

#[cfg(test)]
mod tests {
    use gustav_core::{CsrView, Problem};

    use super::types;

    #[test]
    fn a_problem_of_other_types_is_refused() {
        let a = CsrView::<f32, u32, u64>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        let problem = Problem::spmm(&a);
        types::<f32, u32, u64>(&problem).expect("its own types");
        let words = types::<f32, u32, u32>(&problem).expect_err("other offsets").to_string();
        assert!(words.contains("u64 row offsets") && words.contains("u32 row offsets"), "{words}");
        types::<f64, u32, u64>(&problem).expect_err("other values");
        types::<f32, u64, u64>(&problem).expect_err("other indices");
    }
}
