//! G over the lengths of rows: a product with a diagonal matrix, on whatever device.

use gustav_core::{Buffer, Dense, Layout, Pattern, Problem, Result};
use gustav_cpu::CpuScalar;

use crate::cuda::{DeviceBuffer, DeviceDense};
use crate::operands::DenseOperand;
use crate::{Device, SpmmPlan};

/// A diagonal matrix, and a buffer for its product with G.
pub struct Mean<T: CpuScalar> {
    device: Device,
    plan: SpmmPlan<'static, T>,
    inverse: Vec<T>,
    /// Rows, columns and layout of G.
    shape: (usize, usize, Layout),
    host: Option<Dense<T>>,
    on_gpu: Option<(DeviceBuffer<T>, DeviceDense<T>)>,
}

impl<T: CpuScalar> Mean<T> {
    /// For rows of op(A) with these inverse lengths.
    pub(super) fn plan(device: &Device, inverse: Vec<T>, problem: &Problem) -> Result<Self> {
        let (rows, columns, layout) = (inverse.len(), problem.columns, problem.layout_c);
        let offsets: Buffer<u64> = (0..=rows as u64).collect::<Vec<_>>().into();
        let indices: Buffer<u64> = (0..rows as u64).collect::<Vec<_>>().into();
        let diagonal = Pattern::<u64, u64>::new(rows, rows, offsets, indices)?;
        let request = diagonal.spmm(columns).layouts(layout, layout).calls(problem.calls);
        // Named choices are of the products, not of this one.
        let plain = device.clone().choose(gustav_plan::Chooser::Auto);
        Ok(Mean {
            device: device.clone(),
            plan: request.plan(&plain)?,
            inverse,
            shape: (rows, columns, layout),
            host: None,
            on_gpu: None,
        })
    }

    /// Calls `product` with G over the lengths of rows, where G is.
    pub(super) fn scaled(
        &mut self,
        g: DenseOperand<'_, T>,
        product: impl FnOnce(DenseOperand<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let (rows, columns, layout) = self.shape;
        match g {
            DenseOperand::Host(g) => {
                let to = match &mut self.host {
                    Some(to) => to,
                    none => none.insert(Dense::zeros(rows, columns, layout)?),
                };
                self.plan.execute(&self.inverse, g, &mut *to, ())?;
                product(DenseOperand::Host(to.view()))
            }
            DenseOperand::Device(g) => {
                let (inverse, to) = match &mut self.on_gpu {
                    Some(on_gpu) => on_gpu,
                    none => {
                        let gpu = self.device.cuda_device()?;
                        let what = "inverse lengths of rows";
                        let inverse = DeviceBuffer::from_slice(gpu, &self.inverse, what)?;
                        none.insert((inverse, DeviceDense::zeros(gpu, rows, columns, layout)?))
                    }
                };
                self.plan.execute(&*inverse, g, &mut *to, ())?;
                product(DenseOperand::Device(to))
            }
        }
    }
}
