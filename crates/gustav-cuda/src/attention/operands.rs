//! What executions of an attention are given, and whether it fits.

use gustav_core::{
    Batch, Error, HeadValues, Layout, Problem, Result, Scalar, ScoreOptions, Strides, validate,
};

use super::segmented::Matrix;
use crate::device::order::Uses;
use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::{DeviceDense, DeviceValues, HeldPattern};
use crate::product::checks;

/// Values of nonzeros and heads on a device, and how they lie there.
#[derive(Clone, Copy, Debug)]
pub struct Bias<'a, T> {
    /// The values.
    pub values: DeviceValues<'a, T>,
    /// Where each of them is.
    pub order: HeadValues,
}

/// Options of one execution of an [`AttentionPlan`](super::AttentionPlan).
#[derive(Debug)]
pub struct AttentionCall<'a, T: Scalar> {
    pub(super) options: CallOptions<'a, T>,
    pub(super) lse: Option<&'a mut DeviceBuffer<T::Accum>>,
}

/// Options of one execution of an [`AttentionGradientsPlan`](super::AttentionGradientsPlan): those
/// of the execution whose gradients they are.
#[derive(Debug)]
pub struct AttentionGradientsCall<'a, T: Scalar> {
    pub(super) options: CallOptions<'a, T>,
    pub(super) of_bias: Option<(&'a mut DeviceBuffer<T>, HeadValues)>,
}

#[derive(Debug)]
pub(super) struct CallOptions<'a, T: Scalar> {
    pub stream: Option<&'a Stream>,
    pub ordered: bool,
    pub scores: ScoreOptions<T::Accum>,
    pub bias: Option<Bias<'a, T>>,
}

impl<T: Scalar> Default for CallOptions<'_, T> {
    fn default() -> Self {
        CallOptions { stream: None, ordered: true, scores: ScoreOptions::default(), bias: None }
    }
}

macro_rules! call {
    ($name:ident { $($field:ident),* }) => {
        impl<T: Scalar> Default for $name<'_, T> {
            fn default() -> Self {
                $name { options: CallOptions::default(), $($field: None),* }
            }
        }

        impl<T: Scalar> From<()> for $name<'_, T> {
            fn from((): ()) -> Self {
                Self::default()
            }
        }

        impl<'a, T: Scalar> $name<'a, T> {
            /// As [`Default::default`].
            pub fn new() -> Self {
                Self::default()
            }

            /// Sets how scores are made of inner products, else inner products over √d for Q and K
            /// of d columns.
            #[must_use]
            pub fn scores(mut self, scores: ScoreOptions<T::Accum>) -> Self {
                self.options.scores = scores;
                self
            }

            /// Adds a value for every nonzero to the scores.
            #[must_use]
            pub fn bias(mut self, values: impl Into<DeviceValues<'a, T>>, order: HeadValues) -> Self {
                self.options.bias = Some(Bias { values: values.into(), order });
                self
            }

            /// Queues the work on `stream`.
            #[must_use]
            pub fn on(mut self, stream: &'a Stream) -> Self {
                self.options.stream = Some(stream);
                self
            }

            /// Leaves the order with work of other streams on the operands to the caller.
            ///
            /// # Safety
            /// No work of another stream writes an operand, or uses a result, while this work runs.
            #[must_use]
            pub unsafe fn unordered(mut self) -> Self {
                self.options.ordered = false;
                self
            }
        }
    };
}

call!(AttentionCall { lse });
call!(AttentionGradientsCall { of_bias });

impl<'a, T: Scalar> AttentionCall<'a, T> {
    /// Keeps what gradients need: for every head and row, `[head · rows + row]`, the logarithm of
    /// the sum of the exponentials of the scores; −∞ for a row without any.
    #[must_use]
    pub fn lse(mut self, lse: &'a mut DeviceBuffer<T::Accum>) -> Self {
        self.lse = Some(lse);
        self
    }
}

