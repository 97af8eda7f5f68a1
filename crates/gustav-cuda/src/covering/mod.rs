//! Kernel instantiations compiled without a device. A covering set: it has every kernel file;
//! kernels for any type and semiring are compiled for each value type with each semiring or, where
//! stated below, with two of them; targets, index types and tile sizes alternate.

mod segmented;
mod tests;

use gustav_core::{DType, IndexType, Layout, Semiring};

use crate::jit::Request;
use crate::launch::probe;
use crate::matrix::layout::Transpose;
use crate::matrix::{Entries, columns, compress, gather, rows, scan, transpose, validate};
use crate::papers::flattened::{MergePath, NonzeroSplit};
use crate::papers::spmm::padded::Format;
use crate::papers::spmm::{
    dcsr, ell_r, flattened, heavy_light, output_stationary, row_split, sell_p, stationary,
    thread_row,
};
use crate::schedule::{
    Cutting, RowBlocks, SegmentNonzeros, Segments, Target, TileNonzeros, items, lengths, partitions,
};
use crate::spgemm::binned::{Limits, Source};
use crate::spgemm::dense_naive::Zeros;
use crate::spmm::group::Types;
use crate::spmm::segmented::Reduction;
use crate::spmm::{b_stationary, dense, even_shares, row_block, tensor, winner_gradients};
use crate::{attention, sddmm, softmax, spgemm, spmv};
use segmented::{copies, cta_per_segment, extrema, of_segments, several_segments};

const TYPES: [DType; 6] = [DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I32, DType::I64];

/// An epilogue for every second kernel that supports one.
fn steps(dtype: DType, semiring: Semiring, number: usize) -> u8 {
    let may = semiring == Semiring::PlusTimes && !dtype.is_integer() && number.is_multiple_of(2);
    if may { (number / 2 % 8) as u8 } else { 0 }
}

/// Loads of X and Y of 16 bytes or less, for depths of one panel or several.
fn lanes(dtype: DType, number: usize) -> sddmm::lanes::Lanes {
    let bit = |k: usize| number >> k & 1 == 1;
    let (lanes, tiles) = [(8, 1), (32, 2), (1, 1), (16, 1)][number % 4];
    sddmm::lanes::Lanes {
        vector: [16 / dtype.bytes() as u32, 1][number % 2],
        lanes,
        tiles,
        whole: whole(tiles, number),
        one_panel: !bit(1),
        stride: [IndexType::U32, IndexType::U64][number / 2 % 2],
    }
}

/// SDDMM, each request with the number that selects its target.
fn sddmm(dtype: DType, number: usize) -> [(usize, Request); 6] {
    let bit = |k: usize| number >> k & 1 == 1;
    let index = |wide| if wide { IndexType::U64 } else { IndexType::U32 };
    let (chunk, batches) = [(8, 1), (4, 2), (1, 1), (2, 4)][number % 4];
    let batch = [32, 8, 16][number % 3];
    let config = sddmm::nonzero_split::Config { chunk, batch, batches, block: 128, resident: 640 };
    let types = |position| sddmm::nonzeros::Types {
        dtype,
        index: index(bit(0)),
        row: index(bit(2)),
        position,
    };
    let lanes = lanes(dtype, number);
    let split = sddmm::nonzero_split::Variant {
        config,
        types: types(IndexType::U64),
        offset: index(bit(1)),
        lanes,
        batched: number % 4 == 2,
    };
    let stationary = sddmm::b_stationary::Variant {
        config: sddmm::b_stationary::Config { tile_kib: 128, chunk, block: 640 },
        types: types(index(bit(1))),
        lanes,
    };
    let listed = SegmentNonzeros::request(index(bit(0)), index(bit(1)), index(bit(2)));
    let (rows, parts) = [(2, 1), (3, 4), (4, 2)][number % 3];
    let unroll = [4, 2][number % 2];
    let blocks = sddmm::row_block::Variant {
        config: sddmm::row_block::Config { rows, parts, unroll, block: 128, resident: 512 },
        dtype,
        offset: index(bit(1)),
        word: index(bit(0)),
        position: index(bit(2)),
        lanes,
    };
    let shape = [(64, 128), (128, 256)][number / 2 % 2];
    let tensor = matches!(dtype, DType::F16 | DType::Bf16) && !bit(2);
    let tiles = sddmm::dense_tiles::Variant {
        config: sddmm::dense_tiles::Config {
            rows: shape.0,
            columns: 64,
            block: shape.1,
            stages: 2 + number as u32 % 2,
            resident: 512,
        },
        dtype,
        position: index(bit(0)),
        vector: [16 / dtype.bytes() as u32, 1][number % 2],
        tensor,
    };
    let lists = TileNonzeros::request(index(bit(0)), index(bit(1)), index(bit(2)), shape.0, 64);
    // The tensor cores of the first target do not support bf16.
    let later = if tensor && dtype == DType::Bf16 { 1 + number % 4 } else { number };
    [
        (number, split.request()),
        (number + 1, blocks.request()),
        (number + 2, stationary.request()),
        (later, tiles.request()),
        (number, lists),
        (number + 1, listed),
    ]
}

