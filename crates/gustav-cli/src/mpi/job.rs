//! The MPI job that this process is part of. Everything that can fail on one rank goes through
//! [`Job::together`], so that no rank waits for one that has given up.

use std::fmt::Debug;

use gustav::cuda::CudaDevice;
use gustav::{Chooser, Error, Layout, Scalar};
use gustav_mpi::{Device, DistDense, Gpu, Options, Partition, Ranks};

use super::engine::{Location, Place};
use super::{Copies, Ranked};
use crate::args::{AlgorithmArg, Choice, Printing};
use crate::failure::{ERROR, Failure, Outcome, Result};
use crate::measure::{self, Timing};

/// The rank of this process as its launcher tells it, before MPI is loaded.
pub fn launched_rank() -> Option<usize> {
    let names = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// The ranks of the job, of which the first prints.
pub struct Job {
    /// The ranks.
    pub ranks: Ranks,
    /// What this rank prints: others than the first nothing.
    pub printing: Printing,
}

/// Joins the MPI job, whose ranks all have `arguments`, and does `work` on every rank. Only the
/// first prints, unless the failure of another is unknown to it.
///
/// # Errors
/// Those of `work`, and when there is no MPI.
pub fn run(
    printing: Printing,
    arguments: &impl Debug,
    work: impl FnOnce(&Job) -> Result,
) -> Result {
    let ranks = match world() {
        Ok(ranks) => ranks,
        Err(_) if launched_rank().is_some_and(|rank| rank > 0) => return Err(Failure::Reported),
        Err(e) => return Err(e.into()),
    };
    let first = ranks.rank() == 0;
    let printing = if first { printing } else { Printing { json: false, quiet: true } };
    let job = Job { ranks, printing };
    // One line, as arguments are compared by lines.
    let given = format!("{arguments:?}");
    let agreed = job.ranks.agree_on(vec![("arguments", given)], Ok(()));
    let failure = match agreed.and_then(|()| work(&job)) {
        Ok(outcome) => return Ok(outcome),
        Err(failure) => failure,
    };
    // Of these, the others may not know.
    if let Failure::Library(Error::Communication { .. }) = failure {
        failure.report();
        // The others may wait for this rank.
        job.ranks.communicator().abort(i32::from(ERROR));
    }
    Err(if first { failure } else { Failure::Reported })
}

#[cfg(unix)]
fn world() -> gustav::Result<Ranks> {
    gustav_mpi::Mpi::init()?.world()
}

#[cfg(not(unix))]
fn world() -> gustav::Result<Ranks> {
    Err(Error::NoMpi { reason: "it is loaded on Unix only".into() })
}

/// The steps of a timed execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Brings the result into the state in which the product finds it.
    Prepare,
    /// Multiplies.
    Execute,
}

impl Job {
    /// Whether this is the first rank.
    pub fn is_first(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// `mine`, if no rank failed. Collective.
    ///
    /// # Errors
    /// The own failure, or that of another rank.
    pub fn together<R>(&self, mine: Result<R>) -> Result<R> {
        self.ranks.together(mine)
    }

    /// What `work` gives on the first rank; `None` on others. Collective.
    ///
    /// # Errors
    /// On every rank, that of `work`.
    pub fn first<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<Option<R>> {
        self.together(self.is_first().then(work).transpose())
    }

    /// The number that the first rank has. Collective.
    ///
    /// # Errors
    /// Of communication.
    pub fn number_of_first(&self, mine: usize) -> Result<usize> {
        let mut found = [if self.is_first() { mine as u64 } else { 0 }];
        self.ranks.communicator().all_reduce_max(&mut found)?;
        Ok(found[0] as usize)
    }

    /// The largest of the ranks' numbers. Collective.
    ///
    /// # Errors
    /// Of communication.
    pub fn largest(&self, mine: u64) -> Result<u64> {
        let mut found = [mine];
        self.ranks.communicator().all_reduce_max(&mut found)?;
        Ok(found[0])
    }

    /// Every rank's number. Collective.
    ///
    /// # Errors
    /// Of communication.
    pub fn numbers(&self, mine: usize) -> Result<Vec<usize>> {
        let mut all = vec![0_u8; 8 * self.ranks.size()];
        self.ranks.communicator().all_gather(&(mine as u64).to_ne_bytes(), &mut all)?;
        let number = |b: &[u8; 8]| u64::from_ne_bytes(*b) as usize;
        Ok(all.as_chunks().0.iter().map(number).collect())
    }

    /// Where this rank computes an SpMM, and the number of its threads: as [`Job::place`], or in a team. Collective.
    ///
    /// # Errors
    /// For options that products over ranks do not have.
    pub fn location(&self, choice: &Choice, ranked: Ranked) -> Result<(Location, usize)> {
        let (place, threads) = self.place(choice, ranked)?;
        // One copy is what there is without teams.
        let copies = ranked.copies.filter(|copies| *copies != Copies::Number(1));
        let location = match (place, copies) {
            (Place::Cpu(device), None) => Location::Cpu(device),
            (Place::Cpu(device), Some(copies)) => Location::Team(copies.of(device)),
            (Place::Gpu(gpu), None) => Location::Gpu(gpu),
            (Place::Gpu(gpu), Some(copies)) => Location::GpuTeam(copies.of(gpu)),
        };
        Ok((location, threads))
    }

    /// As [`Job::place`], for products that have no teams. Collective.
    ///
    /// # Errors
    /// For options that products over ranks do not have, for copies and for a communication.
    pub fn place_alone(&self, choice: &Choice, ranked: Ranked) -> Result<(Place, usize)> {
        self.together(ranked.of_dense_products_refused())?;
        self.place(choice, ranked)
    }

    /// Where this rank computes, and the number of its threads: on its CPU, or on a GPU: `cuda:K`, or with `cuda` one
    /// for each rank of a host, if it has as many. Collective.
    ///
    /// # Errors
    /// For options that products over ranks do not have.
    pub fn place(&self, choice: &Choice, ranked: Ranked) -> Result<(Place, usize)> {
        let Some(name) = choice.device.strip_prefix("cuda") else {
            let (device, threads) = self.device(choice, ranked)?;
            return Ok((Place::Cpu(device), threads));
        };
        let position = self.ranks.hosts()?.position(self.ranks.rank());
        let gpu = || {
            let given = [
                ("order", choice.order.is_some()),
                ("algorithm", !matches!(choice.algorithm, AlgorithmArg::Auto)),
                ("choose", choice.choose.is_some()),
                ("threads", choice.threads.is_some()),
            ];
            if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
                return Err(Failure::Request(format!(
                    "{option}: ranks with GPUs have no choice, leave it out"
                )));
            }
            let gpu = match (name, name.strip_prefix(':').map(str::parse)) {
                ("", _) => Gpu::of_rank(position)?,
                (_, Some(Ok(ordinal))) => Gpu::new(CudaDevice::cuda(ordinal)?),
                _ => {
                    return Err(Failure::Request(format!(
                        "device: {} is not valid, expected cpu, cuda:K, or cuda for one of the GPUs of each rank's host",
                        choice.device
                    )));
                }
            };
            Ok(gpu.communication(ranked.communication.unwrap_or_default()))
        };
        Ok((Place::Gpu(self.together(gpu())?), 1))
    }

