//! Operations on the finished sums of SpMM before they are stored.

use std::fmt::Display;

use crate::{Error, Problem, Result, Semiring};

/// Operations on a finished sum, in the order of the fields: C = relu(α·(A·B)ᵢⱼ ∕ nᵢ ⊕ β·C +
/// biasⱼ), nᵢ the number of entries of row i of op(A).
///
/// They are applied to sums in registers. Only for plus-times in floating point.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Epilogue {
    /// α is divided by the number of entries of the row; rows without any stay zero. Also set by
    /// [`Reduce::Mean`](crate::Reduce::Mean).
    pub mean: bool,
    /// A value for every column is added, in the type of sums.
    pub bias: bool,
    /// Negative results become zero; NaN stays NaN.
    pub relu: bool,
}

impl Epilogue {
    /// Whether sums are stored unchanged.
    pub fn is_none(self) -> bool {
        self == Epilogue::default()
    }

    /// The steps as bits, from the first on.
    pub fn bits(self) -> u8 {
        u8::from(self.mean) | u8::from(self.bias) << 1 | u8::from(self.relu) << 2
    }
}

/// The names of the steps: `mean, bias, ReLU`.
impl Display for Epilogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps = [(self.mean, "mean"), (self.bias, "bias"), (self.relu, "ReLU")];
        let requested: Vec<_> =
            steps.iter().filter(|(requested, _)| *requested).map(|(_, name)| *name).collect();
        f.write_str(&requested.join(", "))
    }
}

impl Problem {
    /// For a `backend` without epilogues: checks that there is neither an epilogue nor max or min.
    ///
    /// # Errors
    /// [`Error::Unsupported`] otherwise.
    pub fn without_epilogue(&self, backend: &str) -> Result<()> {
        self.without_extremum(backend)?;
        if self.epilogue.is_none() {
            return Ok(());
        }
        Err(Error::Unsupported {
            problem: self.to_string(),
            backend: backend.into(),
            reason: format!("it stores sums as they are, without {}", self.epilogue),
            nearest: "a mean by row-split on the CPU, SpMM by segmented, row-block, even-shares, column-panel, \
                      b-stationary or tensor on CUDA, or the product without it"
                .into(),
        })
    }

    /// Checks that an epilogue, if any, is for plus-times in floating point.
    ///
    /// # Errors
    /// [`Error::Unsupported`] otherwise.
    pub fn check_epilogue(&self, backend: &str) -> Result<()> {
        let floating = self.semiring == Semiring::PlusTimes && !self.dtype.is_integer();
        if floating || self.epilogue.is_none() {
            return Ok(());
        }
        Err(Error::Unsupported {
            problem: self.to_string(),
            backend: format!("{backend} in {} over {}", self.dtype, self.semiring),
            reason: format!("{} is of sums of products in floating point", self.epilogue),
            nearest: "plus-times in f32 or f64, or the product without it".into(),
        })
    }
}