/// All passes of attention, and softmax.
fn attention(dtype: DType, number: usize) -> [Request; 2] {
    use attention::segmented::{Config, Pass, Variant};
    let bit = |k: usize| number >> k & 1 == 1;
    let index = |wide| if wide { IndexType::U64 } else { IndexType::U32 };
    let pass = [Pass::Forward, Pass::Rows, Pass::Columns][number % 3];
    let vector = [16 / dtype.bytes() as u32, 1][number % 2];
    let (chunk, lanes, left, right) =
        [(2, 8, 2, 2), (4, 16, 1, 1), (4, 32, 1, 2), (8, 16, 1, 1), (2, 32, 8, 8)][number % 5];
    let config = Config { chunk, tiles: 2, block: 128, longest: 128 };
    let (offset, position) = (index(bit(1)), index(bit(2)));
    let index = index(bit(0));
    let biased = bit(1) && pass != Pass::Columns;
    let of_rows = Variant {
        config,
        pass,
        dtype,
        index,
        offset,
        position,
        vector,
        lanes,
        left,
        right,
        biased,
    };
    let config = softmax::segmented::Config { lanes, block: 128, longest: 1024 };
    let of_values = softmax::segmented::Variant { config, gradient: bit(0), dtype, position };
    [of_rows.request(), of_values.request()]
}

/// Number of full tiles: all, all but one, or none.
fn whole(tiles: u32, number: usize) -> u32 {
    if number >> 2 & 1 == 1 { tiles } else { (tiles - 1) * (number & 1) as u32 }
}

fn types(dtype: DType, semiring: Semiring, tiles: u32, number: usize) -> Types {
    let bit = |k: usize| number >> k & 1 == 1;
    let index = |wide| if wide { IndexType::U64 } else { IndexType::U32 };
    let sums = if dtype.bytes() == 2 { DType::F32 } else { dtype };
    Types {
        dtype,
        out: if bit(3) { sums } else { dtype },
        index: index(bit(2)),
        offset: index(bit(1)),
        semiring,
        stride: index(bit(4)),
        position: index(bit(3)),
        whole: whole(tiles, number),
        wide_a: !bit(0),
        steps: steps(dtype, semiring, number),
        batched: number % 5 == 3,
        extremum: None,
        winner: None,
        filtered: false,
    }
}

fn even_shares(dtype: DType, semiring: Semiring, number: usize) -> Request {
    let widths = [16 / dtype.bytes() as u32, 1, 2];
    let (lanes, tiles) = [(8, 1), (32, 2), (4, 3), (1, 1), (16, 4)][number % 5];
    let config = even_shares::Config {
        vector: widths[number % 3],
        lanes,
        tiles,
        chunk: [4, 8, 2][number % 3],
        work: [32, 256][number % 2],
        block: 64,
        resident: 384,
    };
    even_shares::Variant { config, types: types(dtype, semiring, tiles, number) }.request()
}

fn b_stationary(dtype: DType, semiring: Semiring, number: usize) -> Request {
    let (lanes, tiles) = [(16, 2), (8, 1), (32, 3), (8, 3), (1, 4), (4, 1)][number % 6];
    let config = of_segments(dtype, semiring, number);
    let config = b_stationary::Config {
        vector: config.vector,
        lanes,
        tiles,
        stages: 1 + number as u32 % 2,
        longest: 64,
        reduction: config.reduction,
        block: 1024,
    };
    let target = match config.reduction {
        Reduction::Atomic => [Target::Row, Target::CutRow][number % 2],
        Reduction::FixUp => Target::Slot,
    };
    b_stationary::Variant { config, types: types(dtype, semiring, tiles, number), target }.request()
}