    /// The CPU with the chooser of `choice`, and the number of this rank's threads. Collective.
    ///
    /// # Errors
    /// For options that products over ranks do not have.
    fn device(&self, choice: &Choice, ranked: Ranked) -> Result<(Device, usize)> {
        let sharing = self.ranks_on_this_host()?;
        let device = || {
            let refused = match () {
                () if choice.order.is_some() => {
                    "order: it is of GPUs; --partition brings the rows of ranks into an order"
                }
                () if choice.algorithm == AlgorithmArg::All => {
                    "algorithm: all is not valid with --mpi, name one or leave it to auto"
                }
                () if choice.choose == Some(Chooser::Autotune) => {
                    "choose: ranks that time candidates wait for each other; use predictor or auto"
                }
                () => "",
            };
            if !refused.is_empty() {
                return Err(Failure::Request(refused.into()));
            }
            let device = choice.device()?;
            let count = (device.threads().count() / sharing).max(1);
            let device =
                if choice.threads.is_some() { device } else { device.with_threads(count)? };
            Ok(device)
        };
        let device = self.together(device())?;
        let threads = device.threads().clone();
        let count = threads.count();
        let options = Options { chooser: device.chooser(), threads, ..Options::default() };
        let communication = ranked.communication.unwrap_or_default();
        Ok((Device::cpu(options).communication(communication), count))
    }

    /// Ranks that use the same cores as this process: those of its host, unless each is bound to its own.
    fn ranks_on_this_host(&self) -> Result<usize> {
        let rank = self.ranks.rank();
        let seen = format!("{} {:?}", self.ranks.hosts()?.numbers()[rank], cores());
        let all = self.ranks.gather_text(&seen)?;
        Ok(all.iter().filter(|other| **other == all[rank]).count())
    }

    /// Times [`Step::Execute`] of `run`, a collective call, as [`measure::repeat`] does, after [`Step::Prepare`],
    /// which a rank does alone; a time is that of the slowest rank. Collective.
    ///
    /// # Errors
    /// The first of `run`.
    pub fn repeat(
        &self,
        repeat: Option<usize>,
        run: &mut dyn FnMut(Step) -> Result<()>,
    ) -> Result<Timing> {
        let mut timed = || {
            self.together(run(Step::Prepare))?;
            self.ranks.communicator().barrier()?;
            let ((), ms) = measure::once(|| run(Step::Execute))?;
            Ok(self.largest((ms * 1e6) as u64)? as f64 / 1e6)
        };
        measure::repeat_while(repeat, &mut timed, &mut |more| {
            Ok(self.number_of_first(usize::from(more))? == 1)
        })
    }

    /// The matrix on the first rank, of which this rank has the rows `local`. Collective.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn gather<T: Scalar>(&self, local: gustav::Dense<T>) -> Result<Option<gustav::Dense<T>>> {
        let rows = Partition::of_counts(&self.numbers(local.nrows())?)?;
        Ok(DistDense::new(&self.ranks, &rows, local)?.gather()?)
    }

    /// The elements of all ranks' arrays on the first rank. Collective.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn gather_vector<T: Scalar>(&self, local: &[T]) -> Result<Option<Vec<T>>> {
        let column = gustav::Dense::zeros(local.len(), 1, Layout::RowMajor);
        let mut column = self.together(column.map_err(Failure::from))?;
        column.data_mut().copy_from_slice(local);
        Ok(self.gather(column)?.map(|m| m.into_data().into_vec()))
    }

    /// The outcome that the first rank knows. Collective.
    ///
    /// # Errors
    /// Of communication.
    pub fn outcome(&self, right: bool) -> Result {
        let wrong = self.number_of_first(usize::from(!right))? == 1;
        Ok(if wrong { Outcome::Failed } else { Outcome::Done })
    }
}

/// The cores that this process may run on.
#[cfg(target_os = "linux")]
fn cores() -> Vec<usize> {
    // SAFETY: an array of bits, all zero, which the call fills.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    };
    // SAFETY: below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

#[cfg(not(target_os = "linux"))]
fn cores() -> Vec<usize> {
    Vec::new()
}
