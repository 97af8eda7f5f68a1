//! The number of copies by counted bytes and memory, without making a plan of any but the chosen one.

use std::fmt::Display;

use gustav_core::buffer::available_memory;
use gustav_core::{Index, PatternView, Problem, Result};

use super::team::TeamPart;
use crate::blocks;
use crate::local::{DistScalar, is_widened};
use crate::matrix::gather_numbers;
use crate::{Communication, DistPattern, ProductShape};

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
    /// Bytes that all ranks send in one execution, each row of B directly to the ranks that need it.
    pub sent_bytes: u64,
    /// Bytes that a plan holds on the rank that needs most, counted for messages, values, the pattern of the part, and
    /// sums; of one copy, for messages.
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
            write!(f, "{separator} {copies}: {sent_bytes} sent, {memory_bytes} held{memory}")?;
        }
        Ok(())
    }
}

/// Chooses the number of copies for `problem`: of the divisors of the number of ranks whose plans fit into `memory` bytes
/// on every rank, or where that is `None` into what its host has available divided by the host's ranks, the one that
/// sends the fewest bytes; the smallest of several. Collective.
///
/// # Errors
/// On every rank, as [`blocks::count`], and as all calls of a [`Communicator`](crate::Communicator).
pub(super) fn choose<T: DistScalar, I: Index, O: Index>(
    pattern: &DistPattern<I, O>,
    problem: &Problem,
    communication: Communication,
    memory: Option<u64>,
) -> Result<Copies> {
    let ranks = pattern.ranks();
    let hosts = ranks.hosts()?;
    let sharing = (0..ranks.size()).filter(|q| !hosts.differ(*q, ranks.rank())).count().max(1);
    let available = memory.or_else(|| available_memory().map(|bytes| bytes / sharing as u64));
    let available = available.unwrap_or(u64::MAX);
    // Copies of Aᵀ·B and of 16-bit values do not exist.
    let has_copies = !problem.transpose_a && !is_widened(T::DTYPE);
    let most = if has_copies { ranks.size() } else { 1 };
    let mut candidates = Vec::new();
    for copies in (1..=most).filter(|copies| ranks.size().is_multiple_of(*copies)) {
        let shape = ProductShape {
            columns: problem.columns,
            dtype: T::DTYPE,
            transpose_a: problem.transpose_a,
            communication,
        };
        let [sent, needed] = match copies {
            1 => count(pattern, &pattern.local().view(), shape)?,
            _ => {
                let part = TeamPart::new(pattern, copies)?;
                let [sent, needed] = count(pattern, &part.pattern.view(), shape)?;
                let [more_sent, more_needed] = of_team::<T, I>(&part, problem.columns);
                [sent + more_sent, needed + more_needed]
            }
        };
        let fits = copies == 1 || needed <= available;
        let all = gather_numbers(ranks, [sent, needed, u64::from(fits)].map(|n| n as usize))?;
        candidates.push(CopiesCandidate {
            copies,
            sent_bytes: all.iter().map(|[sent, ..]| *sent as u64).sum(),
            memory_bytes: all.iter().map(|[_, needed, _]| *needed as u64).max().unwrap_or(0),
            fits: all.iter().all(|[.., fits]| *fits == 1),
        });
    }
    let possible = candidates.iter().filter(|candidate| candidate.fits);
    let best = possible.min_by_key(|candidate| (candidate.sent_bytes, candidate.copies));
    Ok(Copies { chosen: best.map_or(1, |candidate| candidate.copies), candidates })
}

/// Bytes that this rank sends in a product of `local`, its rows, and that its messages hold. Collective.
fn count<I: Index, O: Index, P: Index>(
    pattern: &DistPattern<I, O>,
    local: &PatternView<'_, I, P>,
    shape: ProductShape,
) -> Result<[u64; 2]> {
    let (ranks, columns) = (pattern.ranks(), pattern.columns());
    let choose = |r: usize, c: usize, e: &[(u32, u32)]| shape.choose(r, c, e);
    let counted = blocks::count(local, 0..local.nrows(), columns, ranks.rank(), &choose);
    let (_, others) = ranks.together(counted)?;
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
    Ok([sent, sent + received])
}

/// Bytes that a member sends within its team, and that the plan of the team holds on it beside the messages of its part.
fn of_team<T: DistScalar, I: Index>(part: &TeamPart<I>, n: usize) -> [u64; 2] {
    let row = n * size_of::<T>();
    let bytes = |[values, rows]: [usize; 2]| values * size_of::<T>() + rows * row;
    let (mut sent, mut received) = (0, 0);
    for member in &part.members {
        let (of_sent, of_received) = member.counts();
        sent += bytes(of_sent);
        received += bytes(of_received);
    }
    let (rows, nonzeros) = (part.pattern.nrows(), part.pattern.nnz());
    // Of a nonzero: its value, its column in the pattern and in a product, and its position.
    let of_nonzero = size_of::<T>() + size_of::<I>() + size_of::<u32>() + size_of::<usize>();
    let held = nonzeros * of_nonzero + rows * (row + 2 * size_of::<u64>());
    [sent as u64, (sent + received + held) as u64]
}
