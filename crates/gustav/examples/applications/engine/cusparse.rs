//! cuSPARSE's products on a GPU, each by the fastest of its algorithms for CSR in a trial, with
//! operands preprocessed. It has no softmax: that one is gustav's.

use gustav::cuda::{Call, DeviceBuffer, DeviceDense, DevicePattern, spmm, spmv};
use gustav::{Algorithm, Chooser, Device, Layout, Result, Semiring};

use super::super::algebra::{Algebra, Gpu, Shape};
use super::{Engine, Sddmm, Softmax, Spmm, Spmv};

// Executions of a trial: untimed, and timed.
const WARMUPS: usize = 2;
const TRIALS: usize = 5;
const CALLS: u64 = 1000;

/// cuSPARSE on `device`.
pub struct Cusparse {
    device: Device,
    chosen: Vec<String>,
}

impl Cusparse {
    pub fn new(device: &Device) -> Self {
        Cusparse { device: device.clone(), chosen: Vec::new() }
    }

    /// The fastest of `plans` when `run` executes them, with its name; the first error when all
    /// fail.
    fn fastest<C: Copy + std::fmt::Debug, P>(
        &mut self,
        product: String,
        configs: &[C],
        plan: impl Fn(C) -> Result<P>,
        mut run: impl FnMut(&mut P) -> Result<()>,
    ) -> Result<P> {
        let stream = self.device.cuda_device()?.stream().clone();
        let mut timed = |config: C| {
            let mut plan = plan(config)?;
            for _ in 0..WARMUPS {
                run(&mut plan)?;
            }
            let start = stream.record()?;
            for _ in 0..TRIALS {
                run(&mut plan)?;
            }
            let spent = start.milliseconds_to(&stream.record()?)?;
            Ok((spent, config, plan))
        };
        let (mut best, mut error) = (None::<(f32, C, P)>, None);
        for config in configs {
            match timed(*config) {
                Ok(found) if best.as_ref().is_none_or(|b| found.0 < b.0) => best = Some(found),
                Ok(_) => {}
                Err(e) => error = error.or(Some(e)),
            }
        }
        match (best, error) {
            (Some((_, config, plan)), _) => {
                self.chosen.push(format!("{product} {config:?}").to_lowercase());
                Ok(plan)
            }
            (None, Some(e)) => Err(e),
            (None, None) => Err(Engine::<Gpu>::lacks(self, "a configuration")),
        }
    }
}

impl Engine<'static, Gpu> for Cusparse {
    fn spmm(&mut self, pattern: &DevicePattern, shape: Shape) -> Result<Spmm<'static, Gpu>> {
        if shape.semiring != Semiring::PlusTimes {
            return Err(Engine::<Gpu>::lacks(self, "products over another semiring"));
        }
        let request = pattern.spmm(shape.columns).calls(CALLS).transpose(shape.transpose);
        let device = pattern.device().clone();
        let values = DeviceBuffer::<f32>::zeros(&device, pattern.nnz(), "values of a trial")?;
        let dense = |rows| DeviceDense::zeros(&device, rows, shape.columns, Layout::RowMajor);
        let (inner, outer) = match shape.transpose {
            false => (pattern.ncols(), pattern.nrows()),
            true => (pattern.nrows(), pattern.ncols()),
        };
        let (b, mut c) = (dense(inner)?, dense(outer)?);
        let mut plan: spmm::SpmmPlan<f32> = self.fastest(
            format!("spmm {}", shape.columns),
            &spmm::vendor::Config::ALL,
            |config| {
                let config = Some(spmm::Config::Vendor(config));
                let options = spmm::Options { config, ..spmm::Options::default() };
                spmm::SpmmPlan::new(pattern, &request.problem, &options)
            },
            |plan| plan.execute(&values, &b, &mut c, Call::new()),
        )?;
        Ok(Box::new(move |values, b, c| plan.execute(values, b, c, Call::new())))
    }

    fn spmv(&mut self, pattern: &DevicePattern) -> Result<Spmv<'static, Gpu>> {
        let request = pattern.spmv().calls(CALLS);
        let device = pattern.device().clone();
        let zeros = |len| DeviceBuffer::<f32>::zeros(&device, len, "operands of a trial");
        let (values, x) = (zeros(pattern.nnz())?, zeros(pattern.ncols())?);
        let mut y = zeros(pattern.nrows())?;
        let mut plan: spmv::SpmvPlan<f32> = self.fastest(
            "spmv".into(),
            &spmv::vendor::Config::ALL,
            |config| {
                let config = Some(spmv::Config::Vendor(config));
                let options = spmv::Options { config, ..spmv::Options::default() };
                spmv::SpmvPlan::new(pattern, &request.problem, &options)
            },
            |plan| plan.execute(&values, &x, &mut y, Call::new()),
        )?;
        Ok(Box::new(move |values, x, y| plan.execute(values, x, y, Call::new())))
    }

    fn sddmm(&mut self, pattern: &DevicePattern, depth: usize) -> Result<Sddmm<'static, Gpu>> {
        let device = self.device.clone().choose(Chooser::Named(Algorithm::Vendor));
        let mut plan = Gpu::plan_sddmm(&device, pattern, depth)?;
        Ok(Box::new(move |x, y, values| Gpu::sddmm(&mut plan, x, y, values)))
    }

    fn softmax(&mut self, pattern: &DevicePattern) -> Result<Box<dyn Softmax<Gpu>>> {
        Engine::<Gpu>::softmax(&mut super::Plans::new(&self.device), pattern)
    }

    fn chosen(&self) -> Vec<String> {
        self.chosen.clone()
    }

    fn name(&self) -> &str {
        "cusparse"
    }
}
