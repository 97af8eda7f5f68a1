//! The number of copies by counted bytes and memory, without making a plan of any but the chosen one.

use std::fmt::Display;

use gustav_core::buffer::available_memory;
use gustav_core::{Error, Index, PatternView, Problem, Result};

use super::team::{TeamCounts, TeamPart};
use crate::blocks;
use crate::local::{DistScalar, is_widened};
use crate::matrix::gather_numbers;
use crate::{Communication, DistPattern, ProductShape, Ranks};

/// How the number of copies of a plan was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Ranks of a team; 1 without copies.
    pub chosen: usize,
    /// What was compared; nothing where the caller named the number.
    pub candidates: Vec<CopiesCandidate>,
}

/// A number of copies that was considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiesCandidate {
    /// Ranks of a team.
    pub copies: usize,
    /// Bytes that all ranks send in one execution, each row of B directly to the ranks that need it; `None` where a
    /// rank lacks the memory to count them.
    pub sent_bytes: Option<u64>,
    /// Bytes that a plan holds on the rank that needs most, counted for values, the pattern of the part, sums and
    /// messages, those of its product left out where bytes are not counted; with what making it takes where a rank
    /// lacks that; of one copy, for messages.
    pub memory_bytes: u64,
    /// Whether every rank has that memory. One copy needs none but the messages, and is always possible.
    pub fits: bool,
}

impl Display for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.chosen)?;
        if self.candidates.is_empty() {
            return f.write_str(", named by the caller");
        }
        f.write_str(", which sends the fewest bytes of those that memory allows:")?;
        for (k, candidate) in self.candidates.iter().enumerate() {
            let CopiesCandidate { copies, sent_bytes, memory_bytes, fits } = candidate;
            let separator = if k == 0 { "" } else { "," };
            let memory = if *fits { "" } else { " that a rank does not have" };
            let sent = sent_bytes.map_or_else(String::new, |bytes| format!(" {bytes} sent,"));
            write!(f, "{separator} {copies}:{sent} {memory_bytes} held{memory}")?;
        }
        Ok(())
    }
}

/// Bytes that a plan may take on this rank: `memory`, else what the host has available, divided by its ranks, and of a
/// rank with a GPU no more than this has free, divided by the ranks that share it: a plan is made in memory of the
/// host. Collective.
///
/// # Errors
/// On every rank, those of a GPU, and as all calls of a [`Communicator`](crate::Communicator).
pub(super) fn available(
    ranks: &Ranks,
    memory: Option<u64>,
    gpu: Option<&gustav_cuda::Device>,
) -> Result<u64> {
    let hosts = ranks.hosts()?;
    let on_host = (0..ranks.size()).filter(|q| !hosts.differ(*q, ranks.rank())).count();
    let of_gpu = gpu.map(|gpu| Ok::<_, Error>((gpu.uuid()?, gpu.memory()?.0 as u64))).transpose();
    let of_gpu = ranks.together(of_gpu)?;
    let mine = of_gpu.map_or([0; 2], |(uuid, _)| [uuid as usize, (uuid >> 64) as usize]);
    let sharing = gather_numbers(ranks, mine)?.iter().filter(|of| **of == mine).count();
    let divided = |bytes: u64, ranks: usize| bytes / ranks.max(1) as u64;
    let host = available_memory().map(|bytes| divided(bytes, on_host));
    let gpu = of_gpu.map(|(_, free)| divided(free, sharing));
    Ok(memory.or_else(|| host.into_iter().chain(gpu).min()).unwrap_or(u64::MAX))
}

/// Chooses the number of copies for `problem`: of the divisors of the number of ranks whose plans fit into the
/// `available` bytes of every rank, the one that sends the fewest bytes; the smallest of several. Collective.
///
/// # Errors
/// On every rank, as [`blocks::count`], and as all calls of a [`Communicator`](crate::Communicator).
pub(super) fn choose<T: DistScalar, I: Index, O: Index>(
    pattern: &DistPattern<I, O>,
    problem: &Problem,
    communication: Communication,
    available: u64,
) -> Result<Copies> {
    let ranks = pattern.ranks();
    // Copies of Aᵀ·B and of 16-bit values do not exist.
    let has_copies = !problem.transpose_a && !is_widened(T::DTYPE);
    let most = if has_copies { ranks.size() } else { 1 };
    let shape = ProductShape {
        columns: problem.columns,
        dtype: T::DTYPE,
        transpose_a: problem.transpose_a,
        communication,
    };
    let mut candidates = Vec::new();
    for copies in (1..=most).filter(|copies| ranks.size().is_multiple_of(*copies)) {
        let (counted, needed) = match copies {
            1 => {
                let counted = count(pattern, &pattern.local().view(), shape)?;
                (counted, counted.map_or(0, |[_, held]| held))
            }
            _ => of_team::<T, I, O>(pattern, copies, shape, available)?,
        };
        let fits = copies == 1 || counted.is_some() && needed <= available;
        let sent = counted.map_or(0, |[sent, _]| sent);
        let all = gather_numbers(ranks, [sent, needed, u64::from(fits)].map(|n| n as usize))?;
        candidates.push(CopiesCandidate {
            copies,
            sent_bytes: counted.map(|_| all.iter().map(|[sent, ..]| *sent as u64).sum()),
            memory_bytes: all.iter().map(|[_, needed, _]| *needed as u64).max().unwrap_or(0),
            fits: all.iter().all(|[.., fits]| *fits == 1),
        });
    }
    let possible = candidates.iter().filter(|candidate| candidate.fits);
    let counted = possible.filter_map(|c| Some((c.sent_bytes?, c.copies)));
    Ok(Copies { chosen: counted.min().map_or(1, |(_, copies)| copies), candidates })
}