fn row_block(dtype: DType, semiring: Semiring, number: usize) -> [Request; 2] {
    let bit = |k: usize| number >> k & 1 == 1;
    let index = |wide| if wide { IndexType::U64 } else { IndexType::U32 };
    let (lanes, tiles, subgroups) = [(8, 1, 1), (32, 2, 1), (4, 1, 4), (16, 2, 2)][number % 4];
    let (index, offset, word) = (index(bit(2)), index(bit(1)), index(bit(0)));
    let config = row_block::Config {
        rows: [2, 3, 4][number % 3],
        vector: [16 / dtype.bytes() as u32, 1, 2][number % 3],
        lanes,
        tiles,
        subgroups,
        unroll: [4, 2, 1][number % 3],
        block: 64,
        resident: 384,
    };
    let sums = if dtype.bytes() == 2 { DType::F32 } else { dtype };
    let variant = row_block::Variant {
        config,
        types: row_block::BlockTypes {
            dtype,
            out: if bit(3) { sums } else { dtype },
            index,
            offset,
            word,
            position: offset,
            stride: index,
            steps: steps(dtype, semiring, number),
        },
        semiring,
        whole: whole(tiles, number),
    };
    let blocks = RowBlocks::request(index, offset, word, offset, config.rows, lanes);
    [variant.request(), blocks]
}

fn binned(file: Source, dtype: DType, semiring: Semiring, number: usize) -> Request {
    let index = |k: usize| [IndexType::U32, IndexType::U64][number >> k & 1];
    let config = [
        spgemm::binned::Config::default(),
        spgemm::binned::Config { wide: 128, huge: 1024, dense: 128, workspace: None },
    ][number / 2 % 2];
    let limits = Limits { shared: [47 << 10, 226 << 10][number % 2], sum: dtype.bytes().max(4) };
    let sums = if dtype.bytes() == 2 { DType::F32 } else { dtype };
    let out = [dtype, sums][number % 2];
    let (index, offset) = (index(0), index(1));
    let types = spgemm::types::Types { dtype, out, index, offset, semiring };
    spgemm::binned::request(file, types, config, limits)
}

/// Kernels of padded formats, each with the number that selects its target.
fn padded() -> Vec<(usize, Request)> {
    let mut requests = Vec::new();
    for (i, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
        let vector = 1 + i as u32;
        let slices = sell_p::Config { rows: 8 >> i, ..sell_p::Config::default() };
        requests.push((i, sell_p::SellP::request(dtype, vector, slices)));
        requests.push((i + 2, ell_r::EllR::request(dtype, 2, ell_r::Config::default())));
        requests.push((i + 3, heavy_light::request(dtype, heavy_light::Config::default())));
    }
    let wide = [IndexType::U32, IndexType::U64];
    for (i, dtype) in [DType::F32, DType::F64, DType::F16, DType::Bf16].into_iter().enumerate() {
        requests.push((i, dense::request(dtype, wide[i % 2], wide[i / 2], i % 2 == 0)));
    }
    for (i, dtype) in [DType::F16, DType::Bf16, DType::F32, DType::F64].into_iter().enumerate() {
        for (j, subgroups) in [1, 2, 4].into_iter().enumerate() {
            let panel = [64, 16, 32][(i + j) % 3].min(256 / dtype.bytes() as u32);
            let variant = tensor::Variant {
                config: tensor::Config { panel, warps: 4, subgroups, resident: 384 },
                types: row_block::BlockTypes {
                    dtype,
                    out: if j == 1 && dtype != DType::F64 { DType::F32 } else { dtype },
                    index: wide[j % 2],
                    offset: wide[j % 2],
                    word: wide[i % 2],
                    position: wide[j % 2],
                    stride: wide[(i + j) % 2],
                    steps: steps(dtype, Semiring::PlusTimes, 2 * (3 * i + j)),
                },
                vector: [16 / dtype.bytes() as u32, 1, 2][j].min(panel / 8),
            };
            // Only f16 is compiled for the first target again.
            let number = if i == 0 { j } else { 1 + (i + j) % 4 };
            requests.push((number, variant.request()));
            requests.push((number, variant.blocks()));
        }
    }
    for (i, index) in wide.into_iter().enumerate() {
        let other = wide[1 - i];
        requests.push((i + 2, Cutting::IN_L2.request(index, other, true)));
        let target = [Target::Slot, Target::Row][i];
        let by_class = Cutting { most: 64, by_class: true, target };
        requests.push((i + 3, by_class.request(index, other, i == 0)));
        requests.push((i, by_class.request(other, index, i == 1)));
    }
    requests
}

