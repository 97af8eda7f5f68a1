//! Compressed sparse blocks (Buluç et al. 2009; Aktulga et al. 2014): the entries of A by square
//! blocks, with 16-bit positions in the block. Products with A take strips of blocks that share
//! rows, products with Aᵀ strips of blocks that share columns; every strip belongs to one worker.

use std::ops::Range;

use gustav_core::buffer::{try_collect, try_vec};
use gustav_core::parallel::{self, Shared};
use gustav_core::{Buffer, Index, PatternView, Result};

/// The pattern of a matrix in blocks, and where its entries are in the CSR arrays.
#[derive(Clone, Debug)]
pub struct Csb<O: Index> {
    block: usize,
    /// By block row, then block column; only blocks with entries.
    blocks: Vec<Block>,
    /// Ends of the block rows in `blocks`.
    rows: Vec<usize>,
    /// The same blocks by block column, then block row.
    by_column: Vec<Block>,
    /// Ends of the block columns in `by_column`.
    columns: Vec<usize>,
    local_rows: Buffer<u16>,
    local_cols: Buffer<u16>,
    positions: Buffer<O>,
}

/// One block and its entries, in the order of the CSR arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// First row of the block in A.
    pub row: usize,
    /// First column of the block in A.
    pub col: usize,
    /// Where its entries are in [`Csb::local_rows`], [`Csb::local_cols`], [`Csb::positions`].
    pub entries: Range<usize>,
}

/// Largest number of rows and columns of a block: what 16 bits address.
pub const LARGEST_BLOCK: usize = 1 << 16;

// Strips along the longer side: enough for all threads.
const STRIPS: usize = 64;
const SMALLEST_BLOCK: usize = 256;

/// Rows and columns of a block for a matrix of this shape: a power of two.
pub fn default_block(rows: usize, cols: usize) -> usize {
    (rows.max(cols) / STRIPS).next_power_of_two().clamp(SMALLEST_BLOCK, LARGEST_BLOCK)
}

impl<O: Index> Csb<O> {
    /// The entries of `a` in blocks of `block` × `block` (clamped to 1 ..= [`LARGEST_BLOCK`]).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](gustav_core::Error::OutOfMemory).
    pub fn new<I: Index>(a: &PatternView<'_, I, O>, block: usize) -> Result<Self> {
        let block = block.clamp(1, LARGEST_BLOCK);
        let nnz = a.nnz();
        let (block_rows, block_cols) = (a.nrows().div_ceil(block), a.ncols().div_ceil(block));
        let mut local_rows = Buffer::<u16>::zeroed(nnz, "block rows")?;
        let mut local_cols = Buffer::<u16>::zeroed(nnz, "block columns")?;
        let mut positions = Buffer::<O>::zeroed(nnz, "block positions")?;

        let (to_rows, to_cols) = (Shared::new(&mut local_rows), Shared::new(&mut local_cols));
        let to_positions = Shared::new(&mut positions);
        let strip = |b: usize| -> Result<Vec<Block>> {
            let span = b * block..((b + 1) * block).min(a.nrows());
            let first = a.offsets()[span.start].to_usize();
            let mut next = Buffer::<usize>::zeroed(block_cols + 1, "block columns")?;
            for row in span.clone() {
                for c in a.row(row) {
                    next[c.to_usize() / block + 1] += 1;
                }
            }
            let filled = next[1..].iter().filter(|n| **n > 0).count();
            let mut blocks = try_vec(filled, "blocks")?;
            next[0] = first;
            for b in 0..block_cols {
                let (start, len) = (next[b], next[b + 1]);
                next[b + 1] += start;
                if len > 0 {
                    blocks.push(Block {
                        row: span.start,
                        col: b * block,
                        entries: start..start + len,
                    });
                }
            }
            for row in span.clone() {
                for (position, c) in a.row_range(row).zip(a.row(row)) {
                    let slot = &mut next[c.to_usize() / block];
                    // SAFETY: the positions of different strips are disjoint.
                    unsafe {
                        to_rows.put(*slot, (row - span.start) as u16);
                        to_cols.put(*slot, (c.to_usize() % block) as u16);
                        to_positions.put(*slot, O::truncate(position));
                    }
                    *slot += 1;
                }
            }
            Ok(blocks)
        };
        let strips = parallel::map(block_rows, strip);
        let filled = strips.into_iter().collect::<Result<Vec<Vec<Block>>>>()?;

        let mut rows = try_collect(filled.iter().map(Vec::len), "ends of block rows")?;
        let mut blocks = try_vec(rows.iter().sum(), "blocks")?;
        blocks.extend(filled.into_iter().flatten());
        let mut by_column = try_collect(blocks.iter().cloned(), "blocks by column")?;
        by_column.sort_unstable_by_key(|b: &Block| (b.col, b.row));
        let mut columns = try_vec(block_cols, "ends of block columns")?;
        columns.resize(block_cols, 0);
        for b in &blocks {
            columns[b.col / block] += 1;
        }
        for lengths in [&mut rows, &mut columns] {
            let mut end = 0;
            for n in lengths {
                end += *n;
                *n = end;
            }
        }
        Ok(Csb { block, blocks, rows, by_column, columns, local_rows, local_cols, positions })
    }

