//! Tunings for matrices whose row lengths are given.

use gustav_core::{Csr, DType};

use super::*;
use crate::facts::row_lengths::{BINS, COUNTS, CUTS, FIRST_CUT_BITS};

fn device() -> DeviceProfile {
    DeviceProfile {
        name: "a GPU".into(),
        units: 132,
        lanes: 32,
        l2_bytes: 60 << 20,
        llc_bytes: 60 << 20,
    }
}

/// The tuning for rows of these lengths, repeated.
fn tuning(lengths: &[usize], times: usize, columns: usize, distinct: f64) -> Tuning {
    let similarity = RowSimilarity { distinct: [distinct.sqrt(), distinct, 0.9, 0.9] };
    tuning_of(DType::F32, lengths, times, columns, similarity)
}

fn tuning_of(
    dtype: DType,
    lengths: &[usize],
    times: usize,
    columns: usize,
    similarity: RowSimilarity,
) -> Tuning {
    let mut counts = vec![0; COUNTS];
    for &length in lengths {
        counts[RowLengths::bin(length as u64)] += times as u64;
        for cut in 0..CUTS {
            let parts = length >> (FIRST_CUT_BITS as usize + cut);
            counts[BINS + cut] += (parts * times) as u64;
        }
    }
    counts[COUNTS - 1] = lengths.iter().copied().max().unwrap_or(0) as u64;
    let (rows, nnz) = (lengths.len() * times, lengths.iter().sum::<usize>() * times);
    let rows_of = RowLengths::new(rows, nnz, counts).expect("counts");
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let problem = Problem::spmm(&eye.view()).columns(columns);
    let problem = Problem { rows, nnz, dtype, calls: 100, ..problem };
    let tensor = dtype != DType::F32;
    let reuse = || Ok(TileReuse { per_segment: 1.0, tiles: 100 });
    choose(&problem, &device(), tensor, || Ok(&rows_of), || Ok(similarity), reuse)
        .expect("a tuning")
}

#[test]
fn rows_alike_go_in_order_and_skewed_ones_are_cut() {
    let grid = tuning(&[5], 1_000_000, 128, 1.0);
    assert_eq!((grid.algorithm, grid.longest), (Algorithm::Segmented, None));
    let graph = tuning(&[1, 2, 3, 3, 4, 9, 70, 900], 20_000, 128, 1.0);
    assert_eq!(graph.algorithm, Algorithm::Segmented);
    assert!(graph.longest.is_some());
}

#[test]
fn rows_that_are_resident_at_once_need_no_list() {
    let short_product = |times, columns| {
        let tuning = tuning(&[1, 2, 3, 30], times, columns, 1.0);
        (tuning.longest.is_some(), tuning.subgroups)
    };
    assert_eq!(short_product(1000, 32), (false, 4));
    assert_eq!(short_product(1000, 64), (false, 2));
    assert!(short_product(100_000, 32).0, "more rows than are resident at once");
    assert!(tuning(&[1, 2, 3, 300], 1000, 32, 1.0).longest.is_some(), "a long row");
    assert!(
        tuning(&[0, 0, 0, 4], 100_000, 64, 1.0).longest.is_none(),
        "no row for the head of the list"
    );
}

#[test]
fn short_rows_that_fill_the_device_have_few_loads_in_flight() {
    let chunk = |times| tuning(&[4], times, 64, 1.0).chunk;
    assert_eq!((chunk(2000), chunk(40_000)), (4, 2));
}

#[test]
fn even_shares_are_for_the_longest_of_rows() {
    let hub = |longest, columns| {
        let mut lengths = vec![2; 20_000];
        lengths.push(longest);
        tuning(&lengths, 50, columns, 1.0)
    };
    assert_eq!(hub(20_000, 128).algorithm, Algorithm::EvenShares);
    assert_eq!(hub(2000, 128).algorithm, Algorithm::Segmented);
    let shares = |tuning: Tuning| (tuning.longest, tuning.chunk, tuning.threads);
    assert_eq!(shares(hub(20_000, 128)), (Some(256), 8, 384));
    assert_eq!(shares(hub(20_000, 64)), (Some(128), 4, 640), "narrow rows of B");
}

