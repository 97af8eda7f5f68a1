//! What a predictor chooses among.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::Error;

use crate::{Algorithm, Chooser, Order};

/// An algorithm with its configuration and the order in which it takes rows, or what the default rules
/// choose; written `ALGORITHM`, `ALGORITHM#K`, `ALGORITHM@ORDER` or `ALGORITHM#K@ORDER`, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// The algorithm; `None` for `auto`, which takes no order.
    pub algorithm: Option<Algorithm>,
    /// The index of its configuration among those that autotuning tries; `None` for its own
    /// choice.
    pub config: Option<usize>,
    /// The row order; `None` leaves rows to the algorithm.
    pub order: Option<Order>,
}

impl Candidate {
    /// The classes of the source: plain CSR, DCSR, LPT and warp-aware, of its own kernel.
    pub const OF_THE_SOURCE: [Candidate; 4] = [
        Candidate::new(Algorithm::OutputStationary, None),
        Candidate::new(Algorithm::Dcsr, None),
        Candidate::new(Algorithm::OutputStationary, Some(Order::Lpt)),
        Candidate::new(Algorithm::OutputStationary, Some(Order::WarpAware)),
    ];

    /// What the default rules choose.
    pub const AUTO: Candidate = Candidate { algorithm: None, config: None, order: None };

    /// `algorithm` in its own choice of configuration.
    pub const fn new(algorithm: Algorithm, order: Option<Order>) -> Self {
        Candidate { algorithm: Some(algorithm), config: None, order }
    }

    /// What chooses it in a plan's options.
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
