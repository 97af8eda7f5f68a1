//! The tile of `row-block`.

use gustav_core::{Problem, Result};

use gustav_plan::heuristics::cuda_spmm::Tuning;

use crate::product::check_config;
use crate::product::tile::{Limit, Tile, widest};

/// Tile of `row-block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Rows of a block.
    pub rows: u32,
    /// Values per load of a lane; 16 bytes at most.
    pub vector: u32,
    /// Lanes that share a row of B, and entries of a chunk.
    pub lanes: u32,
    /// Vectors of a row of B per lane.
    pub tiles: u32,
    /// Subgroups of lanes that share a block.
    pub subgroups: u32,
    /// Entries whose loads of B are in flight together.
    pub unroll: u32,
    /// Threads of a CTA.
    pub block: u32,
    /// Resident threads of a multiprocessor that a kernel's registers must allow.
    pub resident: u32,
}

impl Config {
    /// Blocks of a tuning for the columns of `problem`.
    pub(in crate::spmm) fn new(problem: &Problem, tuning: &Tuning) -> Self {
        let &Tuning { height: rows, subgroups, threads, .. } = tuning;
        let vector = widest(problem.dtype, problem.columns as u64);
        // The sums of high blocks take many registers.
        let bytes = problem.columns * problem.dtype.bytes();
        let most_double = if threads > 512 { 3 } else { 5 };
        // Sixteen lanes with three vectors leave fewer lanes idle than 32 with two.
        let third = problem.dtype.bytes() == 4 && rows < 4 && (512..=768).contains(&bytes);
        let tiles = match third {
            true => 3,
            false if bytes < 512 || rows == 4 => 1,
            false => 2,
        };
        let limit = Limit {
            lanes: 32 / subgroups,
            tiles,
            most_tiles: tiles.max(2),
            most_double,
            most_single: 8,
            alone: 0,
        };
        let Tile { lanes, tiles } = Tile::new(problem.dtype, vector, problem.columns, limit);
        Config {
            rows,
            vector,
            lanes,
            tiles,
            subgroups,
            unroll: 4.min(lanes),
            block: 64,
            // Three vectors take many registers, but 512 threads are still faster than 384.
            resident: if third && tiles == 3 && vector == 4 { 512 } else { threads },
        }
    }

    /// The same blocks and lanes with narrower vectors, for unaligned operands: there are more
    /// panels.
    pub(super) fn narrowed(self, vector: u32) -> Self {
        Config { vector: self.vector.min(vector), ..self }
    }

    pub(super) fn group(&self) -> u32 {
        self.lanes * self.subgroups
    }

    pub(super) fn tile(&self) -> Tile {
        Tile { lanes: self.lanes, tiles: self.tiles }
    }

    pub(super) fn panel(&self) -> u64 {
        self.tile().panel(self.vector)
    }

    pub(in crate::spmm) fn check(&self, problem: &Problem) -> Result<()> {
        let powers = [self.vector, self.lanes, self.subgroups, self.unroll];
        let fits = powers.iter().all(|p| p.is_power_of_two())
            && self.vector as usize * problem.dtype.bytes() <= 16
            && self.group() <= 32
            && (2..=4).contains(&self.rows)
            && (1..=8).contains(&self.tiles)
            && self.unroll <= self.lanes
            && (32..=1024).contains(&self.block)
            && self.block.is_multiple_of(32);
        check_config(
            "config of row-block",
            self,
            fits,
            "blocks of 2 to 4 rows, powers of two with lanes * subgroups <= 32 and unroll \
                       <= lanes, vectors of at most 16 bytes, at most 8 tiles, and whole warps of \
                       at most 1024 threads",
        )
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::{Csr, DType};
    use gustav_plan::Algorithm;

    use super::*;

    #[test]
    fn a_third_vector_per_lane_leaves_fewer_idle() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let shared = |dtype, columns, rows, subgroups| {
            let problem = Problem { dtype, ..Problem::spmm(&eye.view()).columns(columns) };
            let base = Tuning::of(Algorithm::RowBlock);
            let tuning = Tuning { height: rows, subgroups, threads: 384, ..base };
            let c = Config::new(&problem, &tuning);
            (c.lanes, c.tiles, c.resident)
        };
        let of = |dtype, columns, rows| shared(dtype, columns, rows, 1);
        assert_eq!(of(DType::F32, 128, 3), (16, 2, 384));
        assert_eq!(of(DType::F32, 132, 3), (16, 3, 512));
        assert_eq!(of(DType::F32, 132, 4).1, 2);
        assert_eq!(of(DType::F64, 66, 3).1, 2);
        assert_eq!(of(DType::F32, 1000, 3), (32, 2, 384));
        assert_eq!(shared(DType::F32, 132, 3, 2), (16, 3, 512));
    }
}
