//! The tile and the partitions of `even-shares`.

use gustav_core::{DType, Problem, Result};
use gustav_plan::heuristics::cuda_spmm::Tuning;

use crate::product::check_config;
use crate::product::tile::{Limit, Tile, widest};

/// Tile and partitions of `even-shares`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Values per load of a lane; 16 bytes at most.
    pub vector: u32,
    /// Lanes of a partition.
    pub lanes: u32,
    /// Vectors of a row of B per lane.
    pub tiles: u32,
    /// Nonzeros of A loaded together.
    pub chunk: u32,
    /// Row starts and nonzeros of a partition, a power of two from 16 to 4096.
    pub work: u32,
    /// Threads of a CTA.
    pub block: u32,
    /// Resident threads of a multiprocessor that a kernel's registers must allow.
    pub resident: u32,
}

impl Config {
    /// The configuration of a tuning, for the columns of `problem`.
    pub(in crate::spmm) fn new(problem: &Problem, tuning: &Tuning) -> Self {
        let vector = widest(problem.dtype, problem.columns as u64);
        let config = Config {
            vector,
            lanes: 0,
            tiles: 0,
            chunk: tuning.chunk,
            work: tuning.longest.unwrap_or(128),
            block: 64,
            resident: tuning.threads,
        };
        config.tiled(problem.dtype, vector, problem.columns, tuning.lanes, tuning.tiles)
    }

    /// The configurations to time for `problem`.
    pub(in crate::spmm) fn candidates(problem: &Problem) -> Vec<Self> {
        let vector = widest(problem.dtype, problem.columns as u64);
        let works = [32, 64, 128, 256, 512].into_iter();
        let of = |work| {
            let base =
                Config { vector, lanes: 0, tiles: 0, chunk: 4, work, block: 64, resident: 384 };
            [(4, 640), (8, 384)].map(|(chunk, resident)| {
                Config { chunk, resident, ..base }.tiled(
                    problem.dtype,
                    vector,
                    problem.columns,
                    32,
                    2,
                )
            })
        };
        works.flat_map(of).collect()
    }

    /// These partitions with vectors of `vector` values and at most `lanes` lanes.
    fn tiled(self, dtype: DType, vector: u32, columns: usize, lanes: u32, tiles: u32) -> Self {
        let limit = Limit { lanes, tiles, most_tiles: 4, most_double: 4, most_single: 8, alone: 0 };
        let Tile { lanes, tiles } = Tile::new(dtype, vector, columns, limit);
        Config { vector, lanes, tiles, ..self }
    }

    /// The same partitions with narrower vectors, for unaligned operands.
    pub(super) fn narrowed(self, dtype: DType, vector: u32, columns: usize) -> Self {
        if vector >= self.vector {
            return self;
        }
        self.tiled(dtype, vector, columns, 32, 2)
    }

    pub(super) fn tile(&self) -> Tile {
        Tile { lanes: self.lanes, tiles: self.tiles }
    }

    pub(super) fn panel(&self) -> u64 {
        self.tile().panel(self.vector)
    }

    pub(in crate::spmm) fn check(&self, problem: &Problem) -> Result<()> {
        let powers = [self.vector, self.lanes, self.chunk, self.work];
        let fits = powers.iter().all(|p| p.is_power_of_two())
            && self.vector as usize * problem.dtype.bytes() <= 16
            && self.lanes <= 32
            && (1..=8).contains(&self.tiles)
            && self.chunk <= 8
            && (16..=4096).contains(&self.work)
            && (32..=1024).contains(&self.block)
            && self.block.is_multiple_of(32);
        check_config(
            "config of even-shares",
            self,
            fits,
            "powers of two with at most 32 lanes, vectors of at most 16 bytes, at most \
                       8 tiles, a chunk of at most 8, partitions of 16 to 4096 items, and whole warps \
                       of at most 1024 threads",
        )
    }
}
