//! SpMM over ranks.

use gustav_core::{Csr, Dense, Error, Layout, Result, Scale, Semiring};
use gustav_mpi::{
    Communication, Partition, ProductShape, RankVolume, Ranks, SpmmPlan, Traffic, Volume,
};
use gustav_testkit::battery::SpmmCase;
use gustav_testkit::battery::matrices::matrices;

use crate::cases::rows::{pattern_of, rows_of};
use crate::cases::spmm;
use crate::cases::spread::Spread;
use crate::common::{Counting, Threads, all_ok, in_process, on_ranks};
use crate::last_first::LastFirstThreads;

#[test]
fn f32_plus_times() {
    spmm::f32_plus_times(&Threads);
}

#[test]
fn f64_plus_times_with_wide_indices() {
    spmm::f64_plus_times_with_wide_indices(&Threads);
}

#[test]
fn sixteen_bits_are_summed_in_f32() {
    spmm::sixteen_bits_are_summed_in_f32(&Threads);
}

#[test]
fn integers_are_exact() {
    spmm::integers_are_exact(&Threads);
}

#[test]
fn every_semiring() {
    spmm::every_semiring(&Threads);
}

#[test]
fn deterministic_plans_give_the_same_bits() {
    for matrix in matrices::<f32, u32, u32>() {
        let a = matrix.csr;
        let n = 5;
        let b: Vec<f32> =
            (0..a.ncols() * n).map(|k| ((k * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let run = |on_host, communication| {
            let spread = Spread { ranks: 4, kind: 0, on_host, communication };
            let mut c = vec![0.0; a.nrows() * n];
            let case = SpmmCase {
                name: matrix.name,
                a: a.view(),
                transpose_a: false,
                b: gustav_core::DenseView::row_major(a.ncols(), n, &b).unwrap(),
                alpha: 1.5,
                beta: 0.0,
                c: gustav_core::DenseViewMut::new(a.nrows(), n, Layout::RowMajor, n, &mut c)
                    .unwrap(),
            };
            spmm::multiply(&Threads, case, Semiring::PlusTimes, true, spread).unwrap();
            c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        for communication in Communication::ALL {
            let first = run(2, communication);
            // Wherever the ranks are.
            let others = [2, 1, 3, 4].map(|on_host| run(on_host, communication) == first);
            assert_eq!(others, [true; 4], "{} {communication:?}", matrix.name);
        }
    }
}

/// What crosses between hosts once is right in whatever order messages are taken.
#[test]
fn relays_take_messages_in_any_order() {
    spmm::f64_plus_times_with_wide_indices(&LastFirstThreads);
    spmm::every_semiring(&LastFirstThreads);
}

/// A volume of which nobody knows the hosts.
fn without_levels(volume: &Volume) -> Volume {
    let of_rank = |rank: &RankVolume| RankVolume { network: Traffic::default(), ..*rank };
    let ranks = volume.ranks.iter().map(of_rank).collect();
    Volume { ranks, direct_network_bytes: 0, ..volume.clone() }
}

/// The volume that plans count is the one that is counted without them, and what they send.
#[test]
fn volumes_are_counted_without_running() {
    // Plans in which rows of B cross between hosts once, partial rows of C, or either; of A·B, and of Aᵀ·B.
    let mut once = [[0; 2]; Communication::ALL.len()];
    let mut mixtures = 0;
    for (k, matrix) in matrices::<f32, u32, u32>().into_iter().enumerate() {
        let a = matrix.csr;
        for (number, communication) in Communication::ALL.into_iter().enumerate() {
            for transpose_a in [false, true] {
                let spread = Spread {
                    ranks: [2, 3, 8][k % 3],
                    kind: k / 3 % 4,
                    on_host: [1, 2, 3][k % 4 % 3],
                    communication,
                };
                let (rows, columns) = (spread.partition(a.nrows()), spread.partition(a.ncols()));
                let dtype = gustav_core::DType::F32;
                let shape = ProductShape { columns: 16, dtype, transpose_a, communication };
                let part = |range: std::ops::Range<usize>| {
                    let only = Partition::of_counts(&[range.start, range.len()]).unwrap();
                    Ok(rows_of(&a.view(), &only, 1).unwrap().0)
                };
                let counted =
                    Volume::of_parts(&rows, &columns, &spread.hosts(), shape, part).unwrap();
                let direct = Volume::of(&a.view().pattern(), &rows, &columns, shape).unwrap();
                let found = on_ranks(in_process(&spread, usize::MAX), |ranks| {
                    let (ranks, sent) = Counting::over(ranks);
                    let (a, values) = pattern_of(&ranks, &a.view(), (&rows, &columns)).unwrap();
                    let (of_b, of_c) = match transpose_a {
                        true => (a.rows(), a.columns()),
                        false => (a.columns(), a.rows()),
                    };
                    let zeros = |p: &Partition| {
                        Dense::<f32>::zeros(p.count(ranks.rank()), 16, Layout::RowMajor).unwrap()
                    };
                    [true, false].map(|two| {
                        let request = a.spmm(16).transpose(transpose_a);
                        let device = spread.device().two_levels(two);
                        let mut plan: SpmmPlan<f32> = request.plan(&device).unwrap();
                        let before = sent.products();
                        plan.execute(&values, &zeros(of_b), &mut zeros(of_c), ()).unwrap();
                        let after = sent.products();
                        let volume = plan.explain().volume.clone();
                        let mine = volume.ranks[ranks.rank()];
                        let counted = [mine.sent_bytes, mine.sent_messages];
                        assert_eq!(counted, [after[0] - before[0], after[1] - before[1]]);
                        volume
                    })
                });
                for [two, one] in found {
                    assert_eq!(two, counted, "{}", matrix.name);
                    let levels = |v: &Volume| (v.network_bytes(), v.direct_network_bytes);
                    assert_eq!(levels(&one), (two.direct_network_bytes, two.direct_network_bytes));
                    assert_eq!(without_levels(&one), without_levels(&direct));
                }
                for rank in &direct.ranks {
                    let RankVolume { sent_bytes, received_bytes, sent_messages, .. } = *rank;
                    assert_eq!(rank.network, Traffic { sent_bytes, received_bytes, sent_messages });
                }
                assert!(counted.network_bytes() <= counted.direct_network_bytes);
                let saved = counted.network_bytes() < counted.direct_network_bytes;
                once[number][usize::from(transpose_a)] += usize::from(saved);
                let work: u64 = counted.ranks.iter().map(|r| r.nonzeros).sum();
                assert_eq!(work, a.nnz() as u64);
                let bytes = direct.bytes();
                let one = counted.rows_of_b_bytes.min(counted.partial_rows_bytes);
                match communication {
                    Communication::Cheapest => {
                        assert!(bytes <= one, "{}: {counted:?}", matrix.name);
                        mixtures += usize::from(bytes < one);
                    }
                    Communication::RowsOfB => assert_eq!(bytes, counted.rows_of_b_bytes),
                    Communication::PartialRowsOfC => assert_eq!(bytes, counted.partial_rows_bytes),
                }
            }
        }
    }
    assert!(mixtures > 3, "{mixtures} mixtures that are cheaper than either");
    assert!(once.as_flattened().iter().all(|plans| *plans > 2), "{once:?} plans");
}

/// A matrix of one column is of both layouts, as on one machine.
#[test]
fn a_column_is_of_both_layouts() {
    let a = Csr::<f32>::new(4, 4, vec![0, 1, 2, 3, 4], vec![3, 2, 1, 0], vec![1.0, 2.0, 3.0, 4.0]);
    let (a, even) = (a.unwrap(), Partition::even(4, 2));
    let (row, column) = (Layout::RowMajor, Layout::ColumnMajor);
    for (planned, found) in [(row, column), (column, row)] {
        let parts = all_ok(on_ranks(Ranks::in_process(2), |ranks| {
            let (pattern, values) = pattern_of(&ranks, &a.view(), (&even, &even))?;
            let device = gustav_mpi::Device::default();
            let request = pattern.spmm(1).layouts(planned, planned);
            let mut plan: SpmmPlan<f32> = request.plan(&device)?;
            let b = Dense::from_fn(2, 1, found, |i, _| (2 * ranks.rank() + i) as f32)?;
            let mut c = Dense::zeros(2, 1, found)?;
            plan.execute(&values, &b, &mut c, ())?;
            Ok(c.data().to_vec())
        }));
        assert_eq!(parts.unwrap().concat(), [3.0, 4.0, 3.0, 0.0], "{planned} {found}");
    }
}

/// Errors of one rank reach all, and name it.
#[test]
fn arguments_that_differ_are_named() {
    let a = Csr::<f32>::new(4, 4, vec![0, 1, 2, 3, 4], vec![3, 2, 1, 0], vec![1.0; 4]).unwrap();
    let spread = Spread { ranks: 4, kind: 0, on_host: 2, communication: Communication::Cheapest };
    let rows = spread.partition(4);
    let errors = |wrong: usize, what: usize| -> Vec<Error> {
        on_ranks(Ranks::in_process(4), |ranks| {
            let differs = |k: usize| ranks.rank() == wrong && what == k;
            let columns = if differs(0) { spread.partition(4) } else { rows.clone() };
            let (a, values) = pattern_of(&ranks, &a.view(), (&rows, &columns))?;
            let n = if differs(1) { 2 } else { 3 };
            let semiring = if differs(2) { Semiring::MinPlus } else { Semiring::PlusTimes };
            let transpose = differs(3);
            let request = a.spmm(n).semiring(semiring).transpose(transpose);
            if differs(4) {
                let _: SpmmPlan<f64> = request.plan(&spread.device())?;
                unreachable!("ranks with other types");
            }
            if differs(5) {
                let mut other = spread;
                other.communication = Communication::RowsOfB;
                let _: SpmmPlan<f32> = request.plan(&other.device())?;
                unreachable!("ranks with other communication");
            }
            let mut plan: SpmmPlan<f32> = request.plan(&spread.device())?;
            let b = Dense::<f32>::zeros(1, n, Layout::RowMajor)?;
            let rows_of_c = if differs(6) { 2 } else { 1 };
            let mut c = Dense::<f32>::zeros(rows_of_c, n, Layout::RowMajor)?;
            let values = if differs(7) { &values[..0] } else { &values };
            let alpha = if differs(8) { 2.0 } else { 1.0 };
            plan.execute(values, &b, &mut c, Scale::new().alpha(alpha))
        })
        .into_iter()
        .map(|r: Result<()>| r.expect_err("an error on every rank"))
        .collect()
    };
    let differing = [
        (1, "columns"),
        (2, "semiring"),
        (3, "transposed"),
        (4, "type"),
        (5, "communication"),
        (8, "alpha"),
    ];
    for wrong in [0, 2, 3] {
        for (what, name) in differing {
            for e in errors(wrong, what) {
                let Error::RanksDiffer { rank, what, .. } = &e else { panic!("{e}") };
                assert!(*rank == wrong && what.contains(name), "{e}");
            }
        }
        for what in [6, 7] {
            for (rank, e) in errors(wrong, what).iter().enumerate() {
                let named = matches!(e, Error::OtherRank { rank, .. } if *rank == wrong);
                let own = matches!(e, Error::Shape { .. } | Error::Length { .. });
                assert!(if rank == wrong { own } else { named }, "rank {rank}: {e}");
            }
        }
    }
}

/// A rank that ends makes the calls of others fail: nobody waits for ever.
#[test]
fn a_rank_that_ends_is_named() {
    let results = on_ranks(Ranks::in_process(3), |ranks| {
        if ranks.rank() == 1 {
            return None;
        }
        let local = gustav_core::Pattern::<u32, u32>::new(1, 3, vec![0, 1], vec![1]).unwrap();
        Some(gustav_mpi::DistPattern::new(&ranks, &gustav_mpi::Partition::even(3, 3), local))
    });
    for found in results.into_iter().flatten() {
        let Err(Error::Communication { peer: Some(1), .. }) = &found else { panic!("{found:?}") };
    }
}

/// What products over ranks do not have is refused by name.
#[test]
fn what_is_missing_is_refused() {
    let ranks = Ranks::alone();
    let local = gustav_core::Pattern::<u32, u32>::new(1, 1, vec![0, 1], vec![0]).unwrap();
    let a =
        gustav_mpi::DistPattern::new(&ranks, &gustav_mpi::Partition::even(1, 1), local).unwrap();
    let device = gustav_mpi::Device::default();
    let refused = |r: Result<SpmmPlan<f32>>| assert!(matches!(r, Err(Error::Unsupported { .. })));
    refused(a.spmm(2).batch(2).plan(&device));
    refused(a.spmm(2).reduce(gustav_core::Reduce::Max).plan(&device));
    refused(a.spmm(2).reduce(gustav_core::Reduce::Mean).plan(&device));
    refused(a.spmm(2).tf32(true).plan(&device));
}
