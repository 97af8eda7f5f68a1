//! SpMM by teams of ranks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use gustav_core::{Csr, Dense, Error, Layout, Result, Scale, Semiring};
use gustav_mpi::{
    Communication, Copies, Partition, Ranks, Replicated, ReplicatedSpmmPlan, SpmmPlan,
};

use crate::cases::copies;
use crate::cases::rows::{Rows, pattern_of};
use crate::cases::spread::Spread;
use crate::common::{Counting, Threads, all_ok, in_process, on_ranks};

#[test]
fn teams_multiply_as_ranks_do() {
    copies::teams_multiply_as_ranks_do(&Threads);
}

/// A row of B goes to each team once: where all rows need all of B, teams of two send half as many.
#[test]
fn copies_save_rows_of_b() {
    let (rows, per_row, n) = (64_usize, 64_usize, 256_usize);
    let offsets = (0..=rows as u32).map(|r| r * per_row as u32).collect::<Vec<_>>();
    let indices = (0..rows).flat_map(|_| 0..per_row as u32).collect::<Vec<_>>();
    let a = Csr::<f32>::new(rows, per_row, offsets, indices, vec![1.0; rows * per_row]).unwrap();
    let even = Partition::even(rows, 8);
    let bytes = |copies: Option<usize>| -> u64 {
        let spread =
            Spread { ranks: 8, kind: 0, on_host: 1, communication: Communication::RowsOfB };
        let sent = on_ranks(in_process(&spread, usize::MAX), |ranks| -> Result<u64> {
            let (ranks, sent) = Counting::over(ranks);
            let (pattern, values) = pattern_of(&ranks, &a.view(), (&even, &even))?;
            let b = Dense::from_fn(8, n, Layout::RowMajor, |i, j| (i + j) as f32)?;
            let mut c = Dense::zeros(8, n, Layout::RowMajor)?;
            let counted = match copies {
                None => {
                    let mut plan: SpmmPlan<f32> = pattern.spmm(n).plan(&spread.device())?;
                    let before = sent.products();
                    plan.execute(&values, &b, &mut c, ())?;
                    assert!(sent.products()[0] > before[0]);
                    plan.explain().volume.bytes()
                }
                Some(copies) => {
                    let device = Replicated::new(spread.device(), copies);
                    let mut plan: ReplicatedSpmmPlan<f32> = pattern.spmm(n).plan(&device)?;
                    let before = sent.products();
                    plan.execute(&values, &b, &mut c, ())?;
                    let mine = plan.explain().volume.ranks[ranks.rank()];
                    let after = sent.products();
                    let found = [after[0] - before[0], after[1] - before[1]];
                    assert_eq!(found, [mine.sent_bytes, mine.sent_messages]);
                    plan.explain().volume.bytes()
                }
            };
            Ok(counted)
        });
        all_ok(sent).expect("plans")[0]
    };
    let (one, two) = (bytes(None), bytes(Some(2)));
    assert!(two < one, "{two} bytes with two copies, {one} with one");
}

/// A matrix without zeros, of small integers: sums are exact.
pub fn full(rows: usize) -> Csr<f32> {
    let offsets = (0..=rows as u32).map(|r| r * rows as u32).collect::<Vec<_>>();
    let indices = (0..rows).flat_map(|_| 0..rows as u32).collect::<Vec<_>>();
    let values: Vec<f32> = (0..rows * rows).map(|k| (k % 7) as f32 - 3.0).collect();
    Csr::new(rows, rows, offsets, indices, values).expect("a matrix")
}

pub fn small_integers(rows: usize, n: usize) -> Dense<f32> {
    Dense::from_fn(rows, n, Layout::RowMajor, |i, j| ((i * 3 + j) % 5) as f32).expect("a matrix")
}

/// The number of copies that this rank's plan has, and its rows of C, which it computes on its CPU.
pub fn on_cpu(
    ranks: &Ranks,
    device: &Replicated,
    (a, b, even): (&Csr<f32>, &Dense<f32>, &Partition),
    (semiring, scale): (Semiring, Scale<f32>),
) -> Result<(Copies, Vec<f32>)> {
    let (pattern, values) = pattern_of(ranks, &a.view(), (even, even))?;
    let request = pattern.spmm(b.ncols()).semiring(semiring);
    let mut plan: ReplicatedSpmmPlan<f32> = request.plan(device)?;
    let mut c = Rows::of(&b.view(), even, ranks.rank());
    plan.execute(&values, Rows::of(&b.view(), even, ranks.rank()).view(), c.view_mut(), scale)?;
    Ok((plan.explain().copies.clone().expect("a choice"), c.data))
}

