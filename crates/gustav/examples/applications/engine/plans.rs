//! gustav's plans, on a CPU and on a GPU.

use gustav::{Device, Result, SoftmaxPlan};

use super::super::algebra::{Algebra, Shape, WeightedSums};
use super::{Attention, Engine, Pair, Sddmm, Softmax, Spmm, Spmv};

/// Plans of one device, chosen as the device says.
pub struct Plans {
    device: Device,
    fused: bool,
    chosen: Vec<String>,
}

impl Plans {
    pub fn new(device: &Device) -> Self {
        Plans { device: device.clone(), fused: false, chosen: Vec::new() }
    }

    /// With softmax and weighted sums in one.
    pub fn fused(device: &Device) -> Self {
        Plans { fused: true, ..Self::new(device) }
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

    fn attention(
        &mut self,
        algebra: &A,
        pattern: &A::Pattern,
        columns: usize,
    ) -> Result<Option<Box<dyn Attention<A>>>> {
        if !self.fused {
            return Ok(None);
        }
        let plans = algebra.plan_weighted_sums(&self.device, pattern, columns)?;
        Ok(Some(Box::new(Fused(plans))))
    }

    fn chosen(&self) -> Vec<String> {
        self.chosen.clone()
    }

    fn name(&self) -> &str {
        "gustav"
    }
}

struct Fused<A: Algebra>(WeightedSums<A>);

impl<A: Algebra> Attention<A> for Fused<A> {
    fn sums(&mut self, pair: Pair<'_, A>, v: &A::Matrix, o: &mut A::Matrix) -> Result<()> {
        A::weighted_sums(&mut self.0, pair, v, o)
    }

    fn gradients(
        &mut self,
        pair: Pair<'_, A>,
        inputs: (&A::Matrix, &A::Matrix, &A::Matrix),
        of_v: &mut A::Matrix,
        of_pair: (&mut A::Matrix, &mut A::Matrix),
    ) -> Result<()> {
        A::weighted_sums_gradients(&mut self.0, pair, inputs, of_v, of_pair)
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
