use gustav_core::{CsrView, Epilogue, Semiring};
use gustav_plan::Algorithm;

use super::*;

#[test]
fn several_segments_have_at_most_two_vectors_per_lane() {
    let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    for columns in (4..1200).step_by(4) {
        let problem = Problem::spmm(&a).columns(columns);
        for lanes in [16, 32] {
            let tuning = Tuning {
                segments_per_group: 2,
                lanes,
                threads: 768,
                ..Tuning::of(Algorithm::Segmented)
            };
            let config = Config::new(&problem, &tuning);
            assert!(
                config.segments_per_group == 2 && config.tiles <= 2,
                "{columns} columns: {config:?}"
            );
        }
    }
}

#[test]
fn lanes_hold_more_vectors_of_copies_if_none_is_idle() {
    let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    for dtype in [DType::F32, DType::F64, DType::F16, DType::Bf16] {
        let vector = 16 / dtype.bytes() as u32;
        for (lanes, tiles, threads) in [(8, 4, 1280), (8, 3, 1536), (16, 4, 1024)] {
            let tuning = Tuning {
                lanes,
                tiles,
                stages: 1,
                chunk: 2,
                threads,
                ..Tuning::of(Algorithm::Segmented)
            };
            let panel = (lanes * tiles * vector) as usize;
            for columns in [panel, 2 * panel] {
                let problem = Problem { dtype, ..Problem::spmm(&a).columns(columns) };
                let config = Config::new(&problem, &tuning);
                assert_eq!((config.lanes, config.tiles, config.stages), (lanes, tiles, 1));
                assert!(config.check(&problem).is_ok(), "{config:?}");
                // Unaligned operands.
                let narrow = config.narrowed(dtype, 1, columns);
                assert!(narrow.stages == 0 && narrow.resident <= 1024, "{narrow:?}");
                assert!(narrow.check(&problem).is_ok(), "{narrow:?}");
            }
            let odd = Problem { dtype, ..Problem::spmm(&a).columns(panel + vector as usize) };
            assert!(Config::new(&odd, &tuning).tiles <= 3, "{dtype}, {lanes} lanes");
        }
    }
}

#[test]
fn half_vectors_fit_whatever_the_alignment() {
    let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    for dtype in [DType::F16, DType::Bf16] {
        for (columns, lanes) in [(8, 2), (16, 4), (32, 8)] {
            let problem = Problem { dtype, ..Problem::spmm(&a).columns(columns) };
            let half = Config::candidates(&problem).into_iter().filter(|c| c.vector == 4);
            let half: Vec<_> = half.collect();
            assert_eq!(half.len(), 5, "{half:?}");
            for config in half {
                assert_eq!((config.lanes, config.tiles), (lanes, 1), "{config:?}");
                for vector in [8, 4, 2, 1] {
                    let config = config.narrowed(dtype, vector, columns);
                    assert!(config.vector <= vector.min(4), "{config:?}");
                    assert!(config.check(&problem).is_ok(), "{dtype}, {columns}: {config:?}");
                    let shorter = Config { longest: config.longest.map(|_| 32), ..config };
                    let shorter = Config { first: 32, ..shorter };
                    assert!(shorter.check(&problem).is_ok(), "{dtype}, {columns}: {shorter:?}");
                }
            }
        }
    }
}

#[test]
fn a_cta_per_segment_has_no_idle_lanes_and_fits_in_shared_memory() {
    let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    for dtype in [DType::F32, DType::F64, DType::F16, DType::I64] {
        for columns in [1, 3, 8, 20, 32, 33, 64, 128, 256, 1000] {
            let problem = Problem { dtype, ..Problem::spmm(&a).columns(columns) };
            for config in Config::candidates(&problem).into_iter().filter(|c| c.warps > 1) {
                for vector in [config.vector, 1] {
                    let config = config.narrowed(dtype, vector, columns);
                    assert_eq!((config.group(), 32 * config.warps), (32, config.block));
                    assert!(config.check(&problem).is_ok(), "{dtype}, {columns}: {config:?}");
                }
            }
        }
    }
    let problem = Problem::spmm(&a).columns(32);
    let shared = Config::candidates(&problem).into_iter().find(|c| c.warps == 4);
    let shared = shared.expect("a candidate of four warps");
    for refused in [
        Config { block: 64, ..shared },
        Config { warps: 0, ..shared },
        // In 32 bits these would be as many threads.
        Config { warps: shared.warps + (1 << 27), ..shared },
        // Sums with winners would not fit in shared memory.
        Config { warps: 32, block: 1024, lanes: 32, subgroups: 1, ..shared },
        Config { subgroups: 1, ..shared },
        Config { stages: 2, ..shared },
        Config { segments_per_group: 2, ..shared },
    ] {
        assert!(refused.check(&problem).is_err(), "{refused:?}");
    }
    // Nor would those of the narrower vectors of unaligned operands.
    let wide = Problem { dtype: DType::F16, ..problem }.columns(1000);
    let narrow = Config { vector: 8, lanes: 4, subgroups: 8, warps: 32, block: 1024, ..shared };
    assert!(narrow.check(&wide).is_err(), "{narrow:?}");
}

