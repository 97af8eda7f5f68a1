//! How SpMM reduces the products of a row, and the winners of max and min.

use std::fmt::Display;

use crate::{Epilogue, Error, IndexType, Operation, Problem, Result, Semiring};

/// The reduction of the products `values[p]·B[column p, j]` of a row in SpMM.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Reduce {
    /// Their sum.
    #[default]
    Sum,
    /// Their sum ÷ the number of entries of the row: [`Epilogue::mean`].
    Mean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Reduce {
    /// Every reduction.
    pub const ALL: [Reduce; 4] = [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min];

    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Mean => "mean",
            Reduce::Max => "max",
            Reduce::Min => "min",
        }
    }
}

impl Display for Reduce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Max or min of the products of a row in place of their sum (SpMM). NaN beats all numbers; the
/// first of equal products wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extremum {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Extremum {
    /// Both.
    pub const ALL: [Extremum; 2] = [Extremum::Max, Extremum::Min];

    /// The same as a [`Reduce`].
    pub const fn reduce(self) -> Reduce {
        match self {
            Extremum::Max => Reduce::Max,
            Extremum::Min => Reduce::Min,
        }
    }
}

impl Display for Extremum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.reduce().name())
    }
}

impl Problem {
    /// Sets how the products of a row are reduced (SpMM).
    #[must_use]
    pub fn reduce(self, reduce: Reduce) -> Self {
        let epilogue = Epilogue { mean: reduce == Reduce::Mean, ..self.epilogue };
        let extremum = match reduce {
            Reduce::Sum | Reduce::Mean => None,
            Reduce::Max => Some(Extremum::Max),
            Reduce::Min => Some(Extremum::Min),
        };
        Problem { epilogue, extremum, ..self }
    }

    /// How the products of a row are reduced.
    pub fn reduction(&self) -> Reduce {
        match self.extremum {
            Some(extremum) => extremum.reduce(),
            None if self.epilogue.mean => Reduce::Mean,
            None => Reduce::Sum,
        }
    }

    /// For a `backend` without max and min: checks that neither is requested.
    ///
    /// # Errors
    /// [`Error::Unsupported`] otherwise.
    pub fn without_extremum(&self, backend: &str) -> Result<()> {
        let Some(extremum) = self.extremum else { return Ok(()) };
        Err(Error::Unsupported {
            problem: self.to_string(),
            backend: backend.into(),
            reason: format!("it adds products up, and does not take their {extremum}"),
            nearest: "SpMM by row-split on the CPU, or by segmented on CUDA".into(),
        })
    }

    /// Checks that max or min, if requested, is for an SpMM over plus-times without an epilogue.
    ///
    /// # Errors
    /// [`Error::Unsupported`] otherwise.
    pub fn check_extremum(&self, backend: &str) -> Result<()> {
        let Some(extremum) = self.extremum else { return Ok(()) };
        if self.operation != Operation::Spmm {
            return self.without_extremum(backend);
        }
        let (reason, nearest) = if self.semiring != Semiring::PlusTimes {
            let reason = format!("{extremum} is of products, and {} has sums", self.semiring);
            (reason, "plus-times, or another semiring without a reduction")
        } else if !self.epilogue.is_none() {
            let reason = format!("{extremum} has no {}", self.epilogue);
            (reason, "the product without an epilogue, whose steps then follow it")
        } else {
            return Ok(());
        };
        Err(Error::Unsupported {
            problem: self.to_string(),
            backend: backend.into(),
            reason,
            nearest: nearest.into(),
        })
    }

    /// Checks that β, the value of empty rows and the winners of an execution suit the reduction.
    ///
    /// # Errors
    /// [`Error::Argument`] for a β other than zero with max or min (`reads_c`), for a value of
    /// empty rows (`empty`) or winners with other reductions, and for winners of a type that cannot
    /// hold the positions of A; [`Error::Length`] for another number of winners than C has
    /// elements.
    pub fn check_reduction(
        &self,
        reads_c: bool,
        empty: bool,
        winners: Option<(IndexType, usize)>,
    ) -> Result<()> {
        let refuse = |name, found: &str, expected: &str| {
            Err(Error::Argument { name, found: found.into(), expected: expected.into() })
        };
        if self.extremum.is_none() {
            let only = "none: max and min have them, other reductions do not";
            return match (empty, winners) {
                (true, _) => refuse("empty", "a value of empty rows", only),
                (_, Some(_)) => refuse("winners", "an array for winners", only),
                _ => Ok(()),
            };
        }
        if reads_c {
            let expected = "zero: max and min replace C and add nothing to it";
            return refuse("beta", "a factor of C", expected);
        }
        let Some((index, found)) = winners else { return Ok(()) };
        let expected = self.output_rows().saturating_mul(self.columns);
        if found != expected {
            return Err(Error::Length { what: "winners", expected, found });
        }
        // The largest number means "none".
        if index == IndexType::U32 && self.nnz >= u32::MAX as usize {
            let found = format!("u32 for {} nonzeros", self.nnz);
            return refuse("winners", &found, "u64 from 2^32 - 1 nonzeros on");
        }
        Ok(())
    }
}

/// The winners that an SpMM with max or min writes (arg max, arg min): for every element of C the
/// position of its winner among the values of A as stored, also if Aᵀ is multiplied. Row-major and
/// packed, for any layout of C. Elements of empty rows get the largest number of the type.
#[derive(Debug)]
pub enum WinnersMut<'v> {
    /// In 32 bits, for fewer than 2³² − 1 nonzeros.
    U32(&'v mut [u32]),
    /// In 64 bits.
    U64(&'v mut [u64]),
}

impl WinnersMut<'_> {
    /// The type of the positions, and their number.
    pub fn description(&self) -> (IndexType, usize) {
        match self {
            WinnersMut::U32(winners) => (IndexType::U32, winners.len()),
            WinnersMut::U64(winners) => (IndexType::U64, winners.len()),
        }
    }
}
