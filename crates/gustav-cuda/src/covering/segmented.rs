//! Kernels of `segmented`, of the covering set.

use gustav_core::{DType, Extremum, IndexType, Semiring};

use super::types;
use crate::jit::Request;
use crate::product::operands::EXTREMUM;
use crate::spmm::group::Types;
use crate::spmm::segmented::{Config, Reduction, Variant, WITH_WINNERS};

/// Max and min, without winners and with winners of both types, with the load widths of `segmented`; and a gradient.
pub(super) fn extrema(dtype: DType, number: usize) -> [Request; 4] {
    let plain = Semiring::PlusTimes;
    let copies = [(16, 1, 1, 2), (8, 4, 1, 1), (32, 1, 1, 0)][number % 3];
    let (narrow, wide) = (Some(IndexType::U32), Some(IndexType::U64));
    let either = if number.is_multiple_of(2) { narrow } else { wide };
    [(None, false), (narrow, false), (wide, false), (either, true)].map(|(winner, filtered)| {
        let number = number + usize::from(winner.is_some());
        let of = of_segments(dtype, plain, number);
        let (lanes, tiles, subgroups, stages) = match number % 2 {
            0 => [(8, 2, 4, 0), (1, 2, 32, 0), (16, 2, 2, 0)][number % 3],
            _ => copies,
        };
        let stages = if filtered { 0 } else { stages };
        let several = !filtered && number % 4 == 3 && stages == 0 && subgroups == 1;
        let config = Config {
            lanes,
            tiles,
            subgroups,
            stages,
            segments_per_group: if several { 2 } else { 1 },
            at_once: false,
            reduction: Reduction::FixUp,
            resident: if winner.is_some() { WITH_WINNERS } else { 640 },
            ..of
        };
        let types = types(dtype, plain, tiles, number);
        let extremum = (!filtered).then_some(Extremum::ALL[number / 2 % 2]);
        let steps = if filtered { 0 } else { EXTREMUM };
        let types = Types { steps, extremum, winner, filtered, ..types };
        Variant { config, types, ordered: false }.request()
    })
}

/// Lanes, loads and pipeline stages of all kinds, one segment per group.
pub(super) fn segmented(dtype: DType, semiring: Semiring, number: usize) -> Request {
    let (lanes, tiles, subgroups) =
        [(8, 1, 1), (32, 2, 1), (4, 3, 4), (1, 1, 32), (16, 4, 2)][number % 5];
    let config = of_segments(dtype, semiring, number);
    let config = Config {
        lanes,
        tiles,
        subgroups,
        chunk: [4, 8, 2][number % 3],
        stages: [0, 2, 0, 1][number % 4],
        prefetch_a: number & 1 == 1,
        ..config
    };
    segments(dtype, semiring, number, config)
}

/// Few lanes that each copy several vectors of a row of B, as the rules choose.
pub(super) fn copies(dtype: DType, semiring: Semiring, number: usize) -> Request {
    let (lanes, tiles, stages, chunk, resident) =
        [(8, 4, 1, 2, 1280), (8, 3, 2, 1, 1536), (16, 4, 1, 2, 1024)][number % 3];
    let config = of_segments(dtype, semiring, number);
    let vector = 16 / dtype.bytes() as u32;
    let config = Config { vector, lanes, tiles, chunk, stages, block: 64, resident, ..config };
    segments(dtype, semiring, number, config)
}

/// A CTA per segment, of as many subgroups as fill its warps.
pub(super) fn cta_per_segment(dtype: DType, semiring: Semiring, number: usize) -> Request {
    let (lanes, tiles) = [(8, 1), (32, 2), (4, 3), (1, 1), (16, 1)][number % 5];
    let warps = [8, 4, 2][number % 3];
    let config = of_segments(dtype, semiring, number);
    let config = Config {
        lanes,
        tiles,
        subgroups: 32 / lanes,
        warps,
        block: 32 * warps,
        chunk: [4, 2][number % 2],
        prefetch_a: number & 2 == 2,
        ..config
    };
    segments(dtype, semiring, number, config)
}

/// Several segments per group, one after another and at once.
pub(super) fn several_segments(dtype: DType, semiring: Semiring, number: usize) -> Request {
    let (lanes, tiles, subgroups) =
        [(16, 2, 1), (32, 1, 1), (8, 2, 4), (1, 3, 1), (4, 1, 8)][number % 5];
    let at_once = tiles < 3 && number / 2 % 2 == 1;
    let config = of_segments(dtype, semiring, number);
    let config = Config {
        lanes,
        tiles,
        subgroups,
        chunk: if at_once { [1, 2][number / 4 % 2] } else { [4, 3, 2][number % 3] },
        segments_per_group: [4, 2][number % 2],
        at_once,
        prefetch_a: number % 7 == 3,
        prefetch_b: !at_once && number & 1 == 1,
        window: 64,
        resident: if tiles == 1 { 1024 } else { 768 },
        ..config
    };
    segments(dtype, semiring, number, config)
}

/// The common configuration of kernels with one segment per group and with several.
pub(super) fn of_segments(dtype: DType, semiring: Semiring, number: usize) -> Config {
    let bit = |k: usize| number >> k & 1 == 1;
    let atomic = semiring == Semiring::PlusTimes && matches!(dtype, DType::F32 | DType::F64);
    Config {
        vector: [16 / dtype.bytes() as u32, 1, 2][number % 3],
        lanes: 1,
        tiles: 1,
        subgroups: 1,
        warps: 1,
        chunk: 4,
        segments_per_group: 1,
        at_once: false,
        prefetch_b: false,
        stages: 0,
        prefetch_a: false,
        longest: bit(1).then_some(64),
        first: 32,
        window: 1024,
        reduction: if atomic && bit(2) { Reduction::Atomic } else { Reduction::FixUp },
        block: 128,
        resident: 384,
    }
}

fn segments(dtype: DType, semiring: Semiring, number: usize, config: Config) -> Request {
    let ordered = config.longest.is_none() && number & 1 == 1;
    Variant { config, types: types(dtype, semiring, config.tiles, number), ordered }.request()
}
