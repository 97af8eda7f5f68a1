//! One engine solving a program again and again.

use std::collections::BTreeMap;
use std::time::Instant;

use gustav::Device;
use gustav_core::{Csr, Dense, Result};

use super::engine::{Engine, Rival};
use super::program::Program;
use crate::Record;
use crate::timing::{Runner, quantile};

/// A program with one engine.
pub(super) struct Solver<'a> {
    program: &'static Program,
    a: &'a Csr<f32>,
    columns: usize,
    rival: Option<Rival>,
    engine: Result<Box<dyn Engine>, Option<gustav_core::Error>>,
    plan_ms: f64,
    /// The last solution.
    pub solution: Option<Dense<f32>>,
    // Products of a solution, and milliseconds in the products of every solution.
    products: usize,
    spent: Vec<f64>,
}

impl<'a> Solver<'a> {
    /// Plans; an engine that fails says why when it is run.
    pub fn new(
        program: &'static Program,
        a: &'a Csr<f32>,
        columns: usize,
        device: &Device,
        rival: Option<Rival>,
    ) -> Self {
        let start = Instant::now();
        let engine = (program.engine)(device, a, columns, rival).map_err(Some);
        let plan_ms = start.elapsed().as_secs_f64() * 1e3;
        let (solution, products, spent) = (None, 0, Vec::new());
        Solver { program, a, columns, rival, engine, plan_ms, solution, products, spent }
    }

    /// `blank` with what is known of this engine.
    pub fn describe(&self, blank: &Record) -> Record {
        let (engine, algorithm) = match self.rival {
            None => ("gustav", "auto"),
            Some(Rival::Vendor) => ("vendor", "default"),
            Some(Rival::Loop) => ("loop", "default"),
        };
        Record {
            engine: engine.into(),
            algorithm: algorithm.into(),
            plan_ms: Some(self.plan_ms),
            products: Some(self.products as u64),
            versions: BTreeMap::from([("gustav".into(), env!("CARGO_PKG_VERSION").into())]),
            ..blank.clone()
        }
    }

    /// Median time of one solution's products.
    pub fn product_ms(&self) -> Option<f64> {
        quantile(&self.spent, 0.5)
    }
}

impl Runner for Solver<'_> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        let engine = match &mut self.engine {
            Ok(engine) => engine,
            Err(error) => return error.take().map_or(Ok(Vec::new()), Err),
        };
        let mut times = Vec::new();
        for k in 0..wake + repeats {
            let start = Instant::now();
            let (solution, products) = (self.program.solve)(self.a, self.columns, &mut **engine)?;
            let ms = start.elapsed().as_secs_f64() * 1e3;
            let spent = engine.take_spent().as_secs_f64() * 1e3;
            if k >= wake {
                times.push(ms);
                self.spent.push(spent);
            }
            (self.solution, self.products) = (Some(solution), products);
        }
        Ok(times)
    }
}
