//! Products over the ranks of an MPI job: the verbs with `--mpi`.

mod engine;
mod forecast;
mod job;
mod parts;
mod plan;
mod report;
mod sddmm;
mod spgemm;
mod spmm;

use std::str::FromStr;

use clap::Args;
use clap::builder::TypedValueParser;
use gustav_mpi::Communication;

pub use forecast::{Forecast, Ranks, forecast};
pub use job::launched_rank;
pub use plan::{Plan, plan};
pub use sddmm::{Sddmm, sddmm};
pub use spgemm::{Spgemm, spgemm};
pub use spmm::{Spmm, spmm};

fn communications() -> impl TypedValueParser<Value = Communication> {
    crate::args::named(&Communication::ALL, |c| c.name())
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
    /// Multiply in teams of so many ranks, to each of which a row of B is sent once, with --mpi on CPUs (spmm, spmv): a
    /// divisor of the number of ranks, or auto for the one that sends the fewest bytes and fits into memory, which takes
    /// counting them for every divisor (1 unless given)
    #[arg(long, value_name = "C", requires = "mpi")]
    pub copies: Option<Copies>,
}

/// A number of copies, as the command line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// The one that sends the fewest bytes.
    Automatic,
    /// This one.
    Number(usize),
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