#[test]
fn wide_values_have_whole_panels_and_few_loads_in_flight() {
    let lone = RowSimilarity { distinct: [1.0; 4] };
    let wide = |lengths: &[usize], columns| tuning_of(DType::F64, lengths, 200_000, columns, lone);
    let graph = wide(&[1, 2, 3, 3, 4, 9, 30, 90], 256);
    assert_eq!((graph.lanes, graph.chunk, graph.threads), (32, 2, 1024));
    let grid = |columns| {
        let tuning = wide(&[5], columns);
        (tuning.chunk, tuning.stages, tuning.threads)
    };
    assert_eq!((grid(40), grid(128)), ((1, 4, 1536), (2, 1, 1280)));
}

#[test]
fn wide_values_that_leave_registers_have_many_loads_in_flight() {
    let few = |columns| {
        let lone = RowSimilarity { distinct: [1.0; 4] };
        let tuning = tuning_of(DType::F64, &[500, 520], 1024, columns, lone);
        (tuning.subgroups, tuning.chunk, tuning.threads)
    };
    assert_eq!((few(32), few(64).1), ((4, 4, 640), 2));
}

#[test]
fn blocks_of_wide_values_fill_the_chip_by_what_they_share() {
    let half_full = RowSimilarity { distinct: [0.75, 0.583, 0.469, 0.25] };
    let blocks = |lengths: &[usize], times, columns, similarity| {
        let tuning = tuning_of(DType::F64, lengths, times, columns, similarity);
        (tuning.algorithm, tuning.height, tuning.subgroups, tuning.threads)
    };
    assert_eq!(blocks(&[512], 2048, 64, half_full).0, Algorithm::Segmented);
    assert_eq!(blocks(&[512], 2048, 128, half_full), (Algorithm::RowBlock, 2, 2, 512));
    let mesh = RowSimilarity { distinct: [0.58, 0.34, 0.33, 0.22] };
    assert_eq!(blocks(&[60], 4884, 32, mesh), (Algorithm::RowBlock, 3, 2, 768));
    assert_eq!(blocks(&[60], 4884, 256, mesh), (Algorithm::RowBlock, 3, 1, 512));
}

#[test]
fn eight_share_a_row_if_all_are_resident_at_once() {
    let subgroups = |times| tuning(&[500, 520], times, 32, 1.0).subgroups;
    assert_eq!((subgroups(1000), subgroups(2000)), (8, 4));
}

#[test]
fn long_narrow_products_have_several_segments_per_group() {
    let several_segments = |lengths: &[usize], times, columns| {
        let tuning = tuning(lengths, times, columns, 1.0);
        (tuning.segments_per_group, tuning.longest)
    };
    let short = [1, 2, 3, 3, 4, 9, 30, 90];
    assert_eq!(
        (several_segments(&short, 10_000, 32).0, several_segments(&short, 30_000, 32).0),
        (1, 2)
    );
    let long = [[40; 30].as_slice(), &[900]].concat();
    assert_eq!(several_segments(&long, 3000, 32), (2, Some(256)));
    // Too few vectors for several segments per group; cuts are then longer.
    assert_eq!(several_segments(&long, 15_000, 16), (1, Some(1024)));
    let longer = long.iter().map(|length| 2 * length).collect::<Vec<_>>();
    assert_eq!((several_segments(&long, 300, 32).0, several_segments(&longer, 3000, 32).0), (1, 1));
}

#[test]
fn whole_lines_are_for_rows_of_hundreds() {
    let tiles = |length| tuning(&[length, length + 60], 4096, 32, 1.0).tiles;
    assert_eq!((tiles(400), tiles(100)), (1, 2));
    // Beside a few columns, any rows that fill the device are read in long segments.
    let few = |columns| {
        let tuning = tuning(&[64], 100_000, columns, 1.0);
        (tuning.subgroups, tuning.chunk, tuning.threads)
    };
    assert_eq!([1, 3].map(few), [(4, 4, 1024); 2]);
}

