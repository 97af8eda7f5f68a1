//! Products over the ranks of an MPI job: the verbs with `--mpi`.

mod engine;
mod forecast;
mod job;
mod parts;
mod plan;
mod report;
mod results;
mod sddmm;
mod spgemm;
mod spmm;

use std::fmt::Display;
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use gustav::Order;
use gustav_mpi::{Communication, Replicated};

use crate::failure::Failure;

pub use forecast::{Forecast, Ranks, forecast};
pub use job::launched_rank;
pub use plan::{Plan, plan};
pub use sddmm::{Sddmm, sddmm};
pub use spgemm::{Spgemm, spgemm};
pub use spmm::{Spmm, spmm};

fn communications() -> impl TypedValueParser<Value = Communication> {
    crate::args::named(&Communication::ALL, |c| c.name())
}

fn spreads() -> impl TypedValueParser<Value = Spread> {
    let orders = Order::ALL.iter().map(|order| order.name());
    PossibleValuesParser::new([EVEN, BALANCED].into_iter().chain(orders)).try_map(|s| {
        match s.as_str() {
            EVEN => Ok(Spread::Even),
            BALANCED => Ok(Spread::Balanced),
            name => name.parse().map(Spread::Ordered),
        }
    })
}

/// Options of products over ranks.
#[derive(Args, Clone, Copy, Debug)]
pub struct Ranked {
    /// Multiply over all ranks of the MPI job that this is part of, each with a part of the rows: mpirun -n 4
    /// gustav ... --mpi. An MPI is needed, such as that of pip install mpich
    #[arg(long, group = "over-ranks")]
    pub mpi: bool,
    /// What ranks send each other, with --mpi (spmm, spmv; whatever needs the fewest bytes unless given)
    #[arg(long, value_name = "WHAT", requires = "over-ranks", value_parser = communications())]
    pub communication: Option<Communication>,
    /// Multiply in teams of so many ranks, to each of which a row of B is sent once, with --mpi (spmm, spmv): a
    /// divisor of the number of ranks, or auto for the one that sends the fewest bytes and fits into memory, which
    /// takes counting them for every divisor (1 unless given)
    #[arg(long, value_name = "C", requires = "mpi")]
    pub copies: Option<Copies>,
    /// Which rows each rank has, with --mpi: as many for each (even), as nearly as possible the same number of nonzeros
    /// (balanced), or the latter after rows, and columns of a square A, are brought into a row order, for which rank 0
    /// reads A whole; results have rows as stored (balanced unless given)
    #[arg(long, value_name = "HOW", requires = "mpi", value_parser = spreads())]
    pub partition: Option<Spread>,
}

impl Ranked {
    /// Refuses options that only products with a dense matrix or a vector have.
    ///
    /// # Errors
    /// If one is given.
    pub fn of_dense_products_refused(&self) -> Result<(), Failure> {
        let given =
            [("copies", self.copies.is_some()), ("communication", self.communication.is_some())];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::Request(format!(
                "{option}: only spmm and spmv have it, leave the option out"
            ))),
        }
    }

    /// Which rows each rank has.
    pub fn spread(&self) -> Spread {
        self.partition.unwrap_or_default()
    }
}

const EVEN: &str = "even";
const BALANCED: &str = "balanced";

/// Which rows each rank has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// The same number of them.
    Even,
    /// As nearly as possible the same number of nonzeros and row starts.
    #[default]
    Balanced,
    /// Balanced in this order.
    Ordered(Order),
}

impl Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spread::Even => f.write_str(EVEN),
            Spread::Balanced => f.write_str(BALANCED),
            Spread::Ordered(order) => order.fmt(f),
        }
    }
}

/// A number of copies, as the command line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// The one that sends the fewest bytes.
    Automatic,
    /// This one.
    Number(usize),
}

impl Copies {
    /// What computes on `device` with so many.
    fn of<D>(self, device: D) -> Replicated<D> {
        match self {
            Copies::Automatic => Replicated::automatic(device),
            Copies::Number(copies) => Replicated::new(device, copies),
        }
    }
}

impl FromStr for Copies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Copies::Automatic),
            _ => {
                let number = text.parse().map(Copies::Number);
                number.map_err(|_| "expected a number of ranks, or auto".into())
            }
        }
    }
}
