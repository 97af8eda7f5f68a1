//! Ghost rows: rows of another rank's operand that a rank needs a copy of.

use gustav_core::buffer::try_vec;
use gustav_core::{Result, with_pattern};

use crate::any_pattern::AnyDistPattern;
use crate::block_description::{RemoteBlock, describe};
use crate::blocks::Blocks;
use crate::exchange::all_to_all;

/// Which ghost rows a rank needs, and which of its rows others need.
pub struct Ghosts {
    /// The rank's nonzeros; those in blocks of other ranks are all multiplied here, with ghost rows.
    pub blocks: Blocks,
    /// The rows of this rank that each rank needs, counted from its first.
    pub requested: Vec<Vec<u32>>,
}

impl Ghosts {
    /// Finds and exchanges them for products at the nonzeros of `pattern`, of the rows that are spread as its columns.
    /// Collective.
    ///
    /// # Errors
    /// On every rank, as [`Blocks::new`], and as all calls of a [`Communicator`](crate::Communicator).
    pub(crate) fn new(pattern: &AnyDistPattern<'_>) -> Result<Self> {
        let (ranks, rank) = (pattern.ranks, pattern.ranks.rank());
        let all_here = |_: usize, columns: usize, _: &[(u32, u32)]| vec![true; columns];
        let blocks = with_pattern!(&pattern.local, |local| {
            let local = local.view();
            Blocks::new(&local, 0..local.nrows(), pattern.columns, rank, &all_here)
        });
        let described = blocks.and_then(|blocks| {
            let mut words: Vec<Vec<u32>> = vec![Vec::new(); ranks.size()];
            for block in &blocks.others {
                words[block.peer] = describe(block)?;
            }
            Ok((blocks, words))
        });
        let (blocks, words) = ranks.together(described)?;
        let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
        let words = all_to_all(ranks, &words)?;
        let columns = pattern.columns.count(rank);
        let read = |(peer, words): (usize, &Vec<u32>)| match words.is_empty() {
            true => Ok(Vec::new()),
            false => RemoteBlock::read(words, (rank, peer), columns).map(|remote| remote.columns),
        };
        let requested = words.iter().enumerate().map(read).collect::<Result<_>>();
        Ok(Ghosts { blocks, requested: ranks.together(requested)? })
    }

    /// The number of ghost rows.
    pub fn count(&self) -> usize {
        self.blocks.others.iter().map(|block| block.columns.len()).sum()
    }

    /// The number of the first row that rank `q` has, among ghost rows of ranks before `rank`, the `own` rows of that,
    /// which is this one, and ghost rows of ranks after it.
    pub fn first_row(&self, q: usize, rank: usize, own: usize) -> usize {
        let before = self.blocks.others.iter().filter(|block| block.peer < q);
        let ghosts = before.map(|block| block.columns.len()).sum::<usize>();
        ghosts + if q > rank { own } else { 0 }
    }

    /// The row that each of the `nnz` nonzeros of this rank, `rank`, needs, where rows of a rank begin at `first`.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn rows_of_nonzeros(
        &self,
        nnz: usize,
        rank: usize,
        first: impl Fn(usize) -> usize,
    ) -> Result<Vec<u32>> {
        let mut rows = try_vec::<u32>(nnz, "ghost rows of nonzeros")?;
        rows.resize(nnz, 0);
        let of_own = first(rank) as u32;
        let own = self.blocks.own.columns.iter().zip(&self.blocks.own.positions);
        own.for_each(|(column, at)| rows[*at] = of_own + column);
        for block in &self.blocks.others {
            let first = first(block.peer) as u32;
            for (column, at) in block.here.columns.iter().zip(&block.here.positions) {
                rows[*at] = first + block.columns.partition_point(|k| k < column) as u32;
            }
        }
        Ok(rows)
    }
}