/// The set; each request with the number that selects its target.
fn requests() -> Vec<(usize, Request)> {
    let mut requests = Vec::new();
    for (i, dtype) in TYPES.into_iter().enumerate() {
        for (j, semiring) in Semiring::ALL.into_iter().enumerate() {
            // The third group flips the choices of the first two.
            requests.push((i + j, segmented::segmented(dtype, semiring, 5 * i + 7 * j)));
            requests.push((i + j + 1, several_segments(dtype, semiring, 3 * i + 4 * j)));
            requests.push((i + j + 2, cta_per_segment(dtype, semiring, 2 * i + 3 * j)));
            requests.push((i + j + 1, even_shares(dtype, semiring, 5 * i + 7 * j)));
            requests.push((i + j + 2, b_stationary(dtype, semiring, 3 * i + 5 * j)));
            for request in row_block(dtype, semiring, 5 * i + 7 * j) {
                requests.push((i + j + 1, request));
            }
            if semiring == Semiring::PlusTimes {
                requests.push((i + j + 2, segmented::segmented(dtype, semiring, 5 * i + 6)));
                requests.push((i + j, copies(dtype, semiring, i)));
                requests.push((2 + i % 3, b_stationary(dtype, semiring, 3 * i)));
                requests.push((2, b_stationary(dtype, semiring, 4 + i % 2)));
                requests.push((i + j + 1, copies(dtype, semiring, i + 1)));
            }
        }
        for (j, request) in (0..4).flat_map(|j| extrema(dtype, i + j).map(|r| (j, r))) {
            requests.push((i + j, request));
        }
        for (j, winner) in [IndexType::U32, IndexType::U64].into_iter().enumerate() {
            let index = |k: usize| [IndexType::U32, IndexType::U64][k % 2];
            let (types, lanes) = ((index(i), index(i / 2)), [32, 1, 4][(i + j) % 3]);
            let request = winner_gradients::request(dtype, winner, types, lanes, j == 1);
            requests.push((i + j, request));
        }
        let sums = if dtype.bytes() == 2 { DType::F32 } else { dtype };
        requests.push((i, Transpose::request(dtype, dtype, Semiring::PlusTimes, 0)));
        requests.push((i + 1, Transpose::request(sums, dtype, Semiring::MinPlus, 0)));
        if !dtype.is_integer() {
            requests.push((i + 2, Transpose::request(sums, dtype, Semiring::PlusTimes, 6)));
        }
    }
    for (i, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
        for (j, variant) in row_split::Variant::ALL.into_iter().enumerate() {
            let config = row_split::Config { variant, ..row_split::Config::default() };
            requests.push((i + j, row_split::request(dtype, Layout::RowMajor, config)));
            requests.push((i + j + 1, row_split::request(dtype, Layout::ColumnMajor, config)));
        }
        requests.push((i + 1, thread_row::request(dtype, thread_row::Config::default())));
        let strips = stationary::Config { warps: 32, width: 1 + 3 * i as u32, fill: false };
        requests
            .push((i + 2, stationary::request(output_stationary::source(), dtype, strips, i == 0)));
        let ordered = stationary::request(output_stationary::source(), dtype, strips, i == 1);
        requests.push((i + 3, ordered));
        requests.push((i + 4, stationary::request(dcsr::source(), dtype, strips, false)));
        let paper = flattened::Config::default();
        let narrow = flattened::Config { items: 8, columns: 4, ..paper };
        requests.push((i + 2, flattened::request::<NonzeroSplit>(dtype, paper)));
        requests.push((i + 3, flattened::request::<MergePath>(dtype, paper)));
        requests.push((i + 4, flattened::request::<NonzeroSplit>(dtype, narrow)));
    }
    requests.push((0, gather::request(DType::F32, IndexType::U32, true)));
    requests.push((1, gather::request(DType::F64, IndexType::U64, false)));
    for (i, dtype) in TYPES.into_iter().enumerate() {
        for (j, semiring) in Semiring::ALL.into_iter().enumerate() {
            requests.push((i + j, rows::request(dtype, semiring)));
            let config = spmv::row_split::Config { lanes: 1 << ((i + j) % 6), threads: 128 };
            let index = |number: usize| [IndexType::U32, IndexType::U64][number % 2];
            let types = (index(i + j), index(j));
            if j == i % 6 || semiring == Semiring::PlusTimes {
                let request = spmv::row_split::request(dtype, types, semiring, config);
                requests.push((i + 2 * j, request));
                let loads_in_flight = [1, 2, 4, 8][(i + j) % 4];
                let (lanes, part) = (config.lanes, [256, 1024][j % 2]);
                let longest = 16 * lanes;
                let config = spmv::segmented::InOrder {
                    lanes,
                    loads_in_flight,
                    threads: 128,
                    longest,
                    part,
                };
                let parts = (i + j) % 3 != 0;
                let request =
                    spmv::segmented::in_order::request(dtype, types, semiring, config, parts);
                requests.push((i + 2 * j + 1, request));
                let items = [8, 4, 16][(i + j) % 3];
                let (threads, resident) = ([256, 128][i % 2], 8192 / items);
                let config = spmv::even_shares::Config { items, threads, resident };
                let variant = spmv::even_shares::Variant {
                    config,
                    dtype,
                    index: types.0,
                    offset: types.1,
                    position: index(i),
                    semiring,
                    search: j % 2 == 1,
                    wide_a: i % 2 == 0,
                };
                requests.push((i + 2 * j + 2, variant.request()));
            }
        }
    }
    for (i, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
        let paper = crate::papers::spmv::flattened::Config::default();
        let nonzeros = crate::papers::spmv::flattened::request::<NonzeroSplit>;
        let path = crate::papers::spmv::flattened::request::<MergePath>;
        requests.push((i + 1, nonzeros(dtype, paper)));
        requests.push((i + 3, path(dtype, paper)));
    }
    for (number, wide) in [(0, IndexType::U32), (1, IndexType::U64)] {
        requests.push((number + 3, Segments::request(wide, [1024, 1][number % 2])));
        requests.push((number + 4, lengths::lengths_request(wide)));
        requests.push((number, lengths::similarity_request(IndexType::U32, wide)));
        requests.push((number + 1, lengths::reuse_request(wide, IndexType::U32)));
        requests.push((number + 1, transpose::request(wide, IndexType::U64)));
        requests.push((number + 2, transpose::request(wide, IndexType::U32)));
    }
    for (i, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
        let paper = spgemm::shared_row::Config::default();
        let wide = spgemm::shared_row::Config { threads: 512, rows: 2, prefetch: 2, width: None };
        let warps = spgemm::shared_row::Config { rows: 8, prefetch: 1, ..paper };
        for (number, config) in [paper, wide, warps].into_iter().enumerate() {
            let repeats = number == 2;
            requests.push((i + number, spgemm::shared_row::request(dtype, config, repeats)));
        }
        requests.push((i + 2, spgemm::shared_row::request(dtype, paper, true)));
        for zeros in [Zeros::Multiplied, Zeros::Tested] {
            let naive = spgemm::dense_naive::Config { zeros, ..Default::default() };
            requests.push((i + 3, spgemm::dense_naive::request(dtype, naive)));
        }
        for entries in [Entries::Pattern, Entries::Nonzeros] {
            requests.push((i + 4, compress::request(dtype, entries)));
        }
    }
    requests.push((2, validate::request(IndexType::U32, IndexType::U64)));
    requests.push((3, validate::request(IndexType::U64, IndexType::U32)));
    requests.push((1, columns::request(IndexType::U32, IndexType::U32)));
    requests.push((4, columns::request(IndexType::U64, IndexType::U64)));
    for (i, dtype) in TYPES.into_iter().enumerate() {
        for (j, semiring) in Semiring::ALL.into_iter().enumerate() {
            if j == (i + 3) % 6 || semiring == Semiring::PlusTimes {
                requests.push((i + j, binned(Source::Numeric, dtype, semiring, i + j)));
                let config = spgemm::dense_output::Config::default();
                let wide = [IndexType::U32, IndexType::U64];
                let types = (wide[i % 2], wide[j % 2]);
                let (index, offset) = types;
                let same = spgemm::types::Types { dtype, out: dtype, index, offset, semiring };
                requests.push((i + j + 1, spgemm::dense_output::request(same, config)));
                requests.push((i + j + 2, spgemm::add::request(dtype, types, semiring)));
                let sums = if dtype.bytes() == 2 { DType::F32 } else { dtype };
                let types = spgemm::types::Types { out: [dtype, sums][j % 2], ..same };
                requests.push((i + j + 3, spgemm::masked::request(types)));
            }
        }
    }
    requests.push((1, scan::request(IndexType::U32)));
    requests.push((3, scan::request(IndexType::U64)));
    for (number, file) in [Source::Analysis, Source::Symbolic, Source::Offsets, Source::RowList]
        .into_iter()
        .flat_map(|file| [file; 4])
        .enumerate()
    {
        requests.push((number, binned(file, DType::F32, Semiring::PlusTimes, number)));
    }
    requests.extend(padded());
    requests.push((2, probe::request()));
    requests.push((3, partitions::request("nonzero_split", 2)));
    requests.push((4, partitions::request("merge_path", 1)));
    requests.push((2, items::request(32)));
    for (i, dtype) in TYPES.into_iter().enumerate() {
        requests.extend((0..4).flat_map(|j| sddmm(dtype, i + j)));
        if !dtype.is_integer() {
            let pair = |j| attention(dtype, i + j).map(|request| (i + j, request));
            requests.extend((0..6).flat_map(pair));
        }
    }
    requests
}
