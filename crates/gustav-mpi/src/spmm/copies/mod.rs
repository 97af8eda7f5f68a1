//! SpMM over ranks with copies of B's rows on fewer ranks: teams of ranks that divide the work of their rows.

mod choice;
mod cpu;
mod gpu;
mod member;
mod team;

use gustav_core::{Error, Index, Operation, Problem, Result};

use crate::device::{arguments, supports};
use crate::local::{DistScalar, is_widened};
use crate::{Device, DistPattern, Explanation};
pub use choice::{Copies, CopiesCandidate};
pub use cpu::ReplicatedSpmmPlan;
pub use gpu::GpuReplicatedSpmmPlan;

/// Where a rank computes that is one of a team of consecutive ranks, a [`Device`] or a [`Gpu`](crate::Gpu), after the
/// 1.5D algorithms (Koanantakool et al. 2016): every nonzero whose column another team has is multiplied by that member
/// of the team that receives all rows of B from the team of the column, so that a row of B is sent to each team once.
/// For that, values of A are sent to the member in every execution and partial rows of C are sent back, between ranks
/// that may share a host; and a rank has memory for the rows of C of its team in which it multiplies. Of the ranks of a
/// program, some may be on GPUs and others on CPUs.
#[derive(Clone, Debug)]
pub struct Replicated<D = Device> {
    device: D,
    /// `None` for the number that sends the fewest bytes.
    copies: Option<usize>,
    memory: Option<u64>,
}

impl<D> Replicated<D> {
    /// Ranks in teams of `copies`, which divides their number.
    pub fn new(device: D, copies: usize) -> Self {
        Replicated { device, copies: Some(copies), memory: None }
    }

    /// Ranks in teams of the size with which the fewest bytes are sent, of those whose plans fit into memory on every
    /// rank; alone where no team saves bytes. Bytes are counted when a plan is made, for every divisor of the number of
    /// ranks whose plan would fit, and [`Explanation::copies`] lists them.
    pub fn automatic(device: D) -> Self {
        Replicated { device, copies: None, memory: None }
    }

    /// Where this rank computes.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Sets the bytes that a plan with copies may take on this rank, while it is made too, if their number is chosen
    /// automatically; else it is the memory that this rank's host has available, divided by the ranks on it, or where
    /// that is less what its GPU has free, divided by the ranks that share that. Ranks may differ in it.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        Replicated { memory: Some(bytes), ..self }
    }
}

/// How a plan multiplies.
enum Method<S, M> {
    /// One copy: every rank alone.
    Single(Box<S>),
    Team(Box<M>),
}

/// The number of copies of a plan for `problem` by ranks of which this one computes on `gpu`, if there is one, and has
/// the `options` of all. Collective.
///
/// # Errors
/// On every rank, for arguments that differ or that plans with copies do not take, and as [`choice::choose`].
fn choose<T: DistScalar, I: Index, O: Index, D>(
    pattern: &DistPattern<I, O>,
    problem: &Problem,
    replicated: &Replicated<D>,
    (options, gpu): (&Device, Option<&gustav_cuda::Device>),
) -> Result<Copies> {
    let Replicated { copies, memory, .. } = replicated;
    let ranks = pattern.ranks();
    let (dtype, index_type, offset_type) = (T::DTYPE, I::TYPE, O::TYPE);
    let typed = Problem { dtype, index_type, offset_type, ..problem.clone() };
    let checked = copies
        .map_or(Ok(()), |copies| check::<T>(&typed, ranks.size(), copies))
        .and_then(|()| supports(&typed, ranks.size()))
        .and_then(|()| typed.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz()));
    let _lock = ranks.lock();
    let mut arguments = arguments(ranks.next_plan(), &typed, &pattern.into(), options);
    let of_copies = copies.map_or_else(|| "automatic".into(), |copies| copies.to_string());
    // Before what every plan has: a plan without copies gives no such argument.
    arguments.insert(0, ("copies", of_copies));
    ranks.agree_on(arguments, checked)?;
    if let Some(copies) = copies {
        return Ok(Copies { chosen: *copies, candidates: Vec::new() });
    }
    let available = choice::available(ranks, *memory, gpu)?;
    choice::choose::<T, I, O>(pattern, problem, options.communication, available)
}

/// The plan with as many copies as were chosen, which `single` makes for one and `team` for more, and what it says of
/// itself.
fn plan_by<S, M>(
    chosen: Copies,
    single: impl FnOnce() -> Result<(S, Explanation)>,
    team: impl FnOnce(usize) -> Result<(M, Explanation)>,
) -> Result<(Method<S, M>, Explanation)> {
    let (method, mut explanation) = match chosen.chosen {
        1 => {
            let (plan, explanation) = single()?;
            (Method::Single(Box::new(plan)), explanation)
        }
        copies => {
            let (plan, explanation) = team(copies)?;
            (Method::Team(Box::new(plan)), explanation)
        }
    };
    explanation.copies = Some(chosen);
    Ok((method, explanation))
}

fn check<T: DistScalar>(problem: &Problem, ranks: usize, copies: usize) -> Result<()> {
    let refuse = |reason: &str, nearest: &str| {
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "products over ranks with copies".into(),
            reason: reason.into(),
            nearest: nearest.into(),
        })
    };
    if copies == 0 || !ranks.is_multiple_of(copies) {
        return Err(Error::Argument {
            name: "copies",
            found: copies.to_string(),
            expected: format!("a divisor of the number of ranks, {ranks}"),
        });
    }
    if problem.transpose_a {
        return refuse("rows of B are what they save", "one copy");
    }
    if is_widened(T::DTYPE) {
        return refuse("partial rows of C would be rounded", "one copy, or f32");
    }
    match problem.operation {
        Operation::Spmm | Operation::Spmv => Ok(()),
        _ => refuse("they multiply a sparse and a dense matrix", "one copy"),
    }
}