impl<'a, T: Scalar> AttentionGradientsCall<'a, T> {
    /// Computes the gradient with respect to the bias as well, of every nonzero and head.
    #[must_use]
    pub fn of_bias(mut self, to: &'a mut DeviceBuffer<T>, order: HeadValues) -> Self {
        self.of_bias = Some((to, order));
        self
    }
}

/// The checks of an execution, and the addresses of what passed them.
pub(super) struct Checked<'p> {
    pub device: &'p Device,
    pub pattern: &'p HeldPattern,
    pub problem: &'p Problem,
}

impl Checked<'_> {
    /// Where the heads of `m` are: `rows` × `columns` each, row-major.
    pub(super) fn matrix<T: Scalar>(
        &self,
        name: &'static str,
        (rows, columns): (usize, usize),
        m: &DeviceDense<T>,
    ) -> Result<Matrix> {
        let (op, count) = (self.problem.operation.name(), self.problem.batch);
        let batch = Batch { op, name, count, rows, columns, layout: Layout::RowMajor };
        let Strides { matrix: head, line: ld } = checks::strides(&batch, m)?;
        checks::on(self.device, name, m.data())?;
        Ok(Matrix { address: m.data().address(), row: ld as u64, head: head as u64 })
    }

    /// A value for every head and row.
    pub(super) fn of_rows<A>(&self, name: &'static str, values: &DeviceBuffer<A>) -> Result<u64> {
        validate::length(name, self.problem.batch.saturating_mul(self.problem.rows), values.len())?;
        checks::on(self.device, name, values)?;
        Ok(values.address())
    }

    /// Values of nonzeros in `order`, and their strides.
    pub(super) fn of_nonzeros<T: Scalar>(
        &self,
        name: &'static str,
        values: DeviceValues<'_, T>,
        order: HeadValues,
    ) -> Result<(u64, (usize, usize))> {
        let Problem { batch, nnz, .. } = *self.problem;
        self.pattern.id.check(name, values.pattern_id())?;
        validate::length(name, order.len(batch, nnz), values.len())?;
        checks::on(self.device, name, values.buffer())?;
        Ok((values.address(), order.strides(batch, nnz)))
    }

    /// No result overlaps an input, the pattern or another result; all are given as names and
    /// ranges of addresses.
    pub(super) fn apart(&self, results: &[Range], inputs: &[Range]) -> Result<()> {
        let pattern = self.pattern;
        let offsets = (pattern.nrows + 1) * pattern.offset_type.bytes();
        let arrays = [
            Range::new("the row offsets of the pattern", pattern.offsets.address(), offsets),
            Range::new(
                "the column indices of the pattern",
                pattern.indices.address(),
                pattern.nnz * pattern.index_type.bytes(),
            ),
        ];
        for (i, result) in results.iter().enumerate() {
            let others = inputs.iter().chain(&arrays).chain(&results[..i]);
            if let Some(other) = others.into_iter().find(|other| result.overlaps(other)) {
                return Err(Error::Argument {
                    name: result.name,
                    found: format!("memory that overlaps {}", other.name),
                    expected: "memory of its own".into(),
                });
            }
        }
        Ok(())
    }
}

/// Memory of an operand.
pub(super) struct Range {
    name: &'static str,
    from: u64,
    to: u64,
}

impl Range {
    fn new(name: &'static str, from: u64, bytes: usize) -> Self {
        Range { name, from, to: from + bytes as u64 }
    }

    pub(super) fn of<A>(name: &'static str, buffer: &DeviceBuffer<A>) -> Self {
        Self::new(name, buffer.address(), buffer.bytes())
    }

    fn overlaps(&self, other: &Range) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// Lets the stream of `uses` read `buffers`.
pub(super) fn read_all<T>(uses: &mut Uses<'_>, buffers: &[&DeviceBuffer<T>]) -> Result<()> {
    buffers.iter().try_for_each(|buffer| uses.read(buffer))
}