    /// Rows and columns of a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Number of strips: block rows, or block columns when A is `transposed`.
    pub fn strips(&self, transposed: bool) -> usize {
        self.side(transposed).1.len()
    }

    /// The blocks of strip `strip`: those of rows `strip * block()..` of the result.
    pub fn strip(&self, transposed: bool, strip: usize) -> &[Block] {
        let (blocks, ends) = self.side(transposed);
        let start = if strip == 0 { 0 } else { ends[strip - 1] };
        &blocks[start..ends[strip]]
    }

    /// Cuts the strips into `parts` groups of consecutive strips with about the same number of
    /// entries each: group `p` is `bounds[p]..bounds[p + 1]`.
    pub fn balanced(&self, transposed: bool, parts: usize) -> Vec<usize> {
        let strips = self.strips(transposed);
        let total = self.positions.len();
        let mut bounds = vec![0; parts + 1];
        let (mut seen, mut strip) = (0, 0);
        for (p, bound) in bounds.iter_mut().enumerate().skip(1) {
            let target = (total as u128 * p as u128 / parts as u128) as usize;
            while strip < strips {
                let len: usize =
                    self.strip(transposed, strip).iter().map(|b| b.entries.len()).sum();
                // A strip goes to the group that holds the larger part of it.
                if seen + len / 2 > target {
                    break;
                }
                (seen, strip) = (seen + len, strip + 1);
            }
            *bound = strip;
        }
        bounds[parts] = strips;
        bounds
    }

    /// Row of each entry within its block.
    pub fn local_rows(&self) -> &[u16] {
        &self.local_rows
    }

    /// Column of each entry within its block.
    pub fn local_cols(&self) -> &[u16] {
        &self.local_cols
    }

    /// Position of each entry in the CSR arrays.
    pub fn positions(&self) -> &[O] {
        &self.positions
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.local_rows)
            + size_of_val(&*self.local_cols)
            + size_of_val(&*self.positions)
            + 2 * size_of_val(&*self.blocks)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.columns)
    }

    fn side(&self, transposed: bool) -> (&[Block], &[usize]) {
        if transposed { (&self.by_column, &self.columns) } else { (&self.blocks, &self.rows) }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    fn scattered() -> Csr<f32> {
        // 70 × 45, row r holds columns (7 r + 3 k) mod 45, unsorted; every fifth row is empty.
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for r in 0..70u32 {
            if r % 5 != 0 {
                indices.extend((0..r % 13).map(|k| (7 * r + 3 * k) % 45));
            }
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0; indices.len()];
        Csr::new(70, 45, offsets, indices, values).unwrap()
    }

    #[test]
    fn row_and_column_strips_visit_every_entry_once() {
        let a = scattered();
        for block in [1, 8, 16, 64, 1 << 20] {
            let csb = Csb::new(&a.view().pattern(), block).unwrap();
            for transposed in [false, true] {
                let mut visits = vec![0; a.nnz()];
                for strip in 0..csb.strips(transposed) {
                    for b in csb.strip(transposed, strip) {
                        let first = if transposed { b.col } else { b.row };
                        assert_eq!(first, strip * csb.block());
                        for e in b.entries.clone() {
                            let position = csb.positions()[e] as usize;
                            let row = b.row + csb.local_rows()[e] as usize;
                            let col = b.col + csb.local_cols()[e] as usize;
                            assert!(a.view().row_range(row).contains(&position));
                            assert_eq!(a.indices()[position] as usize, col);
                            visits[position] += 1;
                        }
                    }
                }
                assert!(visits.iter().all(|&v| v == 1));
            }
        }
    }

    #[test]
    fn balanced_groups_cover_all_strips_in_order() {
        let a = scattered();
        let csb = Csb::new(&a.view().pattern(), 4).unwrap();
        for transposed in [false, true] {
            for parts in [1, 2, 5, 40] {
                let bounds = csb.balanced(transposed, parts);
                assert_eq!((bounds[0], bounds[parts]), (0, csb.strips(transposed)));
                assert!(bounds.is_sorted());
            }
        }
    }

    #[test]
    fn empty_matrices_have_no_blocks() {
        for (rows, cols) in [(0, 0), (0, 5), (5, 0), (5, 5)] {
            let a = Csr::<f32>::empty(rows, cols).unwrap();
            let csb = Csb::new(&a.view().pattern(), 4).unwrap();
            assert!((0..csb.strips(false)).all(|s| csb.strip(false, s).is_empty()));
            assert!((0..csb.strips(true)).all(|s| csb.strip(true, s).is_empty()));
        }
    }
}
