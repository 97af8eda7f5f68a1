//! SpMM by teams of ranks that share a GPU.

use gustav_core::{Csr, Dense, Error, Index, Layout, Result, Scale, Semiring};
use gustav_cuda::{DeviceBuffer, DeviceDense};
use gustav_mpi::{
    Communication, Copies, DistScalar, Gpu, GpuReplicatedSpmmPlan, MessageMemory, Partition, Ranks,
    Replicated, ReplicatedSpmmPlan,
};
use gustav_testkit::battery::{Settings, SpmmCase, check_spmm_over};

use crate::cases::rows::{Rows, pattern_of};
use crate::cases::spread::{Spread, Spreads};
use crate::common::{Counting, all_ok, in_process, on_ranks};
use crate::copies::{full, on_cpu, scaled_by_two, small_integers};
use crate::gpu;
use crate::on_gpu::{self, Messages, device};

fn replicated<D>(device: D, copies: Option<usize>) -> Replicated<D> {
    match copies {
        Some(copies) => Replicated::new(device, copies),
        None => Replicated::automatic(device),
    }
}

/// The product of `case` over ranks in teams of `copies`, else of an automatic number, of which with `mixed` every
/// second one computes on its CPU; that of Aᵀ by ranks alone.
fn multiply<T: DistScalar, I: Index, O: Index>(
    case: SpmmCase<'_, T, I, O>,
    semiring: Semiring,
    (deterministic, mixed): (bool, bool),
    (spread, messages): (Spread, &Messages),
    copies: Option<usize>,
) -> Result<()> {
    if case.transpose_a {
        return gpu::multiply(case, semiring, (deterministic, mixed), (spread, messages));
    }
    let how = (semiring, deterministic);
    on_gpu::multiply(case, how, (spread, messages), |request, local| {
        if mixed && local.rank % 2 == 1 {
            let device = replicated(spread.device(), copies);
            let mut plan: ReplicatedSpmmPlan<T> = request.plan(&device)?;
            return local.on_cpu(|values, b, c, scale| plan.execute(values, b.view(), c, scale));
        }
        let gpu = Gpu::new(device()?).communication(spread.communication);
        let mut plan: GpuReplicatedSpmmPlan<T> = request.plan(&replicated(gpu, copies))?;
        assert_eq!(plan.explain().problem.dtype, T::DTYPE);
        local.on_gpu(|values, b, c, scale| plan.execute(values, b, c, scale))
    })
}

