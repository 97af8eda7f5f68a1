//! Products with a dense matrix or a vector, planned on a rank's CPU or on its GPU, alone or in a team.

use gustav::cuda::{CudaDevice, DeviceBuffer, DeviceDense};
use gustav::{Dense, Index, Problem, Scale};
use gustav_mpi::{
    Device, DistCsr, DistPattern, DistScalar, Explanation, Gpu, GpuReplicatedSpmmPlan, GpuSpmmPlan,
    Replicated, ReplicatedSpmmPlan, SpmmPlan,
};

use crate::failure::{Failure, Result};

/// Where a rank computes by itself.
pub enum Place {
    /// On its CPU.
    Cpu(Device),
    /// On its GPU.
    Gpu(Gpu),
}

/// Where a rank computes a product with a dense matrix.
pub enum Location {
    /// On its CPU.
    Cpu(Device),
    /// On its CPU, in a team of ranks.
    Team(Replicated),
    /// On its GPU.
    Gpu(Gpu),
    /// On its GPU, in a team of ranks.
    GpuTeam(Replicated<Gpu>),
}

/// A plan, and on a GPU the operands there.
pub enum Engine<T: DistScalar> {
    /// On the CPU.
    Cpu(Box<SpmmPlan<T>>),
    /// On the CPU, in a team of ranks.
    Team(Box<ReplicatedSpmmPlan<T>>),
    /// On a GPU.
    Gpu(Box<OnGpu<T>>),
}

/// A plan with the operands on its GPU.
pub struct OnGpu<T: DistScalar> {
    plan: GpuPlan<T>,
    device: CudaDevice,
    operands: Option<Operands<T>>,
}

enum GpuPlan<T: DistScalar> {
    Alone(Box<GpuSpmmPlan<T>>),
    Team(Box<GpuReplicatedSpmmPlan<T>>),
}

struct Operands<T> {
    values: DeviceBuffer<T>,
    b: DeviceDense<T>,
    c: DeviceDense<T>,
    before: Option<DeviceDense<T>>,
}

impl<T: DistScalar> Engine<T> {
    /// Plans `problem`. Collective.
    ///
    /// # Errors
    /// Those of the plan, on every rank.
    pub fn new<I: Index, O: Index>(
        location: &Location,
        pattern: &DistPattern<I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let on_gpu = |plan, gpu: &Gpu| {
            Engine::Gpu(Box::new(OnGpu { plan, device: gpu.device().clone(), operands: None }))
        };
        Ok(match location {
            Location::Cpu(device) => {
                Engine::Cpu(Box::new(SpmmPlan::new(pattern, problem, device)?))
            }
            Location::Team(device) => {
                Engine::Team(Box::new(ReplicatedSpmmPlan::new(pattern, problem, device)?))
            }
            Location::Gpu(gpu) => {
                on_gpu(GpuPlan::Alone(Box::new(GpuSpmmPlan::new(pattern, problem, gpu)?)), gpu)
            }
            Location::GpuTeam(device) => {
                let plan = GpuReplicatedSpmmPlan::new(pattern, problem, device)?;
                on_gpu(GpuPlan::Team(Box::new(plan)), device.device())
            }
        })
    }

    /// What the plan says of itself.
    pub fn explain(&self) -> &Explanation {
        match self {
            Engine::Cpu(plan) => plan.explain(),
            Engine::Team(plan) => plan.explain(),
            Engine::Gpu(on) => match &on.plan {
                GpuPlan::Alone(plan) => plan.explain(),
                GpuPlan::Team(plan) => plan.explain(),
            },
        }
    }

    /// Copies the operands to the GPU, where there is one: `c` may be what is there before the first execution.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn upload<I: Index, O: Index>(
        &mut self,
        a: &DistCsr<T, I, O>,
        b: &Dense<T>,
        c: &Dense<T>,
        before: Option<&Dense<T>>,
    ) -> Result<()> {
        let Engine::Gpu(on) = self else { return Ok(()) };
        let to = &on.device;
        let values = a.local().values().as_slice();
        on.operands = Some(Operands {
            values: DeviceBuffer::from_slice(to, values, "values of A on the device")?,
            b: DeviceDense::upload(to, &b.view())?,
            c: DeviceDense::upload(to, &c.view())?,
            before: before.map(|m| DeviceDense::upload(to, &m.view())).transpose()?,
        });
        Ok(())
    }

    /// Makes C what it is before a product: on the CPU `c`, on a GPU the matrix there.
    ///
    /// # Errors
    /// Of the device.
    pub fn prepare(&mut self, c: &mut Dense<T>, before: Option<&Dense<T>>) -> Result<()> {
        match self {
            Engine::Cpu(_) | Engine::Team(_) => {
                if let Some(before) = before {
                    c.data_mut().copy_from_slice(before.data());
                }
            }
            Engine::Gpu(on) => {
                let Operands { c, before, .. } = on.operands.as_mut().ok_or_else(not_uploaded)?;
                if let Some(before) = before {
                    c.data_mut().copy_from(before.data(), on.device.stream())?;
                    on.device.stream().synchronize()?;
                }
            }
        }
        Ok(())
    }

    /// Multiplies: on the CPU into `c`, on a GPU into the matrix there. Collective.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn execute<I: Index, O: Index>(
        &mut self,
        a: &DistCsr<T, I, O>,
        b: &Dense<T>,
        c: &mut Dense<T>,
        scale: Scale<T::Accum>,
    ) -> Result<()> {
        match self {
            Engine::Cpu(plan) => Ok(plan.execute(a, b, c, scale)?),
            Engine::Team(plan) => Ok(plan.execute(a, b, c, scale)?),
            Engine::Gpu(on) => {
                let Operands { values, b, c, .. } =
                    on.operands.as_mut().ok_or_else(not_uploaded)?;
                match &mut on.plan {
                    GpuPlan::Alone(plan) => Ok(plan.execute(&*values, b, c, scale)?),
                    GpuPlan::Team(plan) => Ok(plan.execute(&*values, b, c, scale)?),
                }
            }
        }
    }

    /// Copies C from the GPU to `c`, where there is one.
    ///
    /// # Errors
    /// Of the device.
    pub fn download(&self, c: &mut Dense<T>) -> Result<()> {
        match self {
            Engine::Gpu(on) => {
                let operands = on.operands.as_ref().ok_or_else(not_uploaded)?;
                Ok(operands.c.data().read(c.data_mut())?)
            }
            Engine::Cpu(_) | Engine::Team(_) => Ok(()),
        }
    }
}

/// A product on a GPU before its operands are there.
pub fn not_uploaded() -> Failure {
    Failure::Request(
        "the operands are not on the GPU: they are copied there before a product".into(),
    )
}