#[test]
fn uneven_rows_of_wide_products_have_several_segments_per_group() {
    let graph = |dtype, columns| {
        let lone = RowSimilarity { distinct: [1.0; 4] };
        let tuning = tuning_of(dtype, &[1, 2, 3, 3, 4, 9, 30, 90], 20_000, columns, lone);
        (tuning.segments_per_group, tuning.stages, tuning.block)
    };
    assert_eq!(graph(DType::F32, 128), (2, 0, 128));
    assert_eq!(graph(DType::F16, 128), (2, 0, 128));
    assert_eq!(graph(DType::F32, 1000), (2, 0, 128));
    // Too narrow for so short a product, not whole vectors, a little more than a panel, too wide values.
    let f32s = [32, 96, 127, 132, 160].map(|columns| (DType::F32, columns));
    for (dtype, columns) in f32s.into_iter().chain([(DType::F64, 128)]) {
        assert_eq!(graph(dtype, columns).0, 1, "{dtype}, {columns} columns");
    }
    assert_eq!(tuning(&[5], 1_000_000, 128, 1.0).segments_per_group, 1, "rows alike, in order");
    let lasting = tuning(&[1, 2, 3, 3, 4, 9, 30, 90], 100_000, 32, 1.0);
    assert_eq!((lasting.segments_per_group, lasting.lanes), (2, 16));
}

#[test]
fn several_segments_of_16_bit_values_have_many_threads() {
    let lone = RowSimilarity { distinct: [1.0; 4] };
    let graph = |lengths: &[usize], times, columns| {
        let tuning = tuning_of(DType::F16, lengths, times, columns, lone);
        (tuning.segments_per_group, tuning.chunk, tuning.threads, tuning.first)
    };
    let short = [1, 2, 3, 3, 4, 9, 30, 90];
    assert_eq!(graph(&short, 25_000, 128), (2, 2, 1024, Some(32)));
    assert_eq!(graph(&short, 10_000, 128), (2, 4, 768, Some(32)));
    assert_eq!(graph(&short, 25_000, 256), (2, 4, 768, Some(128)));
    // Long rows as well, which other types process one segment at a time.
    let long = [[40; 30].as_slice(), &[900]].concat();
    assert_eq!(graph(&long, 2000, 128), (2, 2, 1024, Some(32)));
    assert_eq!(graph(&long, 1000, 128).0, 1);
}

#[test]
fn two_share_long_rows_that_are_cut() {
    let lengths = [10, 20, 30, 40, 60, 80, 100, 120, 200, 1000];
    let ratings = |times, columns| {
        let tuning = tuning(&lengths, times, columns, 1.0);
        (tuning.segments_per_group, tuning.subgroups, tuning.chunk, tuning.threads)
    };
    assert_eq!(ratings(600, 128), (1, 2, 2, 1024));
    let others = [(600, 64), (300, 128), (600, 127)];
    assert_eq!(others.map(|(times, columns)| ratings(times, columns).3), [640; 3]);
    assert_eq!(ratings(600, 256), (2, 1, 4, 768));
}

#[test]
fn few_lanes_copy_rows_of_b_that_leave_none_idle() {
    let lone = RowSimilarity { distinct: [1.0; 4] };
    let copies = |dtype, lengths: &[usize], columns| {
        let tuning = tuning_of(dtype, lengths, 400_000, columns, lone);
        (tuning.lanes, tuning.tiles, tuning.stages, tuning.chunk, tuning.threads)
    };
    assert_eq!(copies(DType::F32, &[5], 128), (8, 4, 2, 1, 1536));
    assert_eq!(copies(DType::F32, &[5], 96), (8, 3, 2, 1, 1536));
    assert_eq!(copies(DType::F32, &[3, 4, 10], 256), (8, 4, 1, 2, 1280));
    assert_eq!(copies(DType::F16, &[5], 256), (8, 4, 1, 2, 1024));
    assert_eq!(copies(DType::F64, &[5], 64), (8, 4, 1, 2, 1280));
    assert_eq!(copies(DType::F64, &[5], 128), (16, 4, 1, 2, 1280));
    // Idle lanes, and too few columns but for the shortest rows.
    assert_eq!(copies(DType::F32, &[5], 160).1, 2);
    assert_eq!([4, 5].map(|length| copies(DType::F32, &[length], 32).2), [2, 0]);
}

