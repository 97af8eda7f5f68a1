//! What a rank of a job does that runs all cases: each rank compares the parts of all ranks with the oracle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use gustav_core::Result;
use gustav_mpi::{Hosts, Mpi, Ranks};
use gustav_testkit::battery::Settings;

use crate::cases::job::{Job, Part};
use crate::cases::{copies, random, sddmm, spgemm, spmm, spmv};
use crate::over::Over;

/// The processes of an MPI job.
struct Processes {
    ranks: Ranks,
    /// Batteries that have begun.
    batteries: AtomicUsize,
}

impl Job for Processes {
    fn sizes(&self) -> Vec<usize> {
        vec![self.ranks.size()]
    }

    fn settings(&self, settings: Settings) -> Settings {
        let number = self.batteries.fetch_add(1, Ordering::Relaxed);
        // Ranks that share a core wait for each other.
        let one_of = match self.ranks.size() {
            1 => 5,
            2..=4 => 29,
            _ => 89,
        };
        Settings { one_of, first: 13 * number % one_of, ..settings }
    }

    fn on_ranks<P: Part>(
        &self,
        hosts: &Hosts,
        limit: usize,
        work: impl Fn(Ranks) -> Result<P> + Sync,
    ) -> Result<Vec<P>> {
        let ranks = &self.ranks;
        let over = Over { ranks: ranks.clone(), host: hosts.numbers()[ranks.rank()], limit };
        let Ok(mine) = catch_unwind(AssertUnwindSafe(|| work(Ranks::new(over)))) else {
            // What the other ranks wait for is not known.
            ranks.communicator().abort(1);
            std::process::abort();
        };
        let mine = ranks.together(mine)?.to_bytes();
        Ok(gathered(ranks, mine)?.iter().map(|bytes| P::of_bytes(bytes)).collect())
    }
}

/// What every rank gives.
fn gathered(ranks: &Ranks, mut mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
    let communicator = ranks.communicator();
    let mut lengths = vec![0_u64; ranks.size()];
    let own = (mine.len() as u64).to_ne_bytes();
    communicator.all_gather(&own, bytemuck::cast_slice_mut(&mut lengths))?;
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    mine.resize(longest, 0);
    let mut all = vec![0; longest * ranks.size()];
    communicator.all_gather(&mine, &mut all)?;
    let part = |(rank, len): (usize, &u64)| all[rank * longest..][..*len as usize].to_vec();
    Ok(lengths.iter().enumerate().map(part).collect())
}

/// Runs cases of all batteries, and all of random matrices, on the ranks of the job, of which there are `size`.
pub fn run_all(size: usize) -> Result<()> {
    let ranks = Mpi::init()?.world()?;
    assert_eq!(ranks.size(), size);
    let job = Processes { ranks, batteries: AtomicUsize::new(0) };
    spmm::f32_plus_times(&job);
    spmm::f64_plus_times_with_wide_indices(&job);
    spmm::sixteen_bits_are_summed_in_f32(&job);
    spmm::integers_are_exact(&job);
    spmm::every_semiring(&job);
    copies::teams_multiply_as_ranks_do(&job);
    spmv::batteries(&job);
    sddmm::f32_battery(&job);
    sddmm::battery_of_sixteen_bits_and_integers(&job);
    spgemm::f32_battery(&job);
    spgemm::batteries_of_other_types_and_semirings(&job);
    random::spmm_of_every_type(&job)?;
    random::sddmm_of_every_type(&job)?;
    random::spgemm_of_every_type(&job)
}
