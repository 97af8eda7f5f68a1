//! gustav's plans, on a CPU and on a GPU.

use gustav::{Device, Result, SoftmaxPlan};

use super::super::algebra::{Algebra, Shape};
use super::{Engine, Sddmm, Softmax, Spmm, Spmv};

/// Plans of one device, chosen as the device says.
pub struct Plans {
    device: Device,
    chosen: Vec<String>,
}

impl Plans {
    pub fn new(device: &Device) -> Self {
        Plans { device: device.clone(), chosen: Vec::new() }
    }
}

impl<A: Algebra> Engine<'static, A> for Plans {
    fn spmm(&mut self, pattern: &A::Pattern, shape: Shape) -> Result<Spmm<'static, A>> {
        let mut plan = A::plan_spmm(&self.device, pattern, shape)?;
        self.chosen.push(format!("spmm {} {}", shape.columns, plan.algorithm()));
        Ok(Box::new(move |values, b, c| A::spmm(&mut plan, values, b, c)))
    }

    fn spmv(&mut self, pattern: &A::Pattern) -> Result<Spmv<'static, A>> {
        let mut plan = A::plan_spmv(&self.device, pattern)?;
        self.chosen.push(format!("spmv {}", plan.algorithm()));
        Ok(Box::new(move |values, x, y| A::spmv(&mut plan, values, x, y)))
    }

    fn sddmm(&mut self, pattern: &A::Pattern, depth: usize) -> Result<Sddmm<'static, A>> {
        let mut plan = A::plan_sddmm(&self.device, pattern, depth)?;
        self.chosen.push(format!("sddmm {depth} {}", plan.algorithm()));
        Ok(Box::new(move |x, y, values| A::sddmm(&mut plan, x, y, values)))
    }

    fn softmax(&mut self, pattern: &A::Pattern) -> Result<Box<dyn Softmax<A>>> {
        Ok(Box::new(Planned(A::plan_softmax(&self.device, pattern)?)))
    }

    fn chosen(&self) -> Vec<String> {
        self.chosen.clone()
    }

    fn name(&self) -> &str {
        "gustav"
    }
}

struct Planned(SoftmaxPlan<'static, f32>);

impl<A: Algebra> Softmax<A> for Planned {
    fn weights(&mut self, scores: &A::Vector, to: &mut A::Vector) -> Result<()> {
        A::softmax(&mut self.0, scores, to)
    }

    fn gradient(
        &mut self,
        weights: &A::Vector,
        of_weights: &A::Vector,
        to: &mut A::Vector,
    ) -> Result<()> {
        A::softmax_gradient(&mut self.0, weights, of_weights, to)
    }
}