/// Checks that `execute`, by a rank of a team, scales C where there is nothing to multiply.
pub fn scaled_by_two(
    execute: impl Fn(
        Ranks,
        (&Csr<f32>, &Dense<f32>, &Partition),
        (Semiring, Scale<f32>),
    ) -> Result<(Copies, Vec<f32>)>
    + Sync,
) {
    let (rows, ranks) = (8, 4);
    let (full, even) = (full(rows), Partition::even(rows, ranks));
    let empty = Csr::new(rows, rows, vec![0; rows + 1], Vec::new(), Vec::new()).expect("a matrix");
    let how = (Semiring::PlusTimes, Scale::new().beta(2.0));
    for (a, n) in [(&empty, 2), (&full, 0), (&empty, 0)] {
        let b = small_integers(rows, n);
        let found = all_ok(on_ranks(Ranks::in_process(ranks), |ranks| {
            execute(ranks, (a, &b, &even), how).map(|(_, c)| c)
        }));
        let expected: Vec<f32> = b.data().iter().map(|b| 2.0 * b).collect();
        assert_eq!(found.expect("plans").concat(), expected);
    }
}

#[test]
fn teams_without_nonzeros_or_columns() {
    scaled_by_two(|ranks, operands, how| {
        on_cpu(&ranks, &Replicated::new(gustav_mpi::Device::default(), 2), operands, how)
    });
}

/// All rows need all of B: copies of it save bytes until partial rows of C cost more, where there is memory for them.
#[test]
fn copies_are_chosen_by_bytes_and_memory() {
    let (rows, n, ranks) = (64_usize, 256_usize, 4);
    let (a, b, even) = (full(rows), small_integers(rows, n), Partition::even(rows, ranks));
    // A rank's sums alone need more than 10,000 bytes; that one rank lacks them decides for all.
    for (limit, expected) in [(None, 2), (Some(10_000), 1)] {
        let chosen = all_ok(on_ranks(Ranks::in_process(ranks), |ranks| {
            let (rank, (ranks, sent)) = (ranks.rank(), Counting::over(ranks));
            let (pattern, values) = pattern_of(&ranks, &a.view(), (&even, &even))?;
            let mut device = Replicated::automatic(gustav_mpi::Device::default());
            if let (Some(bytes), 3) = (limit, rank) {
                device = device.memory(bytes);
            }
            let mut plan: ReplicatedSpmmPlan<f32> = pattern.spmm(n).plan(&device)?;
            let rows_of_b = Rows::of(&b.view(), &even, rank);
            let mut c = Rows::of(&b.view(), &even, rank);
            let before = sent.products();
            plan.execute(&values, rows_of_b.view(), c.view_mut(), ())?;
            let explained = plan.explain();
            let copies = explained.copies.clone().expect("a choice");
            let candidate = copies.candidates.iter().find(|k| k.copies == copies.chosen);
            let sent_bytes = candidate.expect("the choice").sent_bytes;
            assert_eq!(sent_bytes, Some(explained.volume.bytes()));
            let mine = explained.volume.ranks[rank].sent_bytes;
            assert_eq!(sent.products()[0] - before[0], mine);
            let words = format!("copies     {}, which sends the fewest bytes", copies.chosen);
            assert!(explained.to_string().contains(&words), "{explained}");
            Ok((copies, c))
        }))
        .expect("plans");
        let (copies, _) = &chosen[0];
        assert_eq!(copies.chosen, expected, "{copies}");
        let of = |c: usize| copies.candidates.iter().find(|k| k.copies == c).unwrap();
        assert_eq!((of(1).fits, of(2).fits), (true, limit.is_none()), "{copies}");
        // What does not fit is not made to count its bytes.
        assert_eq!(of(2).sent_bytes.is_some(), limit.is_none(), "{copies}");
        assert_eq!(copies.to_string().contains("that a rank does not have"), limit.is_some());
        assert!(chosen.iter().all(|(other, _)| other == copies));
        // Small integers: sums are exact.
        for (rank, (_, c)) in chosen.iter().enumerate() {
            for (i, row) in even.range(rank).enumerate() {
                let a = &a.values().as_slice()[row * rows..][..rows];
                for j in 0..n {
                    let sum: f32 = (0..rows).map(|k| a[k] * b.view().get(k, j)).sum();
                    assert_eq!(c.view().get(i, j), sum, "row {row}, column {j}");
                }
            }
        }
    }
}

#[test]
fn copies_that_do_not_divide_the_ranks_are_refused() {
    for found in on_ranks(Ranks::in_process(3), |ranks| {
        let a = Csr::<f32>::new(3, 3, vec![0, 1, 2, 3], vec![0, 1, 2], vec![1.0; 3])?;
        let even = Partition::even(3, 3);
        let (pattern, _) = pattern_of(&ranks, &a.view(), (&even, &even))?;
        let device = Replicated::new(gustav_mpi::Device::default(), 2);
        let plan: Result<ReplicatedSpmmPlan<f32>> = pattern.spmm(2).plan(&device);
        plan.map(|_| ())
    }) {
        assert!(matches!(found, Err(Error::Argument { name: "copies", .. })), "{found:?}");
    }
}