#[test]
fn the_longer_a_product_takes_the_fewer_rows_come_first() {
    let first = |times| {
        let tuning = tuning(&[1, 2, 3, 3, 4, 9, 30, 90, 300], times, 128, 1.0);
        (tuning.longest, tuning.first)
    };
    assert_eq!(first(500), (Some(128), None));
    assert_eq!(first(4000), (Some(256), Some(64)));
    assert_eq!(first(8000), (Some(512), Some(128)));
}

#[test]
fn rows_in_an_order_have_more_segments_per_group() {
    let counts = |lengths: &[usize]| {
        let mut counts = vec![0; COUNTS];
        for &length in lengths {
            counts[RowLengths::bin(length as u64)] += 100_000;
        }
        counts[COUNTS - 1] = lengths.iter().copied().max().unwrap_or(0) as u64;
        let nnz = lengths.iter().sum::<usize>() * 100_000;
        RowLengths::new(lengths.len() * 100_000, nnz, counts).expect("counts")
    };
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let of = |lengths: &[usize], inner: usize, grown| {
        let rows = counts(lengths);
        let nnz = lengths.iter().sum::<usize>() * 100_000;
        let problem = Problem::spmm(&eye.view()).columns(128);
        let problem = Problem { rows: rows.rows(), cols: inner, nnz, calls: 100, ..problem };
        segmented_in_order(&problem, &rows, &device(), grown)
    };
    let near = 100_000;
    let grid = of(&[5, 5, 5], near, true);
    assert_eq!(
        (grid.longest, grid.segments_per_group, grid.prefetch_b, grid.stages),
        (None, 4, true, 0)
    );
    let graph = [1, 2, 3, 3, 4, 9, 30];
    let segments_per_group = |tuning: Tuning| (tuning.segments_per_group, tuning.window);
    let found = [true, false].map(|grown| segments_per_group(of(&graph, near, grown)));
    assert_eq!(found, [(4, 32), (2, 1024)]);
    // Rows of a B that comes from memory are copied to shared memory.
    let far = of(&graph, 10 * near, false);
    assert_eq!((far.segments_per_group, far.stages, far.tiles), (1, 1, 4));
    // Shorter rows gain more from copies, the shortest with whole chunks in flight.
    let mesh = of(&[4, 4, 4], near, true);
    assert_eq!((mesh.segments_per_group, mesh.stages, mesh.chunk, mesh.threads), (1, 2, 1, 1280));
    let shortest = of(&[1, 1, 1, 1, 1, 1, 1, 2, 2, 9], near, true);
    assert_eq!((shortest.segments_per_group, shortest.stages, shortest.chunk), (1, 1, 4));
}

#[test]
fn similar_rows_share_loads() {
    let mesh = tuning(&[60, 66, 72], 20_000, 128, 0.35);
    assert_eq!((mesh.algorithm, mesh.height), (Algorithm::RowBlock, 3));
    assert_eq!(tuning(&[60, 66, 72], 20_000, 128, 0.9).algorithm, Algorithm::Segmented);
}

