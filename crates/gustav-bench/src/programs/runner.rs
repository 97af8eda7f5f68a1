//! One engine solving a program again and again.

use std::time::Instant;

use gustav::Device;
use gustav_core::{Csr, Dense, Error, Result};
use gustav_report::{Record, Status, quantile};

use super::child::Child;
use super::engine::{Engine, Rival};
use super::program::Program;
use crate::engine::{PeerProcess, Versions, our_version, timed};
use crate::timing::Runner;

/// A program with one engine.
pub(super) struct Solver<'a> {
    program: &'static Program,
    a: &'a Csr<f32>,
    columns: usize,
    // As records name it.
    name: (String, &'static str),
    versions: Versions,
    engine: Result<Box<dyn Engine + 'a>, Refusal>,
    plan_ms: f64,
    /// Whether it multiplies in a process of its own, so that only its products are timed.
    pub elsewhere: bool,
    /// The last solution.
    pub solution: Option<Dense<f32>>,
    // Products of a solution, and milliseconds in the products of every solution.
    products: usize,
    spent: Vec<f64>,
}

/// Why an engine solves nothing.
struct Refusal {
    status: Status,
    words: String,
}

impl<'a> Solver<'a> {
    /// Plans; an engine that fails says why in its record.
    pub fn new(
        program: &'static Program,
        a: &'a Csr<f32>,
        columns: usize,
        device: &Device,
        rival: Option<Rival>,
    ) -> Self {
        let (plan_ms, engine) = timed(|| (program.engine)(device, a, columns, rival));
        let refused = |e: Error| Refusal { status: Status::Failed, words: e.to_string() };
        let name = match rival {
            None => ("gustav", "auto"),
            Some(Rival::Vendor) => ("vendor", "default"),
            Some(Rival::Loop) => ("loop", "default"),
        };
        let engine = engine.map(|engine| engine as Box<dyn Engine + 'a>).map_err(refused);
        Solver {
            program,
            a,
            columns,
            name: (name.0.into(), name.1),
            versions: our_version(),
            engine,
            plan_ms,
            elsewhere: false,
            solution: None,
            products: 0,
            spent: Vec::new(),
        }
    }

    /// A peer process that multiplies; one that lacks the products is passed over with its words.
    pub fn peer(
        program: &'static Program,
        a: &'a Csr<f32>,
        columns: usize,
        process: &'a mut PeerProcess,
    ) -> Self {
        let (name, versions) = ((process.name().to_owned(), "default"), process.versions().clone());
        let (plan_ms, engine) = timed(|| Child::prepare(process, program, a, columns));
        let refused = |e: Error| Refusal { status: Status::Skipped, words: e.to_string() };
        let engine = engine.map(|c| Box::new(c) as Box<dyn Engine + 'a>).map_err(refused);
        Solver {
            program,
            a,
            columns,
            name,
            versions,
            engine,
            plan_ms,
            elsewhere: true,
            solution: None,
            products: 0,
            spent: Vec::new(),
        }
    }

    /// Whether it can solve anything.
    pub fn is_ready(&self) -> bool {
        self.engine.is_ok()
    }

    /// `blank` with what is known of this engine.
    pub fn describe(&self, blank: &Record) -> Record {
        let (status, message) = match &self.engine {
            Ok(_) => (Status::Ok, None),
            Err(refusal) => (refusal.status, Some(refusal.words.clone())),
        };
        Record {
            engine: self.name.0.clone(),
            algorithm: self.name.1.into(),
            plan_ms: Some(self.plan_ms).filter(|_| self.is_ready()),
            products: Some(self.products as u64),
            versions: self.versions.clone(),
            status,
            message,
            ..blank.clone()
        }
    }

    /// The `q`-quantile of the time of one solution's products.
    pub fn product_ms(&self, q: f64) -> Option<f64> {
        quantile(&self.spent, q)
    }
}

impl Runner for Solver<'_> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        let Ok(engine) = &mut self.engine else { return Ok(Vec::new()) };
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