pub fn battery<T: DistScalar, I: Index, O: Index>(
    semiring: Semiring,
    columns: &[usize],
    messages: &Messages,
) {
    let (mut spreads, mut number) = (Spreads::over(vec![4, 2, 4, 6]), 0);
    let settings = Settings { columns: columns.to_vec(), ..Settings::default() };
    check_spmm_over::<T, I, O>(semiring, &settings, |case| {
        number += 1;
        let spread = spreads.next();
        // Most in teams that send each other values and sums.
        let copies = match number % 7 {
            0 => None,
            1 => Some(1),
            2 => Some(spread.ranks),
            _ => Some(2),
        };
        let how = (number % 2 == 0, number % 3 == 0);
        multiply(case, semiring, how, (spread, messages), copies)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn teams_on_a_shared_gpu() {
    battery::<f32, u32, u32>(Semiring::PlusTimes, &[1, 33], &Messages::OnHost);
    battery::<f64, u64, u64>(Semiring::PlusTimes, &[3, 8], &Messages::OnHost);
    battery::<i32, u32, u32>(Semiring::PlusTimes, &[5], &Messages::OnHost);
}

#[test]
#[ignore = "needs a CUDA device"]
fn semirings_of_teams_on_a_shared_gpu() {
    for semiring in [Semiring::MinPlus, Semiring::OrAnd, Semiring::PlusFirst] {
        battery::<f32, u32, u64>(semiring, &[2], &Messages::OnHost);
    }
}

/// As `on_cpu`, on the GPU; what a rank sends is what it counted.
fn on_shared_gpu(
    ranks: Ranks,
    device: &Replicated<Gpu>,
    (a, b, even): (&Csr<f32>, &Dense<f32>, &Partition),
    (semiring, scale): (Semiring, Scale<f32>),
) -> Result<(Copies, Vec<f32>)> {
    let (ranks, sent) = Counting::over(ranks);
    let rank = ranks.rank();
    let (pattern, values) = pattern_of(&ranks, &a.view(), (even, even))?;
    let request = pattern.spmm(b.ncols()).semiring(semiring);
    let mut plan: GpuReplicatedSpmmPlan<f32> = request.plan(device)?;
    assert_eq!(plan.explain().messages, MessageMemory::PageLocked);
    let on = on_gpu::device()?;
    let values = DeviceBuffer::from_slice(&on, &values, "values")?;
    let rows = Rows::of(&b.view(), even, rank);
    let rows_of_b = DeviceDense::upload(&on, &rows.view())?;
    let mut c = DeviceDense::upload(&on, &rows.view())?;
    let before = sent.products()[0];
    plan.execute(&values, &rows_of_b, &mut c, scale)?;
    let explained = plan.explain();
    assert_eq!(sent.products()[0] - before, explained.volume.ranks[rank].sent_bytes);
    let copies = explained.copies.clone().expect("a choice");
    Ok((copies, c.download()?.data().to_vec()))
}

/// A rank with a GPU chooses as one with a CPU does, where its memory allows.
#[test]
#[ignore = "needs a CUDA device"]
fn copies_on_gpus_are_chosen_by_bytes_and_memory() {
    let (rows, n, ranks) = (64, 256, 4);
    let (a, b, even) = (full(rows), small_integers(rows, n), Partition::even(rows, ranks));
    let (operands, how) = ((&a, &b, &even), (Semiring::PlusTimes, Scale::new()));
    let expected = all_ok(on_ranks(Ranks::in_process(ranks), |ranks| {
        on_cpu(&ranks, &Replicated::automatic(gustav_mpi::Device::default()), operands, how)
    }))
    .expect("plans on CPUs");
    // A rank's sums alone need more than 10,000 bytes; that one rank lacks them decides for all.
    for (limit, chosen) in [(None, 2), (Some(10_000), 1)] {
        let found = all_ok(on_ranks(Ranks::in_process(ranks), |ranks| {
            let mut device = Replicated::automatic(Gpu::new(device()?));
            if let (Some(bytes), 3) = (limit, ranks.rank()) {
                device = device.memory(bytes);
            }
            on_shared_gpu(ranks, &device, operands, how)
        }))
        .expect("plans");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.0.chosen, chosen, "{}", found.0);
            assert!(limit.is_some() || found.0 == expected.0, "{}\n{}", found.0, expected.0);
            assert_eq!(found.1, expected.1);
        }
    }
}

/// Partial rows of more than one chunk, and α of max-times, which is applied to finished sums.
#[test]
#[ignore = "needs a CUDA device"]
fn long_messages_and_negative_factors_of_teams_on_a_gpu() {
    let (rows, n, ranks) = (128, 40_000, 4);
    let (a, b, even) = (full(rows), small_integers(rows, n), Partition::even(rows, ranks));
    let operands = (&a, &b, &even);
    for semiring in [Semiring::PlusTimes, Semiring::MaxTimes] {
        let how = (semiring, Scale::new().alpha(-2.0).beta(3.0));
        let expected = all_ok(on_ranks(Ranks::in_process(ranks), |ranks| {
            on_cpu(&ranks, &Replicated::new(gustav_mpi::Device::default(), 2), operands, how)
        }));
        for mixed in [false, true] {
            let found = all_ok(on_ranks(Ranks::in_process(ranks), |ranks| {
                if mixed && ranks.rank() % 2 == 0 {
                    let device = Replicated::new(gustav_mpi::Device::default(), 2);
                    return on_cpu(&ranks, &device, operands, how);
                }
                on_shared_gpu(ranks, &Replicated::new(Gpu::new(device()?), 2), operands, how)
            }));
            let [found, expected] = [&found, &expected].map(|all| all.as_ref().expect("plans"));
            assert!(found == expected, "{semiring}, mixed: {mixed}");
        }
    }
}

/// Where there is nothing to multiply, C is scaled.
#[test]
#[ignore = "needs a CUDA device"]
fn teams_without_nonzeros_or_columns_on_a_gpu() {
    scaled_by_two(|ranks, operands, how| {
        on_shared_gpu(ranks, &Replicated::new(Gpu::new(device()?), 2), operands, how)
    });
}

/// Wrong arguments of one rank are an error on every rank, on a CPU as well, and the next execution is right.
#[test]
#[ignore = "needs a CUDA device"]
fn errors_of_a_member_with_a_gpu_reach_all() {
    let (a, even) = (full(8), Partition::even(8, 4));
    let spread = Spread { ranks: 4, kind: 0, on_host: 2, communication: Communication::Cheapest };
    let found = on_ranks(in_process(&spread, usize::MAX), |ranks| -> Result<[bool; 2]> {
        let rank = ranks.rank();
        let (pattern, values) = pattern_of(&ranks, &a.view(), (&even, &even))?;
        let names_rank_1 = |found: Result<()>| match rank {
            1 => matches!(found, Err(Error::Shape { .. })),
            _ => matches!(found, Err(Error::OtherRank { rank: 1, .. })),
        };
        let sums: Vec<f32> = (2 * rank..2 * rank + 2)
            .map(|row| a.values().as_slice()[row * 8..][..8].iter().sum())
            .collect();
        if rank % 2 == 0 {
            let device = Replicated::new(spread.device(), 2);
            let mut plan: ReplicatedSpmmPlan<f32> = pattern.spmm(1).plan(&device)?;
            let b = Dense::from_row_major(2, 1, vec![1.0; 2])?;
            let mut c = Dense::zeros(2, 1, Layout::RowMajor)?;
            let shape = names_rank_1(plan.execute(&values, &b, &mut c, ()));
            plan.execute(&values, &b, &mut c, ())?;
            return Ok([shape, c.data() == &sums[..]]);
        }
        let device = device()?;
        let replicated = Replicated::new(Gpu::new(device.clone()), 2);
        let mut plan: GpuReplicatedSpmmPlan<f32> = pattern.spmm(1).plan(&replicated)?;
        let values = DeviceBuffer::from_slice(&device, &values, "values")?;
        let wrong = DeviceDense::zeros(&device, 3, 1, Layout::RowMajor)?;
        let b = Dense::from_row_major(2, 1, vec![1.0; 2])?;
        let b = DeviceDense::upload(&device, &b.view())?;
        let mut c = DeviceDense::zeros(&device, 2, 1, Layout::RowMajor)?;
        let shape =
            names_rank_1(plan.execute(&values, if rank == 1 { &wrong } else { &b }, &mut c, ()));
        plan.execute(&values, &b, &mut c, ())?;
        Ok([shape, c.download()?.data() == &sums[..]])
    });
    assert_eq!(all_ok(found).expect("plans"), [[true; 2]; 4]);
}
