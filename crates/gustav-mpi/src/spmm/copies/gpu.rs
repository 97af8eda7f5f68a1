//! SpMM by teams of ranks, of which this one computes on a GPU.

use std::ops::Range;

use gustav_core::{Index, Layout, Plans, Problem, Result, Scale, SpmmRequest};
use gustav_cuda::{DeviceBuffer, DeviceDense, DeviceValues, RowList};

use super::member::{Arguments, Around, Messages, Team};
use super::{Method, Replicated, choose, plan_by};
use crate::fetch::Forwards;
use crate::gpu::{Gpu, GpuMessages, Joined, check_dense, check_device, positions};
use crate::local::DistScalar;
use crate::spmm::{GpuSpmmPlan, call, rows_of_b, rows_of_c};
use crate::{DistPattern, Explanation};

/// A plan for sparse × dense products by teams of ranks, of which this one computes on a GPU, made by
/// `pattern.spmm(columns).plan(&replicated)`.
///
/// What ranks do and send is as of a [`ReplicatedSpmmPlan`](crate::ReplicatedSpmmPlan), of which other ranks may have
/// one.
pub struct GpuReplicatedSpmmPlan<T: DistScalar> {
    method: Method<GpuSpmmPlan<T>, TeamPlan<T>>,
    explanation: Explanation,
}

/// A plan of a member of a team of several ranks.
struct TeamPlan<T: DistScalar> {
    call: Arguments,
    device: gustav_cuda::Device,
    /// The product with this member's nonzeros: those of its rows, then those of others' rows.
    part: GpuSpmmPlan<T>,
    /// Of the values of this rank's own nonzeros.
    own: RowList<T>,
    /// The messages of values, joined to the values of the part.
    of_values: GpuMessages<T>,
    of_sums: GpuMessages<T>,
    /// By message, as of [`Messages`].
    send_values: Vec<RowList<T>>,
    send_sums: Vec<Range<usize>>,
    receive_sums: Vec<RowList<T>>,
    /// What this member multiplies: its rows, then those of others.
    sums: DeviceDense<T>,
    /// All rows of C, which are the first of the sums.
    rows: RowList<T>,
}

impl<T: DistScalar> GpuReplicatedSpmmPlan<T> {
    /// Plans `problem` for `pattern`. Collective.
    ///
    /// # Errors
    /// As [`ReplicatedSpmmPlan::new`](crate::ReplicatedSpmmPlan::new) and [`GpuSpmmPlan::new`].
    pub fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        replicated: &Replicated<Gpu>,
    ) -> Result<Self> {
        let gpu = &replicated.device;
        let here = (&gpu.options, Some(&gpu.device));
        let copies = choose::<T, I, O, _>(pattern, problem, replicated, here)?;
        let single = || {
            let plan = GpuSpmmPlan::new(pattern, problem, gpu)?;
            let explanation = plan.explain().clone();
            Ok((plan, explanation))
        };
        let team = |copies| TeamPlan::new(pattern, problem, gpu, copies);
        let (method, explanation) = plan_by(copies, single, team)?;
        Ok(GpuReplicatedSpmmPlan { method, explanation })
    }

    /// What is computed, what ranks send, how many copies there are, and how work is balanced.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    /// As [`GpuSpmmPlan::execute`]; in teams of several ranks α is applied to finished sums, so that max-times takes
    /// any.
    ///
    /// # Errors
    /// As there.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        scale: impl Into<Scale<T::Accum>>,
    ) -> Result<()> {
        match &mut self.method {
            Method::Single(plan) => plan.execute(values, b, c, scale),
            Method::Team(plan) => plan.execute(values.into(), b, c, scale.into()),
        }
    }
}

