//! What becomes of the finished sums of SpMM before they are stored.

use std::fmt::Display;

use crate::{Error, Problem, Result, Semiring};

/// Steps between a finished sum and C, in the order of the fields:
/// C = relu(α·(A·B)ᵢⱼ ∕ nᵢ ⊕ β·C + biasⱼ), nᵢ the number of entries of row i of op(A).
///
/// The sum is still in a register. Of plus-times in floating point alone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Epilogue {
    /// α is divided by the number of entries of the row; rows without any stay zero. Also set by
    /// [`Reduce::Mean`](crate::Reduce::Mean).
    pub mean: bool,
    /// One value for every column is added, in the type of sums.
    pub bias: bool,
    /// What is below zero becomes zero; NaN stays NaN.
    pub relu: bool,
}

impl Epilogue {
    /// Whether sums are stored as they are.
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
        let asked: Vec<_> =
            steps.iter().filter(|(asked, _)| *asked).map(|(_, name)| *name).collect();
        f.write_str(&asked.join(", "))
    }
}

impl Problem {
    /// Refuses an epilogue on behalf of `backend`, and max and min.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when there is one.
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

    /// An epilogue, if any, is of plus-times in floating point.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when it is not.
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