#[test]
fn tensor_cores_take_meshes_in_16_bits() {
    let mesh = RowSimilarity { distinct: [0.58, 0.34, 0.33, 0.22] };
    let tuning = |dtype, times, similarity| tuning_of(dtype, &[60, 66, 72], times, 128, similarity);
    let many = tuning(DType::Bf16, 20_000, mesh);
    assert_eq!((many.algorithm, many.subgroups), (Algorithm::Tensor, 1));
    let few = tuning(DType::F16, 800, mesh);
    assert_eq!((few.algorithm, few.subgroups), (Algorithm::Tensor, 4));
    assert_eq!(tuning(DType::F64, 20_000, mesh).algorithm, Algorithm::RowBlock);
    let unlike = RowSimilarity { distinct: [0.95, 0.9, 0.86, 0.71] };
    assert_eq!(tuning(DType::Bf16, 20_000, unlike).algorithm, Algorithm::Tensor);
    let alone = RowSimilarity { distinct: [1.0, 0.98, 0.97, 0.9] };
    assert_eq!(tuning(DType::Bf16, 20_000, alone).algorithm, Algorithm::Segmented);
    // Few blocks of very long rows would keep a few warps busy.
    for times in [36, 252] {
        let long = tuning_of(DType::Bf16, &[17_000], times, 128, mesh);
        assert_eq!(long.algorithm, Algorithm::Segmented);
        assert!(long.longest.is_some());
    }
}

/// The tuning for rows of one length, with segments of `per_segment` nonzeros on average.
fn of_segments(
    length: usize,
    times: usize,
    columns: usize,
    per_segment: f64,
    refine: impl Fn(&mut Problem),
) -> Tuning {
    of_alike_segments(length, times, columns, per_segment, [0.95; 4], refine)
}

/// The same, for neighbouring rows with this similarity.
fn of_alike_segments(
    length: usize,
    times: usize,
    columns: usize,
    per_segment: f64,
    distinct: [f64; 4],
    refine: impl Fn(&mut Problem),
) -> Tuning {
    let mut counts = vec![0; COUNTS];
    counts[RowLengths::bin(length as u64)] = times as u64;
    counts[COUNTS - 1] = length as u64;
    let rows = RowLengths::new(times, length * times, counts).expect("counts");
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let problem = Problem::spmm(&eye.view()).columns(columns).calls(1000);
    let mut problem = Problem { rows: times, nnz: length * times, ..problem };
    refine(&mut problem);
    let alike = RowSimilarity { distinct };
    let reuse = || Ok(TileReuse { per_segment, tiles: 20 });
    choose(&problem, &device(), false, || Ok(&rows), || Ok(alike), reuse).expect("a tuning")
}

#[test]
fn tiles_stay_in_shared_memory_where_segments_are_long() {
    let chosen = |length, times, columns, per_segment| {
        of_segments(length, times, columns, per_segment, |_| ()).algorithm
    };
    let (stays, streams) = (Algorithm::BStationary, Algorithm::Segmented);
    assert_eq!(chosen(410, 8192, 128, 20.0), stays);
    assert_eq!(chosen(410, 8192, 128, 5.0), streams, "short segments");
    assert_eq!(chosen(205, 2048, 128, 41.0), streams, "too short to repay copying tiles");
    assert_eq!(chosen(55, 80_000, 128, 15.0), stays);
    assert_eq!(chosen(55, 80_000, 256, 15.0), streams, "two panels of short rows");
    assert_eq!(chosen(410, 8192, 256, 20.0), stays);
    assert_eq!(chosen(410, 8192, 16, 100.0), streams, "few lanes");
    assert_eq!(chosen(410, 8192, 129, 20.0), streams, "rows of B begin anywhere");
    assert_eq!(chosen(17_000, 36, 128, 54.0), stays, "few rows over all of B");
    let of = |refine: fn(&mut Problem)| of_segments(410, 8192, 128, 20.0, refine).algorithm;
    assert_eq!(of(|p| p.calls = 99), streams);
    assert_eq!(of(|p| p.deterministic = true), streams);
    assert_eq!(of(|p| p.dtype = DType::F64), stays);
    // Narrow values need longer segments, and longer ones the more of them a row of B has.
    assert_eq!(of(|p| p.dtype = DType::Bf16), streams);
    let of_short = |columns, per_segment| {
        of_segments(410, 8192, columns, per_segment, |p| p.dtype = DType::Bf16).algorithm
    };
    assert_eq!(of_short(64, 25.0), stays);
    assert_eq!(of_short(128, 25.0), streams);
    assert_eq!(of_short(128, 41.0), stays);
    assert_eq!(of_short(256, 41.0), streams);
    assert_eq!(of(|p| p.semiring = gustav_core::Semiring::MinPlus), streams);
}