#[test]
fn windows_are_whole_warps_of_rows() {
    let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    let problem = Problem::spmm(&a).columns(128);
    let own = Config::candidates(&problem)[0];
    for (window, fits) in
        [(1, true), (32, true), (1024, true), (0, false), (33, false), (96, false)]
            .into_iter()
            .chain([(1040, false), (2048, false)])
    {
        assert_eq!(Config { window, ..own }.check(&problem).is_ok(), fits, "{window} rows");
    }
}

#[test]
fn several_segments_exclude_stages_and_are_few_at_once() {
    let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    let problem = Problem::spmm(&a).columns(128);
    let mut candidates = Config::candidates(&problem).into_iter();
    let several =
        candidates.find(|c| c.segments_per_group > 1).expect("a candidate with several segments");
    for chunk in 1..=8 {
        assert!(Config { chunk, ..several }.check(&problem).is_ok(), "{chunk} in flight");
    }
    let at_once = Config { lanes: 8, subgroups: 4, at_once: true, prefetch_b: false, ..several };
    assert!(at_once.check(&problem).is_ok(), "{at_once:?}");
    for refused in [
        Config { chunk: 9, ..several },
        Config { segments_per_group: 0, ..several },
        Config { segments_per_group: MOST_SEGMENTS_PER_GROUP + 1, ..several },
        Config { segments_per_group: 1, ..at_once },
        Config { segments_per_group: 5, ..at_once },
        Config { prefetch_b: true, ..at_once },
        Config { stages: 1, ..several },
        Config { segments_per_group: 1, chunk: 3, prefetch_b: false, ..several },
        Config { segments_per_group: 1, prefetch_b: true, ..several },
    ] {
        assert!(refused.check(&problem).is_err(), "{refused:?}");
    }
}

#[test]
fn one_segment_per_group_if_32_bits_cannot_count_them() {
    let a = CsrView::<f32, u32, u64>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    let problem = Problem::spmm(&a).columns(128);
    let of = |rows, nnz| Problem { rows, nnz, ..problem.clone() };
    let tuning = |longest| Tuning {
        chunk: 3,
        segments_per_group: 4,
        prefetch_b: true,
        longest,
        ..Tuning::of(Algorithm::Segmented)
    };
    let chosen = |longest, rows, nnz| {
        let large = of(rows, nnz);
        let config = Config::new(&large, &tuning(longest));
        assert!(config.check(&large).is_ok(), "{config:?}");
        let small = Config::new(&problem, &tuning(longest));
        assert_eq!(small.segments_per_group, 4);
        assert_eq!(
            small.check(&large).is_ok(),
            config.segments_per_group == 4,
            "{rows} rows, {nnz} nonzeros"
        );
        config.segments_per_group
    };
    let most = u32::MAX as usize;
    assert_eq!([most - 2000, most - 1000].map(|rows| chosen(None, rows, 0)), [4, 1]);
    let some = |nnz| chosen(Some(32), 1 << 31, nnz);
    assert_eq!([some(1 << 33), some(1 << 34)], [4, 1]);
    let refused = Config::new(&problem, &tuning(None)).check(&of(1 << 33, 0));
    let error = refused.expect_err("segments that wrap around").to_string();
    assert!(error.contains("fewer than 2^32"), "{error}");
    let unsorted = Config { window: 1, ..Config::new(&problem, &tuning(Some(32))) };
    assert!(
        unsorted.check(&of(most - 2000, 0)).is_ok() && unsorted.check(&of(most - 500, 0)).is_err()
    );
    let listed = Config::candidates(&of(1 << 33, 0));
    assert!(
        listed.iter().all(|c| c.segments_per_group == 1),
        "autotuning tries a configuration without a kernel"
    );
}

#[test]
fn atomic_reductions_are_refused_where_they_are_wrong() {
    let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
    let problem = Problem::spmm(&a).columns(32);
    let of = |problem: &Problem| {
        let config = Config::candidates(problem)[0];
        (config, Config { reduction: Reduction::Atomic, ..config })
    };
    for dtype in [DType::F32, DType::F64] {
        let plain = Problem { dtype, ..problem.clone() };
        assert!(of(&plain).1.check(&plain).is_ok(), "{dtype}");
    }
    let refused = [
        problem.clone().deterministic(true),
        problem.clone().semiring(Semiring::MinPlus),
        problem.clone().epilogue(Epilogue { relu: true, ..Epilogue::default() }),
        Problem { dtype: DType::F16, ..problem.clone() },
        Problem { dtype: DType::I32, ..problem },
    ];
    for problem in refused {
        let (config, atomic) = of(&problem);
        assert!(config.check(&problem).is_ok(), "{problem}");
        let error = atomic.check(&problem).expect_err("sums would be wrong or not deterministic");
        assert!(error.to_string().contains("by fix-up"), "{problem}: {error}");
    }
}
