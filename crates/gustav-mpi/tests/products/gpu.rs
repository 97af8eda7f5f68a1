//! Products over ranks that share a GPU.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gustav_core::{Csr, Dense, Error, Index, Layout, Result, Scale, Semiring, f16};
use gustav_cuda::{DeviceBuffer, DeviceDense};
use gustav_mpi::{
    Communication, DistPattern, DistScalar, Gpu, GpuSddmmCall, GpuSddmmPlan, GpuSpgemmPlan,
    GpuSpmmPlan, Partition, SddmmCall, SddmmPlan, SpgemmPlan, SpmmPlan,
};
use gustav_testkit::battery::{
    SddmmCase, Settings, SpgemmCase, SpmmCase, SpmvCase, check_sddmm, check_spgemm_over,
    check_spmm_over, check_spmv_over,
};

use crate::cases::rows::{Rows, joined, pattern_of, rows_of};
use crate::cases::spread::Spread;
use crate::common::{all_ok, in_process, on_ranks};
use crate::device_memory::Moved;
use crate::gpu_copies;
use crate::on_gpu::{self, Messages, device};

/// The product of `case` over ranks, of which with `mixed` every second one computes on its CPU.
pub fn multiply<T: DistScalar, I: Index, O: Index>(
    case: SpmmCase<'_, T, I, O>,
    semiring: Semiring,
    (deterministic, mixed): (bool, bool),
    (spread, messages): (Spread, &Messages),
) -> Result<()> {
    let how = (semiring, deterministic);
    on_gpu::multiply(case, how, (spread, messages), |request, local| {
        if mixed && local.rank % 2 == 1 {
            let mut plan: SpmmPlan<T> = request.plan(&spread.device())?;
            return local.on_cpu(|values, b, c, scale| plan.execute(values, b.view(), c, scale));
        }
        let gpu = Gpu::new(device()?).communication(spread.communication);
        let mut plan: GpuSpmmPlan<T> = request.plan(&gpu)?;
        local.on_gpu(|values, b, c, scale| plan.execute(values, b, c, scale))
    })
}