#[test]
fn segments_of_wide_rows_are_longer() {
    let longest = |dtype, columns, per_segment| {
        let tuning = of_segments(410, 8192, columns, per_segment, |p| p.dtype = dtype);
        assert_eq!(tuning.algorithm, Algorithm::BStationary, "{dtype}, {columns} columns");
        tuning.longest
    };
    assert_eq!(longest(DType::F16, 128, 41.0), Some(128));
    assert_eq!(longest(DType::F16, 64, 25.0), Some(64));
    assert_eq!(longest(DType::F32, 128, 20.0), Some(64));
    assert_eq!(longest(DType::F64, 64, 20.0), Some(128));
    assert_eq!(longest(DType::F64, 32, 20.0), Some(64));
}

#[test]
fn tiles_go_before_blocks_that_share_little() {
    let chosen = |columns, four| {
        let distinct = [0.75, 0.58, four, 0.9];
        of_alike_segments(512, 8192, columns, 140.0, distinct, |_| ()).algorithm
    };
    assert_eq!(chosen(128, 0.47), Algorithm::BStationary);
    assert_eq!(chosen(128, 0.35), Algorithm::RowBlock);
    assert_eq!(chosen(256, 0.47), Algorithm::RowBlock, "two panels");
}

#[test]
fn one_call_does_not_inspect_the_pattern() {
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let problem = Problem::spmm(&eye.view()).columns(64).calls(1);
    let unasked = || -> Result<&'static RowLengths> { unreachable!("row lengths") };
    let similarity = || unreachable!("similarity");
    let tuning = choose(&problem, &device(), true, unasked, similarity, || unreachable!("reuse"));
    assert_eq!(tuning.expect("a tuning").algorithm, Algorithm::EvenShares);
}

#[test]
fn inspecting_the_rows_has_to_pay() {
    let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
    let problem = Problem::spmm(&eye.view()).columns(128);
    let of = |nnz, calls| Problem { nnz, rows: nnz / 10, calls, ..problem.clone() };
    let pays = |nnz, calls| inspects(&of(nnz, calls), &device());
    assert!(!pays(1_000_000_000, 1), "a single call never does");
    assert!(pays(50_000_000, 2) && !pays(1_000_000, 2));
    assert!(pays(1_000_000, 5) && !pays(100_000, 5));
    assert!(pays(1, 17) && !pays(1, 16), "from so many calls on it always does");
    let said = |calls| even_shares(&of(1000, calls), &device()).reason;
    assert!(said(1).contains("a single call") && said(9).contains("9 calls"));
    assert!(!said(100).contains("calls"), "{}", said(100));
}

#[test]
fn few_very_long_rows_are_cut_however_alike() {
    for (rows, length) in [(2, 1 << 20), (32, 1 << 17), (500, 1 << 13)] {
        for columns in [8, 64, 256] {
            let tuning = tuning(&[length], rows, columns, 1.0);
            let longest = tuning.longest.expect("rows are cut") as usize;
            assert!(longest < length && length / longest <= 1024, "{rows}: {tuning:?}");
        }
    }
    assert_eq!(tuning(&[1 << 13], 20_000, 64, 1.0).longest, None);
}

#[test]
fn few_long_rows_are_shared() {
    let pruned = tuning(&[400, 420, 440], 2_000, 32, 1.0);
    assert!(pruned.subgroups > 1, "{pruned:?}");
    assert_eq!(tuning(&[64], 100_000, 32, 1.0).subgroups, 1);
}