impl<T: DistScalar> TeamPlan<T> {
    /// The plan and what it says of itself. Collective; ranks have agreed on the arguments.
    fn new<I: Index, O: Index>(
        pattern: &DistPattern<I, O>,
        problem: &Problem,
        gpu: &Gpu,
        copies: usize,
    ) -> Result<(Self, Explanation)> {
        let team = Team::new(pattern, problem, copies)?;
        let part = GpuSpmmPlan::new(&team.part, &team.problem_of_part, gpu)?;
        let (rows, nnz) = (team.part.local().nrows(), team.part.local().nnz());
        let explanation = part.explain().clone();
        team.plan::<T, _>(true, explanation, |Around { call, messages, own }| {
            let device = &gpu.device;
            let Messages { values, sums, send_values, receive_values, send_sums, receive_sums } =
                messages;
            let list = |rows: &[u32]| RowList::<T>::new(device, rows, problem.semiring);
            let of_values = |at: Vec<usize>| list(&positions(at.into_iter())?);
            let own = of_values(own)?;
            let send_values = send_values.into_iter().map(of_values).collect::<Result<Vec<_>>>()?;
            let receive_sums = receive_sums.iter().map(|rows| list(rows));
            let receive_sums = receive_sums.collect::<Result<Vec<_>>>()?;
            let all = list(&(0..call.rows_of_c as u32).collect::<Vec<_>>())?;
            let in_place: Vec<_> = receive_values.iter().map(|range| Some(range.start)).collect();
            let joined = Joined { len: nnz, in_place: &in_place };
            let new = |exchange, joined| {
                GpuMessages::new(&call.ranks, device, exchange, Forwards::default(), joined)
            };
            let (of_values, of_sums) = (new(values, Some(joined))?, new(sums, None)?);
            let sums = DeviceDense::zeros(device, rows, problem.columns, Layout::RowMajor)?;
            let lists = send_values.iter().chain(&receive_sums).chain([&own, &all]);
            let bytes = lists.map(RowList::bytes).sum::<usize>() + sums.data().bytes();
            let bytes = bytes + of_values.bytes() + of_sums.bytes();
            let plan = TeamPlan {
                call,
                device: device.clone(),
                part,
                own,
                of_values,
                of_sums,
                send_values,
                send_sums,
                receive_sums,
                sums,
                rows: all,
            };
            Ok((plan, bytes))
        })
    }

    fn execute(
        &mut self,
        values: DeviceValues<'_, T>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        scale: Scale<T::Accum>,
    ) -> Result<()> {
        let ranks = self.call.ranks.clone();
        let _lock = ranks.lock();
        let factors = scale.over(self.call.problem.semiring);
        let (key, arguments) = call(&self.call.problem, self.call.number, factors);
        let ready = self.prepare(values, b, c);
        let values = ranks.agree(&key, arguments, ready)?;
        let multiplied = self.multiply(values, b, c, scale);
        self.of_sums.conclude(multiplied)
    }