fn battery<T: DistScalar, I: Index, O: Index>(
    semiring: Semiring,
    columns: &[usize],
    messages: &Messages,
) {
    let (mut spreads, mut number) = (messages.spreads(), 0);
    let settings = Settings { columns: columns.to_vec(), ..Settings::default() };
    check_spmm_over::<T, I, O>(semiring, &settings, |case| {
        number += 1;
        let how = (number % 2 == 0, number % 3 == 0);
        multiply(case, semiring, how, (spreads.next(), messages))
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_on_a_shared_gpu() {
    battery::<f32, u32, u32>(Semiring::PlusTimes, &[1, 33], &Messages::OnHost);
    battery::<f64, u64, u64>(Semiring::PlusTimes, &[3, 8], &Messages::OnHost);
    battery::<i32, u32, u32>(Semiring::PlusTimes, &[5], &Messages::OnHost);
}

#[test]
#[ignore = "needs a CUDA device"]
fn semirings_on_a_shared_gpu() {
    for semiring in [Semiring::MinPlus, Semiring::OrAnd, Semiring::PlusFirst] {
        battery::<f32, u32, u64>(semiring, &[2], &Messages::OnHost);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn sixteen_bits_are_refused_on_several_ranks() {
    let a = Csr::<f16>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![f16::from_f32(1.0); 2]);
    let a = a.expect("a matrix");
    let rows = Partition::even(2, 2);
    let spread = Spread { ranks: 2, kind: 0, on_host: 1, communication: Communication::RowsOfB };
    let refused = all_ok(on_ranks(in_process(&spread, usize::MAX), |ranks| {
        let (pattern, _) = pattern_of(&ranks, &a.view(), (&rows, &rows))?;
        let gpu = Gpu::new(device()?).communication(Communication::RowsOfB);
        let refused: Result<GpuSpmmPlan<f16>> = pattern.spmv().plan(&gpu);
        Ok(matches!(refused, Err(Error::Unsupported { .. })))
    }))
    .expect("answers");
    assert_eq!(refused, [true, true]);
}

/// A wrong argument of one rank is an error on every rank, and nothing is sent.
#[test]
#[ignore = "needs a CUDA device"]
fn errors_of_a_rank_with_a_gpu_reach_all() {
    let a = Csr::<f32>::new(4, 4, vec![0, 1, 2, 3, 4], vec![3, 2, 1, 0], vec![1.0; 4]).unwrap();
    let rows = Partition::even(4, 2);
    let spread = Spread { ranks: 2, kind: 0, on_host: 1, communication: Communication::Cheapest };
    let found = on_ranks(in_process(&spread, usize::MAX), |ranks| -> Result<[bool; 2]> {
        let (pattern, values) = pattern_of(&ranks, &a.view(), (&rows, &rows))?;
        let device = device()?;
        let wrong = usize::from(ranks.rank() == 1);
        let mut plan: GpuSpmmPlan<f32> = pattern.spmm(3).plan(&Gpu::new(device.clone()))?;
        let b = DeviceDense::zeros(&device, 2 + wrong, 3, Layout::RowMajor)?;
        let mut c = DeviceDense::zeros(&device, 2, 3, Layout::RowMajor)?;
        let values = DeviceBuffer::from_slice(&device, &values, "values")?;
        let shape = plan.execute(&values, &b, &mut c, ());
        let right = match wrong {
            0 => matches!(shape, Err(Error::OtherRank { rank: 1, .. })),
            _ => matches!(shape, Err(Error::Shape { .. })),
        };
        let request = pattern.spmm(3).semiring(Semiring::MaxTimes);
        let mut plan: GpuSpmmPlan<f32> = request.plan(&Gpu::new(device.clone()))?;
        let b = DeviceDense::zeros(&device, 2, 3, Layout::RowMajor)?;
        let scaled = plan.execute(&values, &b, &mut c, Scale::new().alpha(-1.0));
        plan.execute(&values, &b, &mut c, ())?;
        Ok([right, matches!(scaled, Err(Error::Unsupported { .. }))])
    });
    assert_eq!(all_ok(found).expect("plans"), [[true; 2]; 2]);
}

/// The values of `case` over ranks, of which with `mixed` every second one computes on its CPU.
fn sample<T: DistScalar, I: Index, O: Index>(
    case: SddmmCase<'_, T, I, O>,
    mixed: bool,
    (spread, messages): (Spread, &Messages),
) -> Result<()> {
    let SddmmCase { pattern, x, y, alpha, beta, factors, values, .. } = case;
    let (rows, columns) = (spread.partition(pattern.nrows()), spread.partition(pattern.ncols()));
    let before = values.to_vec();
    let all = pattern.with_values(&before)?;
    let scale = Scale::new().alpha(alpha).beta(beta);
    let parts = all_ok(on_ranks(messages.ranks(&spread, 64)?, |ranks| -> Result<_> {
        let rank = ranks.rank();
        let (local, mut values) = rows_of(&all, &rows, rank)?;
        let factors =
            factors.map(|f| rows_of(&pattern.with_values(f)?, &rows, rank)).transpose()?;
        let a = DistPattern::new(&ranks, &columns, local)?;
        let (x, y) = (Rows::of(&x, &rows, rank), Rows::of(&y, &columns, rank));
        let layouts = (x.view().layout(), y.view().layout());
        let request = a.sddmm(x.view().ncols()).layouts(layouts.0, layouts.1);
        let first = values.clone();
        if mixed && rank % 2 == 1 {
            let mut plan: SddmmPlan<T> = request.plan(&spread.device())?;
            for _ in 0..2 {
                values.clone_from(&first);
                let factors = factors.as_ref().map(|(_, f)| f.into());
                plan.execute(x.view(), y.view(), &mut values, SddmmCall { scale, factors })?;
            }
            return Ok(values);
        }
        let device = device()?;
        let mut plan: GpuSddmmPlan<T> = request.plan(&Gpu::new(device.clone()))?;
        let x = DeviceDense::upload(&device, &x.view())?;
        let y = DeviceDense::upload(&device, &y.view())?;
        let factors =
            factors.map(|(_, f)| DeviceBuffer::from_slice(&device, &f, "factors")).transpose()?;
        let mut found = DeviceBuffer::from_slice(&device, &first, "values")?;
        // A second execution finds what the first left.
        for _ in 0..2 {
            found.write(&first)?;
            let factors = factors.as_ref().map(Into::into);
            plan.execute(&x, &y, &mut found, GpuSddmmCall { scale, factors })?;
        }
        found.read(&mut values)?;
        Ok(values)
    }))?;
    values.copy_from_slice(&parts.concat());
    Ok(())
}

fn battery_of_sddmm<T: DistScalar, I: Index, O: Index>(messages: &Messages) {
    let (mut spreads, mut number) = (messages.spreads(), 0);
    check_sddmm::<T, I, O>(&Settings::default(), |case| {
        number += 1;
        sample(case, number % 3 == 0, (spreads.next(), messages))
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn sddmm_on_a_shared_gpu() {
    battery_of_sddmm::<f32, u32, u32>(&Messages::OnHost);
}

#[test]
#[ignore = "needs a CUDA device"]
fn sddmm_in_double_precision_on_a_shared_gpu() {
    battery_of_sddmm::<f64, u64, u64>(&Messages::OnHost);
}

#[test]
#[ignore = "needs a CUDA device"]
fn sddmm_of_sixteen_bits_on_a_shared_gpu() {
    battery_of_sddmm::<f16, u32, u64>(&Messages::OnHost);
}

/// The product of `case` over ranks, of which with `mixed` every second one computes on its CPU.
fn multiply_sparse<T: DistScalar, I: Index, O: Index>(
    case: &SpgemmCase<'_, T, I, O>,
    semiring: Semiring,
    mixed: bool,
    (spread, messages): (Spread, &Messages),
) -> Result<Csr<T, I, O>> {
    let rows = spread.partition(case.a.nrows());
    let inner = spread.partition(case.b.nrows());
    let columns = spread.partition(case.b.ncols());
    let parts = all_ok(on_ranks(messages.ranks(&spread, 64)?, |ranks| -> Result<_> {
        let (a, of_a) = pattern_of(&ranks, &case.a, (&rows, &inner))?;
        let (b, of_b) = pattern_of(&ranks, &case.b, (&inner, &columns))?;
        let request = a.spgemm(&b).semiring(semiring).sorted(case.sorted);
        if mixed && ranks.rank() % 2 == 1 {
            let mut plan: SpgemmPlan<T, I, O> = request.plan(&spread.device())?;
            plan.execute(&of_a, &of_b, None)?;
            return Ok(plan.execute(&of_a, &of_b, None)?.local().clone());
        }
        let device = device()?;
        let mut plan: GpuSpgemmPlan<T, I, O> = request.plan(&Gpu::new(device.clone()))?;
        let of_a = DeviceBuffer::from_slice(&device, &of_a, "values of A")?;
        let of_b = DeviceBuffer::from_slice(&device, &of_b, "values of B")?;
        let first = plan.execute(&of_a, &of_b, None)?;
        assert_eq!((first.rows(), first.columns()), (&rows, &columns));
        let (pattern, values) = plan.execute_with_pattern(&of_a, &of_b, None)?;
        assert_eq!((pattern.rows(), pattern.columns()), (&rows, &columns));
        assert_eq!(pattern.nnz(), first.nnz());
        let (found, expected) = (pattern.local(), first.local().pattern().download()?);
        assert_eq!((found.offsets(), found.indices()), (expected.offsets(), expected.indices()));
        Csr::from_pattern(pattern.local(), values.to_host()?)
    }))?;
    joined(&parts, case.b.ncols())
}

fn battery_of_spgemm<T: DistScalar, I: Index, O: Index>(semiring: Semiring, messages: &Messages) {
    let (mut spreads, mut number) = (messages.spreads(), 0);
    check_spgemm_over::<T, I, O>(semiring, &Settings::default(), |case| {
        number += 1;
        multiply_sparse(&case, semiring, number % 3 == 0, (spreads.next(), messages))
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn spgemm_on_a_shared_gpu() {
    battery_of_spgemm::<f32, u32, u32>(Semiring::PlusTimes, &Messages::OnHost);
    battery_of_spgemm::<f64, u64, u64>(Semiring::PlusTimes, &Messages::OnHost);
}

#[test]
#[ignore = "needs a CUDA device"]
fn spgemm_of_a_semiring_on_a_shared_gpu() {
    battery_of_spgemm::<f32, u32, u64>(Semiring::MinPlus, &Messages::OnHost);
}

/// Values of another number on one rank are an error on every rank, and the next execution is right.
#[test]
#[ignore = "needs a CUDA device"]
fn wrong_values_of_a_rank_with_a_gpu_reach_all() {
    let a = Csr::<f32>::new(4, 4, vec![0, 1, 2, 3, 4], vec![3, 2, 1, 0], vec![2.0; 4]).unwrap();
    let rows = Partition::even(4, 2);
    let spread = Spread { ranks: 2, kind: 0, on_host: 1, communication: Communication::RowsOfB };
    let found = on_ranks(in_process(&spread, usize::MAX), |ranks| -> Result<_> {
        let (pattern, values) = pattern_of(&ranks, &a.view(), (&rows, &rows))?;
        let (device, wrong) = (device()?, usize::from(ranks.rank() == 1));
        let gpu = Gpu::new(device.clone());
        let names_rank_1 = |found: Result<()>| match wrong {
            0 => matches!(found, Err(Error::OtherRank { rank: 1, .. })),
            _ => matches!(found, Err(Error::Length { .. })),
        };
        let on_gpu = |values: &[f32]| DeviceBuffer::from_slice(&device, values, "values");
        let (right, of_a) = (on_gpu(&values)?, on_gpu(&[2.0_f32; 3][..2 + wrong])?);
        let mut plan: GpuSpgemmPlan<f32> = pattern.spgemm(&pattern).plan(&gpu)?;
        let of_spgemm = names_rank_1(plan.execute(&of_a, &right, None).map(drop));
        let c = plan.execute(&right, &right, Some(0.5))?.local().download()?;
        let mut plan: GpuSddmmPlan<f32> = pattern.sddmm(1).plan(&gpu)?;
        let ones = Dense::from_row_major(2, 1, vec![1.0; 2])?;
        let ones = DeviceDense::upload(&device, &ones.view())?;
        let mut of_a = of_a;
        let of_sddmm = names_rank_1(plan.execute(&ones, &ones, &mut of_a, ()));
        let mut sampled = on_gpu(&values)?;
        plan.execute(&ones, &ones, &mut sampled, Scale::new().beta(1.0))?;
        let mut sums = vec![0.0; 2];
        sampled.read(&mut sums)?;
        Ok(([of_spgemm, of_sddmm], c.values().as_slice().to_vec(), sums))
    });
    for found in all_ok(found).expect("plans") {
        assert_eq!(found, ([true; 2], vec![2.0; 2], vec![3.0; 2]));
    }
}

fn battery_of_spmv<T: DistScalar, I: Index, O: Index>(messages: &Messages) {
    let mut spreads = messages.spreads();
    check_spmv_over::<T, I, O>(Semiring::PlusTimes, &Settings::default(), |case| {
        let SpmvCase { a, transpose_a, x, y, alpha, beta, .. } = case;
        let spread = spreads.next();
        let (rows, columns) = (spread.partition(a.nrows()), spread.partition(a.ncols()));
        let (of_x, of_y) = if transpose_a { (&rows, &columns) } else { (&columns, &rows) };
        let before = y.to_vec();
        let parts = all_ok(on_ranks(messages.ranks(&spread, 32)?, |ranks| -> Result<_> {
            let (rank, device) = (ranks.rank(), device()?);
            let (a, values) = pattern_of(&ranks, &a, (&rows, &columns))?;
            let gpu = Gpu::new(device.clone()).communication(spread.communication);
            let mut plan: GpuSpmmPlan<T> = a.spmv().transpose(transpose_a).plan(&gpu)?;
            let values = DeviceBuffer::from_slice(&device, &values, "values")?;
            let vector = |part: &[T]| -> Result<DeviceDense<T>> {
                let part = Dense::from_row_major(part.len(), 1, part.to_vec())?;
                DeviceDense::upload(&device, &part.view())
            };
            let (x, mut y) = (vector(&x[of_x.range(rank)])?, vector(&before[of_y.range(rank)])?);
            plan.execute(&values, &x, &mut y, Scale::new().alpha(alpha).beta(beta))?;
            Ok(y.download()?.data().to_vec())
        }))?;
        y.copy_from_slice(&parts.concat());
        Ok(())
    });
}

/// A communicator that takes pointers to device memory is given some, and others to that of the host.
#[test]
#[ignore = "needs a CUDA device"]
fn messages_in_device_memory() {
    let products: [(&str, fn(&Messages)); 5] = [
        ("spmm", |messages| {
            battery::<f32, u32, u32>(Semiring::PlusTimes, &[1, 33], messages);
            battery::<f64, u64, u64>(Semiring::MinPlus, &[3], messages);
        }),
        ("copies", |messages| {
            gpu_copies::battery::<f32, u32, u32>(Semiring::PlusTimes, &[3], messages);
        }),
        ("spmv", battery_of_spmv::<f64, u32, u32>),
        ("sddmm", battery_of_sddmm::<f32, u32, u32>),
        ("spgemm", |messages| battery_of_spgemm::<f64, u32, u32>(Semiring::PlusTimes, messages)),
    ];
    for (name, batteries) in products {
        let moved = Arc::<Moved>::default();
        batteries(&Messages::OnDevice(moved.clone()));
        let counts = [&moved.on_device, &moved.forwarded_on_device, &moved.on_host];
        let [on_device, forwarded, on_host] = counts.map(|n| n.load(Ordering::Relaxed));
        assert!(on_device > 0, "{name} sends nothing from device memory");
        assert!(forwarded > 0, "{name} forwards nothing from device memory");
        // Descriptions at least, when plans are made.
        assert!(on_host > 0, "{name} sends nothing from memory of the host");
    }
}