#[test]
fn rows_of_a_mesh_are_taken_in_order_for_few_columns() {
    let mesh = |columns| tuning(&[27, 54, 81, 81, 81, 81, 81, 81], 25_000, columns, 0.35);
    assert_eq!([1, 3, 4].map(|columns| mesh(columns).longest), [None; 3]);
    assert_eq!(mesh(8).longest, Some(128));
}

#[test]
fn rows_of_a_warp_each_have_few_loads_in_flight() {
    let dense = tuning(&[400, 410, 420], 2_700, 64, 1.0);
    assert_eq!((dense.chunk, dense.threads, dense.longest), (2, 1024, None));
    assert_eq!(dense.subgroups * 8, 32);
    let narrow = tuning(&[400, 410, 420], 2_700, 32, 1.0);
    assert_eq!((narrow.tiles, narrow.subgroups, narrow.threads), (1, 4, 1024));
}

#[test]
fn long_rows_of_16_bit_values_are_shared_by_warps() {
    let lone = RowSimilarity { distinct: [1.0, 0.98, 0.97, 0.9] };
    let lengths = [10, 20, 30, 40, 60, 80, 100, 120, 200, 1000];
    let ratings = tuning_of(DType::F16, &lengths, 600, 128, lone);
    let found = (ratings.algorithm, ratings.subgroups, ratings.chunk, ratings.longest);
    assert_eq!(found, (Algorithm::Segmented, 4, 2, Some(256)));
}

#[test]
fn the_quickest_products_have_the_shortest_segments() {
    let lone = RowSimilarity { distinct: [1.0, 0.98, 0.97, 0.9] };
    let circuit = [1, 2, 3, 4, 4, 5, 6, 30];
    let cut = |dtype, times| {
        let tuning = tuning_of(dtype, &circuit, times, 128, lone);
        (tuning.algorithm, tuning.subgroups, tuning.threads, tuning.longest)
    };
    assert_eq!(cut(DType::F32, 2_000), (Algorithm::Segmented, 1, 768, Some(32)));
    assert_eq!(cut(DType::F16, 2_000), (Algorithm::Segmented, 2, 1024, Some(32)));
    assert_eq!(cut(DType::F32, 4_000).3, Some(64));
}

#[test]
fn quick_products_of_uneven_16_bit_rows_are_cut() {
    let lone = RowSimilarity { distinct: [1.0, 0.98, 0.97, 0.9] };
    let mut lengths = vec![1; 20_000];
    lengths.push(11_000);
    let quick = tuning_of(DType::Bf16, &lengths, 18, 128, lone);
    let found = (quick.algorithm, quick.subgroups, quick.longest, quick.stages);
    assert_eq!(found, (Algorithm::Segmented, 1, Some(64), 0));
    assert_eq!(tuning_of(DType::Bf16, &lengths, 130, 128, lone).algorithm, Algorithm::EvenShares);
}

#[test]
fn two_share_high_blocks_of_uneven_or_long_rows() {
    let block = RowSimilarity { distinct: [0.5, 0.38, 0.25, 0.12] };
    let subgroups = |lengths: &[usize]| {
        let tuning = tuning_of(DType::F32, lengths, 48_000 / lengths.len(), 64, block);
        (tuning.algorithm, tuning.height, tuning.subgroups)
    };
    assert_eq!(subgroups(&[16]), (Algorithm::RowBlock, 4, 1));
    assert_eq!(subgroups(&[14, 16, 30]), (Algorithm::RowBlock, 4, 2));
    assert_eq!(subgroups(&[86]), (Algorithm::RowBlock, 4, 2));
}

#[test]
fn blocks_of_wide_values_are_low_and_full() {
    let half_full = RowSimilarity { distinct: [0.75, 0.583, 0.469, 0.25] };
    assert_eq!((height(&half_full, 4), height(&half_full, 8)), (4, 2));
    let mesh = RowSimilarity { distinct: [0.58, 0.34, 0.33, 0.22] };
    assert_eq!([2, 4, 8].map(|bytes| height(&mesh, bytes)), [3, 3, 3]);
}
