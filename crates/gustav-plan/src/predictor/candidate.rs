//! The candidates that a predictor chooses among.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::Error;

use crate::{Algorithm, Chooser, Order};

/// An algorithm with a configuration and a row order, or the choice of the default rules; written
/// `ALGORITHM`, `ALGORITHM#K`, `ALGORITHM@ORDER` or `ALGORITHM#K@ORDER`, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// The algorithm; `None` for `auto`, which takes no order.
    pub algorithm: Option<Algorithm>,
    /// The index of its configuration among those that autotuning tries; `None` for the one that
    /// its rules choose.
    pub config: Option<usize>,
    /// The row order; `None` for the algorithm's own.
    pub order: Option<Order>,
}

impl Candidate {
    /// The classes of the row orders study: plain CSR, DCSR, LPT and warp-aware, with the study's
    /// kernel.
    pub const OF_THE_SOURCE: [Candidate; 4] = [
        Candidate::new(Algorithm::OutputStationary, None),
        Candidate::new(Algorithm::Dcsr, None),
        Candidate::new(Algorithm::OutputStationary, Some(Order::Lpt)),
        Candidate::new(Algorithm::OutputStationary, Some(Order::WarpAware)),
    ];

    /// The choice of the default rules.
    pub const AUTO: Candidate = Candidate { algorithm: None, config: None, order: None };

    /// `algorithm` with the configuration that its rules choose.
    pub const fn new(algorithm: Algorithm, order: Option<Order>) -> Self {
        Candidate { algorithm: Some(algorithm), config: None, order }
    }

    /// The [`Chooser`] that selects it in a plan's options.
    pub fn chooser(&self) -> Chooser {
        self.algorithm.map_or(Chooser::Auto, Chooser::Named)
    }
}

impl Display for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.chooser().to_string();
        if let Some(index) = self.config {
            text += &format!("#{index}");
        }
        if let Some(order) = self.order {
            text += &format!("@{order}");
        }
        f.pad(&text)
    }
}

impl FromStr for Candidate {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        if s == Candidate::AUTO.to_string() {
            return Ok(Candidate::AUTO);
        }
        let (s, order) = match s.split_once('@') {
            None => (s, None),
            Some((s, order)) => (s, Some(order.parse()?)),
        };
        let (algorithm, config) = match s.split_once('#') {
            None => (s, None),
            Some((algorithm, index)) => {
                let index = index.parse().map_err(|_| Error::Argument {
                    name: "configuration",
                    found: s.to_owned(),
                    expected: "ALGORITHM#K, with K an index among those that autotuning tries"
                        .into(),
                })?;
                (algorithm, Some(index))
            }
        };
        Ok(Candidate { algorithm: Some(algorithm.parse()?), config, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let ordered = ["segmented@min-hash", "segmented#12@min-hash"];
        for name in ["auto", "segmented", "segmented#7"].into_iter().chain(ordered) {
            let candidate: Candidate = name.parse().unwrap();
            assert_eq!(candidate.to_string(), name);
        }
        let halves = ["segmented#", "segmented#x", "segmented@", "segmented@min-hash#1"];
        for wrong in ["none#1", "auto#1", "auto@min-hash"].into_iter().chain(halves) {
            assert!(wrong.parse::<Candidate>().is_err(), "{wrong}");
        }
    }
}
