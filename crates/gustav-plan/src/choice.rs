//! Choices of algorithms, and who makes them.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use gustav_core::Error;

use crate::Algorithm;

/// Who chooses.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chooser {
    /// The default rules, from row statistics, columns, types and expected calls.
    #[default]
    Auto,
    /// Yang, Buluç, Owens 2018, §5.4: nonzero-split below a mean row length of 9.35, else
    /// row-split.
    MeanRowLength,
    /// Time every candidate and take the fastest.
    Autotune,
    /// A network trained on this device, from the features of the matrix; see
    /// [`crate::predictor`].
    Predictor,
    /// The caller.
    Named(Algorithm),
}

impl Display for Chooser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Chooser::Auto => "auto",
            Chooser::MeanRowLength => "mean-row-length",
            Chooser::Autotune => "autotune",
            Chooser::Predictor => "predictor",
            Chooser::Named(a) => a.name(),
        })
    }
}

impl FromStr for Chooser {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        match s {
            "auto" => Ok(Chooser::Auto),
            "mean-row-length" => Ok(Chooser::MeanRowLength),
            "autotune" => Ok(Chooser::Autotune),
            "predictor" => Ok(Chooser::Predictor),
            _ => s.parse().map(Chooser::Named).map_err(|_| Error::Argument {
                name: "chooser",
                found: s.into(),
                expected: "auto, mean-row-length, autotune, predictor or the name of an algorithm"
                    .into(),
            }),
        }
    }
}

/// A choice of algorithm and configuration, with the reason. `C` is a backend's own
/// configuration: a plain struct that can be printed and compared.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Choice<C> {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Its configuration.
    pub config: C,
    /// Why, in one sentence.
    pub reason: String,
}

impl<C> Choice<C> {
    /// The same choice with its configuration as another type.
    pub fn map<D>(self, config: impl FnOnce(C) -> D) -> Choice<D> {
        Choice { algorithm: self.algorithm, config: config(self.config), reason: self.reason }
    }
}