    /// The values, if the operands fit.
    fn prepare<'v>(
        &self,
        values: DeviceValues<'v, T>,
        b: &DeviceDense<T>,
        c: &DeviceDense<T>,
    ) -> Result<&'v DeviceBuffer<T>> {
        let Arguments { problem, pattern, nnz, rows_of_b: of_b, rows_of_c: of_c, .. } = &self.call;
        let values = values.fit("A", *pattern, *nnz)?;
        check_dense(&rows_of_b(problem, *of_b), b)?;
        check_dense(&rows_of_c(problem, *of_c), c)?;
        check_device(&self.device, &[("A", values), ("B", b.data()), ("C", c.data())])?;
        self.of_values.check_idle()?;
        self.of_sums.check_idle()?;
        Ok(values)
    }

    /// The product, once all ranks have agreed on it; this rank's lock is held.
    fn multiply(
        &mut self,
        values: &DeviceBuffer<T>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        scale: Scale<T::Accum>,
    ) -> Result<()> {
        let n = self.call.problem.columns;
        let exchanged = self.exchange_values(values);
        let exchanged = self.of_values.complete(exchanged);
        let mut transport = self.of_sums.begin()?;
        let stream = transport.stream;
        let of_part = exchanged.and_then(|()| self.of_values.joined()).map(DeviceValues::from);
        self.part.execute_locked(of_part, b, &mut self.sums, Scale::new())?;
        for (message, rows) in self.send_sums.iter().enumerate() {
            // SAFETY: nobody writes these rows before the next product.
            let from = unsafe { self.sums.data().part(rows.start * n, rows.len() * n) };
            transport.staging.outgoing[message].copy_from(&from, stream)?;
            transport.queue_send(message)?;
        }
        transport.send_pending()?;
        for _ in 0..self.receive_sums.len() {
            transport.next_message()?;
        }
        // In the order of ranks, whatever came first.
        for (message, rows) in self.receive_sums.iter().enumerate() {
            rows.add(&transport.staging.incoming[message], &mut self.sums, None, stream)?;
        }
        self.rows.store(self.sums.data(), c, scale, stream)?;
        transport.finish()
    }

    /// Sends values of this rank's nonzeros to those who multiply them, and receives others' beside its own.
    fn exchange_values(&mut self, values: &DeviceBuffer<T>) -> Result<()> {
        let mut transport = self.of_values.begin()?;
        let stream = transport.stream;
        for (message, positions) in self.send_values.iter().enumerate() {
            let to = &mut transport.staging.outgoing[message];
            positions.pack_values(values, to, 0, stream)?;
            transport.queue_send(message)?;
        }
        if let Some(all) = &mut transport.staging.joined {
            self.own.pack_values(values, all, 0, stream)?;
        }
        transport.send_pending()?;
        for _ in 0..transport.staging.incoming.len() {
            transport.next_message()?;
        }
        transport.finish()
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpmmRequest<DistPattern<I, O>>, T>
    for Replicated<Gpu>
{
    type Plan = GpuReplicatedSpmmPlan<T>;

    fn plan(&self, request: SpmmRequest<DistPattern<I, O>>) -> Result<GpuReplicatedSpmmPlan<T>> {
        GpuReplicatedSpmmPlan::new(&request.pattern, &request.problem, self)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::swap;

    use gustav_core::{Dense, Layout, Result, Scale};
    use gustav_cuda::{Device, DeviceBuffer, DeviceDense, RowList};

    use super::super::cpu::tests::{N, OnCpu, RANKS, check, pattern};
    use super::TeamPlan;
    use crate::testing::on_ranks;
    use crate::{Gpu, Ranks};

    fn execute_on(device: &Device, plan: &mut TeamPlan<f32>) -> Result<Vec<f32>> {
        let values = DeviceBuffer::from_slice(device, &[1.0; 4 * RANKS], "values")?;
        let b = Dense::from_row_major(2, N, vec![1.0; 2 * N])?;
        let b = DeviceDense::upload(device, &b.view())?;
        let mut c = DeviceDense::zeros(device, 2, N, Layout::RowMajor)?;
        plan.execute((&values).into(), &b, &mut c, Scale::new())?;
        Ok(c.download()?.data().to_vec())
    }

    /// The GPU of rank 3, which sends values and receives sums, fails before or after either, or in between; even ranks
    /// compute on CPUs.
    #[test]
    #[ignore = "needs a CUDA device"]
    fn an_error_of_a_gpu_is_on_every_rank() {
        type Exchange = fn(&mut TeamPlan<f32>, &mut RowList<f32>, &mut DeviceDense<f32>);
        let steps: [Exchange; 4] = [
            |plan, list, _| swap(&mut plan.send_values[0], list),
            |plan, list, _| swap(&mut plan.own, list),
            |plan, _, sums| swap(&mut plan.sums, sums),
            |plan, list, _| swap(&mut plan.rows, list),
        ];
        for exchange in steps {
            on_ranks(Ranks::in_process(RANKS), |ranks| {
                let rank = ranks.rank();
                if rank % 2 == 0 {
                    let mut member = OnCpu::new(&ranks);
                    return check((rank, 3), [member.execute(), member.execute()]);
                }
                let (device, pattern) = (Device::cuda(0).unwrap(), pattern(&ranks));
                let problem = pattern.spmm(N).problem;
                let gpu = Gpu::new(device.clone());
                let mut plan = TeamPlan::new(&pattern, &problem, &gpu, 2).unwrap().0;
                // A row that nothing has, and sums of another shape.
                let mut list = RowList::new(&device, &[1 << 20], problem.semiring).unwrap();
                let mut sums = DeviceDense::zeros(&device, 2, 1, Layout::RowMajor).unwrap();
                let mut swapped = |plan: &mut _| {
                    if rank == 3 {
                        exchange(plan, &mut list, &mut sums);
                    }
                };
                swapped(&mut plan);
                let failed = execute_on(&device, &mut plan);
                swapped(&mut plan);
                check((rank, 3), [failed, execute_on(&device, &mut plan)]);
            });
        }
    }
}
