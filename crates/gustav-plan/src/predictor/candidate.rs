//! What a predictor chooses among.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::Error;

use crate::{Algorithm, Order};

/// An algorithm with the order in which it takes rows; written `ALGORITHM` or `ALGORITHM@ORDER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// The algorithm, in its own choice of configuration.
    pub algorithm: Algorithm,
    /// The row order; `None` for the stored one.
    pub order: Option<Order>,
}

impl Candidate {
    /// The classes of the source: plain CSR, DCSR, LPT and warp-aware, of its own kernel.
    pub const OF_THE_SOURCE: [Candidate; 4] = [
        Candidate { algorithm: Algorithm::OutputStationary, order: None },
        Candidate { algorithm: Algorithm::Dcsr, order: None },
        Candidate { algorithm: Algorithm::OutputStationary, order: Some(Order::Lpt) },
        Candidate { algorithm: Algorithm::OutputStationary, order: Some(Order::WarpAware) },
    ];
}

impl Display for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.order {
            None => f.pad(self.algorithm.name()),
            Some(order) => f.pad(&format!("{}@{order}", self.algorithm)),
        }
    }
}

impl FromStr for Candidate {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        let (algorithm, order) = match s.split_once('@') {
            None => (s, None),
            Some((algorithm, order)) => (algorithm, Some(order.parse()?)),
        };
        Ok(Candidate { algorithm: algorithm.parse()?, order })
    }
}