/// `made`, or nothing where some rank lacks the memory for it: what a rank returns there because another failed is no
/// error of its own. Collective.
fn where_memory_allows<R>(ranks: &Ranks, made: Result<R>) -> Result<Option<R>> {
    const LACKING: u64 = 1;
    const FAILED: u64 = 2;
    let mut worst = [match made.as_ref().map_err(Error::kind) {
        Ok(_) | Err(Error::OtherRank { .. }) => 0,
        Err(Error::OutOfMemory { .. }) => LACKING,
        Err(_) => FAILED,
    }];
    ranks.communicator().all_reduce_max(&mut worst)?;
    match worst[0] {
        LACKING => Ok(None),
        _ => ranks.together(made).map(Some),
    }
}

/// Bytes that this rank sends in a product of `local`, its rows, and that its messages hold; nothing where some rank
/// lacks the memory to count them. Collective.
fn count<I: Index, O: Index, P: Index>(
    pattern: &DistPattern<I, O>,
    local: &PatternView<'_, I, P>,
    shape: ProductShape,
) -> Result<Option<[u64; 2]>> {
    let (ranks, columns) = (pattern.ranks(), pattern.columns());
    let choose = |r: usize, c: usize, e: &[(u32, u32)]| shape.choose(r, c, e);
    let counted = blocks::count(local, 0..local.nrows(), columns, ranks.rank(), &choose);
    let Some((_, others)) = where_memory_allows(ranks, counted)? else { return Ok(None) };
    let (mut sent, mut received) = (0, 0);
    let mut from_columns = vec![0; ranks.size()];
    for block in others {
        let counts = block.counts;
        let [columns, rows] =
            shape.block_bytes(counts.columns_here, counts.rows_there, counts.nonzeros_there);
        from_columns[block.peer] = columns;
        received += columns;
        sent += rows;
    }
    let mut requested = vec![0; ranks.size()];
    ranks.communicator().all_to_all(&from_columns, &mut requested)?;
    sent += requested.iter().sum::<u64>();
    // A block's other direction is received where the columns are: as many bytes as some rank sends there.
    Ok(Some([sent, sent + received]))
}

/// Of teams of `copies`: bytes that this rank sends and holds, as of [`count`], and bytes that its plan holds. The
/// part of a team is made only where every rank has `available` bytes for it. Collective.
fn of_team<T: DistScalar, I: Index, O: Index>(
    pattern: &DistPattern<I, O>,
    copies: usize,
    shape: ProductShape,
    available: u64,
) -> Result<(Option<[u64; 2]>, u64)> {
    let ranks = pattern.ranks();
    let row = shape.columns * size_of::<T>();
    let counts = TeamCounts::new(pattern, copies)?;
    let [sent, received] = counts.bytes(size_of::<T>(), row);
    // Of a nonzero: its value, its column in the pattern and in a product, and its position.
    let of_nonzero = size_of::<T>() + size_of::<I>() + size_of::<u32>() + size_of::<usize>();
    let of_part = counts.nonzeros * of_nonzero + counts.rows * (row + 2 * size_of::<u64>());
    let needed = (sent + received + of_part) as u64;
    let to_make = needed + counts.making() as u64;
    let mut lacking = [u64::from(to_make > available)];
    ranks.communicator().all_reduce_max(&mut lacking)?;
    if lacking[0] > 0 {
        return Ok((None, to_make));
    }
    let part = where_memory_allows(ranks, TeamPart::new(pattern, copies))?;
    let Some(part) = part else { return Ok((None, needed)) };
    let counted = count(pattern, &part.pattern.view(), shape)?;
    let counted = counted.map(|[more, held]| [sent as u64 + more, held]);
    Ok((counted, needed + counted.map_or(0, |[_, held]| held)))
}

#[cfg(test)]
mod tests {
    use gustav_core::{Error, Result};

    use super::where_memory_allows;
    use crate::Ranks;

    /// What each of three ranks gets where it gives this.
    fn on_ranks(give: impl Fn(usize) -> Result<usize> + Sync) -> Vec<Result<Option<usize>>> {
        let give = &give;
        std::thread::scope(|scope| {
            let ranks = Ranks::in_process(3).into_iter();
            let threads: Vec<_> = ranks
                .map(|r| scope.spawn(move || where_memory_allows(&r, give(r.rank()))))
                .collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        })
    }

    fn of_rank_1() -> Error {
        Error::OtherRank { rank: 1, reason: "out of memory".into() }
    }

    #[test]
    fn a_rank_without_memory_rules_a_number_out_on_all() {
        let lacking = || Err(Error::OutOfMemory { what: "arrays", needed: 8, available: None });
        // Others know of it already, or not.
        let known = on_ranks(|rank| if rank == 1 { lacking() } else { Err(of_rank_1()) });
        let unknown = on_ranks(|rank| if rank == 1 { lacking() } else { Ok(rank) });
        for found in known.into_iter().chain(unknown) {
            assert!(matches!(found, Ok(None)), "{found:?}");
        }
        let made = on_ranks(Ok);
        assert!(
            made.iter().enumerate().all(|(rank, found)| matches!(found, Ok(Some(r)) if *r == rank))
        );
    }

    #[test]
    fn other_errors_remain_errors_on_all() {
        let lost = || Err(Error::Device { action: "taking memory", reason: "it is lost".into() });
        for (rank, found) in on_ranks(|r| if r == 1 { lost() } else { Ok(r) }).iter().enumerate() {
            let right = match rank {
                1 => matches!(found, Err(Error::Device { .. })),
                _ => matches!(found, Err(Error::OtherRank { rank: 1, .. })),
            };
            assert!(right, "rank {rank}: {found:?}");
        }
    }
}
