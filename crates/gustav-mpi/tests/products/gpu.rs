//! SpMM and SpMV over ranks that share a GPU.

use gustav_core::{Csr, Dense, Error, Index, Layout, Result, Scalar, Scale, Semiring, f16};
use gustav_cuda::{Device, DeviceBuffer, DeviceDense};
use gustav_mpi::{Communication, DistScalar, Gpu, GpuSpmmPlan, Partition, SpmmPlan};
use gustav_testkit::battery::{Settings, SpmmCase, check_spmm_over};

use crate::common::{Rows, Spread, Spreads, all_ok, on_ranks, pattern_of};

/// The first GPU.
fn device() -> Result<Device> {
    Device::cuda(0)
}

/// Writes `found` to a rank's rows.
fn store<T: Scalar>(rows: &mut Rows<T>, found: &Dense<T>) {
    let (found, mut to) = (found.view(), rows.view_mut());
    for i in 0..found.nrows() {
        (0..found.ncols()).for_each(|j| to.set(i, j, found.get(i, j)));
    }
}

/// The product of `case` over ranks, of which with `mixed` every second one computes on its CPU.
fn multiply<T: DistScalar, I: Index, O: Index>(
    mut case: SpmmCase<'_, T, I, O>,
    semiring: Semiring,
    (deterministic, mixed): (bool, bool),
    spread: Spread,
) -> Result<()> {
    let (rows, columns) = (spread.partition(case.a.nrows()), spread.partition(case.a.ncols()));
    let (of_b, of_c) = if case.transpose_a { (&rows, &columns) } else { (&columns, &rows) };
    let before = case.c.as_view();
    let scale = Scale::new().alpha(case.alpha).beta(case.beta);
    let layouts = (case.b.layout(), before.layout());
    // Messages of 100 bytes: most are split.
    let parts = all_ok(on_ranks(spread.in_process(100), |ranks| {
        let rank = ranks.rank();
        let (a, values) = pattern_of(&ranks, &case.a, (&rows, &columns))?;
        let b = Rows::of(&case.b, of_b, rank);
        let mut c = Rows::of(&before, of_c, rank);
        let request = a
            .spmm(case.b.ncols())
            .transpose(case.transpose_a)
            .semiring(semiring)
            .deterministic(deterministic)
            .layouts(layouts.0, layouts.1);
        if mixed && rank % 2 == 1 {
            let mut plan: SpmmPlan<T> = request.plan(&spread.device())?;
            let first = c.data.clone();
            for _ in 0..2 {
                c.data.clone_from(&first);
                plan.execute(&values, b.view(), c.view_mut(), scale)?;
            }
            return Ok(c);
        }
        let device = device()?;
        let gpu = Gpu::new(device.clone()).communication(spread.communication);
        let mut plan: GpuSpmmPlan<T> = request.plan(&gpu)?;
        let values = DeviceBuffer::from_slice(&device, &values, "values")?;
        let b = DeviceDense::upload(&device, &b.view())?;
        let mut first = DeviceDense::upload(&device, &c.view())?;
        plan.execute(&values, &b, &mut first, scale)?;
        // A second execution finds what the first left.
        let mut second = DeviceDense::upload(&device, &c.view())?;
        plan.execute(&values, &b, &mut second, scale)?;
        store(&mut c, &second.download()?);
        Ok(c)
    }))?;
    for (rank, part) in parts.iter().enumerate() {
        part.copy_to(&mut case.c, of_c, rank);
    }
    Ok(())
}

fn battery<T: DistScalar, I: Index, O: Index>(semiring: Semiring, columns: &[usize]) {
    let (mut spreads, mut number) = (Spreads::default(), 0);
    let settings = Settings { columns: columns.to_vec(), ..Settings::default() };
    check_spmm_over::<T, I, O>(semiring, &settings, |case| {
        number += 1;
        multiply(case, semiring, (number % 2 == 0, number % 3 == 0), spreads.next())
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_on_a_shared_gpu() {
    battery::<f32, u32, u32>(Semiring::PlusTimes, &[1, 33]);
    battery::<f64, u64, u64>(Semiring::PlusTimes, &[3, 8]);
    battery::<i32, u32, u32>(Semiring::PlusTimes, &[5]);
}

#[test]
#[ignore = "needs a CUDA device"]
fn semirings_on_a_shared_gpu() {
    for semiring in [Semiring::MinPlus, Semiring::OrAnd, Semiring::PlusFirst] {
        battery::<f32, u32, u64>(semiring, &[2]);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn sixteen_bits_are_refused_on_several_ranks() {
    let a = Csr::<f16>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![f16::from_f32(1.0); 2]);
    let a = a.expect("a matrix");
    let rows = Partition::even(2, 2);
    let spread = Spread { ranks: 2, kind: 0, on_host: 1, communication: Communication::RowsOfB };
    let refused = all_ok(on_ranks(spread.in_process(usize::MAX), |ranks| {
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
    let found = on_ranks(spread.in_process(usize::MAX), |ranks| -> Result<[bool; 2]> {
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
