//! Ranks that share a GPU, and what each does in a product with a dense matrix.

use std::sync::Arc;

use gustav_core::{DenseViewMut, Index, Result, Scale, Semiring, SpmmRequest};
use gustav_cuda::{Device, DeviceBuffer, DeviceDense};
use gustav_mpi::{DistPattern, DistScalar, Ranks};
use gustav_testkit::battery::SpmmCase;

use crate::cases::rows::{Rows, pattern_of};
use crate::cases::spread::{Spread, Spreads};
use crate::common::{RANKS, all_ok, in_process, on_ranks};
use crate::device_memory::{Moved, taking_device_memory};

/// The first GPU.
pub fn device() -> Result<Device> {
    Device::cuda(0)
}

/// Where messages of ranks with GPUs are when they are sent.
pub enum Messages {
    /// In page-locked memory: the communicator takes no other.
    OnHost,
    /// In device memory, where that is possible.
    OnDevice(Arc<Moved>),
}

impl Messages {
    /// The ranks of `spread`, which send messages of up to `limit` bytes.
    pub fn ranks(&self, spread: &Spread, limit: usize) -> Result<Vec<Ranks>> {
        let ranks = in_process(spread, limit);
        match self {
            Messages::OnHost => Ok(ranks),
            Messages::OnDevice(moved) => taking_device_memory(ranks, &device()?, moved),
        }
    }

    /// The numbers of ranks that cases are tried on.
    pub fn spreads(&self) -> Spreads {
        match self {
            Messages::OnHost => Spreads::over(RANKS.to_vec()),
            // Five, so that each occurs with every choice of partition, host and communication.
            Messages::OnDevice(_) => Spreads::over(vec![1, 2, 4, 2, 4]),
        }
    }
}

/// What a rank has of a product with a dense matrix.
pub struct Local<T: DistScalar> {
    pub rank: usize,
    values: Vec<T>,
    b: Rows<T>,
    c: Rows<T>,
    scale: Scale<T::Accum>,
}

impl<T: DistScalar> Local<T> {
    /// The product by `execute`, given values, B, C and factors on the GPU, twice: the second finds what the first
    /// left.
    pub fn on_gpu(
        &mut self,
        mut execute: impl FnMut(
            &DeviceBuffer<T>,
            &DeviceDense<T>,
            &mut DeviceDense<T>,
            Scale<T::Accum>,
        ) -> Result<()>,
    ) -> Result<()> {
        let device = device()?;
        let values = DeviceBuffer::from_slice(&device, &self.values, "values")?;
        let b = DeviceDense::upload(&device, &self.b.view())?;
        let mut first = DeviceDense::upload(&device, &self.c.view())?;
        execute(&values, &b, &mut first, self.scale)?;
        let mut second = DeviceDense::upload(&device, &self.c.view())?;
        execute(&values, &b, &mut second, self.scale)?;
        let found = second.download()?;
        let (found, mut to) = (found.view(), self.c.view_mut());
        for i in 0..found.nrows() {
            (0..found.ncols()).for_each(|j| to.set(i, j, found.get(i, j)));
        }
        Ok(())
    }

    /// The same on the CPU.
    pub fn on_cpu(
        &mut self,
        mut execute: impl FnMut(&[T], &Rows<T>, DenseViewMut<'_, T>, Scale<T::Accum>) -> Result<()>,
    ) -> Result<()> {
        let first = self.c.data.clone();
        for _ in 0..2 {
            self.c.data.clone_from(&first);
            execute(&self.values, &self.b, self.c.view_mut(), self.scale)?;
        }
        Ok(())
    }
}

/// The product of `case` over ranks, each of which executes its part.
pub fn multiply<T: DistScalar, I: Index, O: Index>(
    mut case: SpmmCase<'_, T, I, O>,
    (semiring, deterministic): (Semiring, bool),
    (spread, messages): (Spread, &Messages),
    execute: impl Fn(SpmmRequest<DistPattern<I, O>>, &mut Local<T>) -> Result<()> + Sync,
) -> Result<()> {
    let (rows, columns) = (spread.partition(case.a.nrows()), spread.partition(case.a.ncols()));
    let (of_b, of_c) = if case.transpose_a { (&rows, &columns) } else { (&columns, &rows) };
    let before = case.c.as_view();
    let scale = Scale::new().alpha(case.alpha).beta(case.beta);
    let layouts = (case.b.layout(), before.layout());
    // Messages of 100 bytes: most are split.
    let parts = all_ok(on_ranks(messages.ranks(&spread, 100)?, |ranks| {
        let rank = ranks.rank();
        let (a, values) = pattern_of(&ranks, &case.a, (&rows, &columns))?;
        let (b, c) = (Rows::of(&case.b, of_b, rank), Rows::of(&before, of_c, rank));
        let request = a
            .spmm(case.b.ncols())
            .transpose(case.transpose_a)
            .semiring(semiring)
            .deterministic(deterministic)
            .layouts(layouts.0, layouts.1);
        let mut local = Local { rank, values, b, c, scale };
        execute(request, &mut local)?;
        Ok(local.c)
    }))?;
    for (rank, part) in parts.iter().enumerate() {
        part.copy_to(&mut case.c, of_c, rank);
    }
    Ok(())
}