/// Ranks that give other arguments get an error that names the rank, also where bytes are counted before a plan is
/// made.
#[test]
fn ranks_that_differ_choose_no_number_of_copies() {
    #[derive(Clone, Copy, Debug)]
    enum Differs {
        Type,
        Transposed,
        Semiring,
        Columns,
        Copies,
    }
    let a = Csr::<f32>::new(4, 4, vec![0, 1, 2, 3, 4], vec![3, 2, 1, 0], vec![1.0; 4]).unwrap();
    let even = Partition::even(4, 4);
    let expected = [
        (Differs::Type, "type of values"),
        (Differs::Transposed, "transposed A"),
        (Differs::Semiring, "semiring"),
        (Differs::Columns, "columns of the dense matrix"),
        (Differs::Copies, "copies"),
    ];
    for (differs, argument) in expected {
        let found = on_ranks(Ranks::in_process(4), |ranks| -> Result<()> {
            let (pattern, _) = pattern_of(&ranks, &a.view(), (&even, &even))?;
            let device = Replicated::automatic(gustav_mpi::Device::default());
            let request = pattern.spmm(2);
            if ranks.rank() != 2 {
                let plan: Result<ReplicatedSpmmPlan<f32>> = request.plan(&device);
                return plan.map(drop);
            }
            let request = match differs {
                Differs::Type => {
                    let plan: Result<ReplicatedSpmmPlan<f64>> = request.plan(&device);
                    return plan.map(drop);
                }
                Differs::Transposed => request.transpose(true),
                Differs::Semiring => request.semiring(Semiring::MaxTimes),
                Differs::Columns => pattern.spmm(3),
                Differs::Copies => {
                    let device = Replicated::new(gustav_mpi::Device::default(), 2);
                    let plan: Result<ReplicatedSpmmPlan<f32>> = request.plan(&device);
                    return plan.map(drop);
                }
            };
            let plan: Result<ReplicatedSpmmPlan<f32>> = request.plan(&device);
            plan.map(drop)
        });
        for found in found {
            let Err(Error::RanksDiffer { what, rank: 2, .. }) = &found else {
                panic!("{differs:?}: {found:?}");
            };
            assert_eq!(what, argument);
        }
    }
}

/// A second thread of a rank waits until an execution is done, also while it sends values and sums within a team.
#[test]
fn an_execution_of_a_team_keeps_other_threads_from_communicating() {
    let a = Csr::<f32>::new(4, 4, vec![0, 4, 8, 12, 16], [0, 1, 2, 3].repeat(4), vec![1.0; 16]);
    let (a, even) = (a.unwrap(), Partition::even(4, 4));
    let results = on_ranks(Ranks::in_process(4), |ranks| -> Result<_> {
        // The first message of the plan waits for a call of the other thread, which should not come.
        let ((begin, begun), (enter, entered)) = (mpsc::channel(), mpsc::channel());
        let (team, other): (OnceLock<ThreadId>, OnceLock<ThreadId>) = Default::default();
        let threads = Arc::new((team, other));
        let (waiting, watched) = (Mutex::new(Some((begin, entered))), threads.clone());
        let disturbed = Arc::new(AtomicBool::new(false));
        let found = disturbed.clone();
        let on_call = move |sends: bool| {
            let this = Some(std::thread::current().id());
            if this == watched.1.get().copied() {
                // Nobody listens once the first message is sent.
                let _ = enter.send(());
            }
            if sends
                && this == watched.0.get().copied()
                && let Some((begin, entered)) = waiting.lock().unwrap().take()
            {
                begin.send(()).unwrap();
                let call = entered.recv_timeout(Duration::from_millis(300));
                found.store(call.is_ok(), Ordering::Relaxed);
            }
        };
        let (ranks, _) = Counting::watched(ranks, on_call);
        let (pattern, values) = pattern_of(&ranks, &a.view(), (&even, &even))?;
        let device = gustav_mpi::Device::default();
        let mut of_team: ReplicatedSpmmPlan<f32> =
            pattern.spmm(2).plan(&Replicated::new(device.clone(), 2))?;
        let mut alone: SpmmPlan<f32> = pattern.spmm(2).plan(&device)?;
        let b = Dense::from_fn(1, 2, Layout::RowMajor, |_, j| j as f32 + 1.0)?;
        let mut c = [(); 2].map(|()| Dense::zeros(1, 2, Layout::RowMajor).unwrap());
        let [first, second] = &mut c;
        std::thread::scope(|scope| {
            let of_team = scope.spawn(|| {
                threads.0.set(std::thread::current().id()).unwrap();
                of_team.execute(&values, &b, first, ())
            });
            let (identity, values, b) = (&threads.1, &values, &b);
            let alone = scope.spawn(move || {
                identity.set(std::thread::current().id()).unwrap();
                begun.recv().expect("the first message");
                alone.execute(values, b, second, ())
            });
            of_team.join().expect("no panic").and(alone.join().expect("no panic"))
        })?;
        Ok((disturbed.load(Ordering::Relaxed), c.map(|c| c.data().to_vec())))
    });
    for (disturbed, c) in all_ok(results).expect("products") {
        assert!(!disturbed, "the other thread communicated during the execution");
        assert_eq!(c, [[4.0, 8.0], [4.0, 8.0]]);
    }
}
