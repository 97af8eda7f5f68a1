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
    /// Multiply over all ranks of the MPI job that this is part of, each with a share of the rows: mpirun -n 4
    /// gustav ... --mpi. An MPI is needed, such as that of pip install mpich
    #[arg(long, group = "over-ranks")]
    pub mpi: bool,
    /// What ranks send each other, with --mpi (spmm, spmv; whatever needs the fewest bytes unless given)
    #[arg(long, value_name = "WHAT", requires = "over-ranks", value_parser = communications())]
    pub communication: Option<Communication>,
    /// Multiply in teams of so many ranks, to each of which a row of B goes once, with --mpi on CPUs (spmm, spmv); a
    /// divisor of the number of ranks
    #[arg(long, value_name = "C", requires = "mpi")]
    pub copies: Option<usize>,
}
