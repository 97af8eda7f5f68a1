//! One engine running a program again and again.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use gustav::Device;
use gustav_core::{Csr, Error, Result};
use gustav_report::{CUSPARSE_BEST, Record, Status, quantile};

use super::LOOP;
use super::algebra::{Algebra, Gpu, Host};
use super::child::Child;
use super::engine::{Cusparse, Loops, Meter, Plans, Products};
use super::network::Network;
use super::program::{Check, Description, FUSED, Program};
use crate::engine::{PeerProcess, Versions, our_version, timed};
use crate::timing::Runner;

// Runs whose products are timed where that would slow down the timed runs.
const PRODUCT_RUNS: usize = 3;

/// A program with one engine.
pub(super) struct Solver<'a> {
    // As records name it.
    name: String,
    algorithm: &'static str,
    versions: Versions,
    running: Result<Running<'a>, Refusal>,
    plan_ms: f64,
    /// Runs are counted as so many.
    repeats: usize,
    /// The last result.
    pub result: Option<Vec<f32>>,
    // Products of a run, and milliseconds in the products of every run that was metered.
    products: usize,
    spent: Vec<f64>,
}

/// A program that is ready, by whoever multiplies.
enum Running<'a> {
    /// In this process.
    Here { program: Box<dyn Program + 'a>, meter: Rc<dyn Meter>, chosen: String, queued: bool },
    /// With products in another process, whose milliseconds are added up.
    Apart { program: Box<dyn Program + 'a>, meter: Rc<dyn Meter>, spent: Rc<Cell<f64>> },
    /// A network of a peer's own.
    Peer(Network<'a>),
}

/// Why an engine runs nothing.
struct Refusal {
    status: Status,
    words: String,
}

impl From<Error> for Refusal {
    fn from(e: Error) -> Self {
        let lacking = matches!(e, Error::Unsupported { .. });
        let status = if lacking { Status::Skipped } else { Status::Failed };
        Refusal { status, words: e.to_string() }
    }
}

fn here<'a, A: Algebra>(
    program: &Description,
    mut products: Products<'a, A>,
    a: &Csr<f32>,
    columns: usize,
    queued: bool,
) -> Result<Running<'a>> {
    let meter = products.meter();
    meter.time(!queued);
    let program = program.start(&mut products, a, columns)?;
    Ok(Running::Here { program, meter, chosen: products.chosen(), queued })
}

impl<'a> Solver<'a> {
    /// Plans; an engine that fails says why in its record. `peer` is gustav itself when absent, `fused` where it
    /// has an attention.
    pub fn new(
        program: &Description,
        a: &Csr<f32>,
        columns: usize,
        device: &Device,
        peer: Option<&str>,
        fused: bool,
    ) -> Self {
        let host = || Host::new(device);
        let plans = || if fused { Plans::fused(device) } else { Plans::new(device) };
        let (plan_ms, running) = timed(|| match (peer, device.is_cuda()) {
            (None, true) => {
                let products = Products::new(Gpu::new(device)?, plans());
                here(program, products, a, columns, true)
            }
            (None, false) => here(program, Products::new(host(), plans()), a, columns, false),
            (Some(LOOP), _) => here(program, Products::new(host(), Loops), a, columns, false),
            (Some(_), _) => {
                let products = Products::new(Gpu::new(device)?, Cusparse::new(device));
                here(program, products, a, columns, true)
            }
        });
        let versions = match peer {
            Some(CUSPARSE_BEST) => gustav_cuda::cusparse::version()
                .map_or_else(|_| Versions::new(), |v| Versions::from([("cusparse".into(), v)])),
            _ => our_version(),
        };
        let algorithm = match peer {
            None if fused => FUSED,
            None => "auto",
            Some(_) => "default",
        };
        let name = peer.unwrap_or("gustav").to_owned();
        Self::of(name, algorithm, versions, program, running, plan_ms)
    }

    /// A peer process, which multiplies or trains a network of its own.
    pub fn peer(
        program: &Description,
        a: &'a Csr<f32>,
        columns: usize,
        device: &Device,
        process: &'a mut PeerProcess,
    ) -> Self {
        let (name, versions) = (process.name().to_owned(), process.versions().clone());
        let (plan_ms, running) = timed(|| match program.check {
            Check::Losses { data, .. } => {
                let network = Network::new(process, program.name, a, &data(a, columns))?;
                Ok(Running::Peer(network))
            }
            Check::Residual { .. } => {
                let (child, spent) = Child::new(process, a);
                let mut products = Products::new(Host::new(device), child);
                let meter = products.meter();
                let program = program.start(&mut products, a, columns)?;
                Ok(Running::Apart { program, meter, spent })
            }
        });
        let mut made = Self::of(name, "default", versions, program, running, plan_ms);
        // A library without the product has not failed.
        if let (Err(refusal), Check::Residual { .. }) = (&mut made.running, program.check) {
            refusal.status = Status::Skipped;
        }
        made
    }

    fn of(
        name: String,
        algorithm: &'static str,
        versions: Versions,
        program: &Description,
        running: Result<Running<'a>>,
        plan_ms: f64,
    ) -> Self {
        Solver {
            name,
            algorithm,
            versions,
            running: running.map_err(Refusal::from),
            plan_ms,
            repeats: program.repeats(),
            result: None,
            products: 0,
            spent: Vec::new(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it multiplies in a process of its own, so that only its products are timed.
    pub fn is_apart(&self) -> bool {
        matches!(self.running, Ok(Running::Apart { .. }))
    }

    /// `blank` with what is known of this engine.
    pub fn describe(&self, blank: &Record) -> Record {
        let (status, message) = match &self.running {
            Ok(_) => (Status::Ok, None),
            Err(refusal) => (refusal.status, Some(refusal.words.clone())),
        };
        let chosen = match &self.running {
            Ok(Running::Here { chosen, .. }) => Some(chosen.clone()).filter(|c| !c.is_empty()),
            _ => None,
        };
        Record {
            engine: self.name.clone(),
            algorithm: self.algorithm.into(),
            chosen,
            plan_ms: Some(self.plan_ms).filter(|_| self.running.is_ok()),
            products: Some((self.products / self.repeats) as u64).filter(|n| *n > 0),
            versions: self.versions.clone(),
            status,
            message,
            ..blank.clone()
        }
    }

    /// The `q`-quantile of the time of one run's products.
    pub fn product_ms(&self, q: f64) -> Option<f64> {
        quantile(&self.spent, q)
    }

    /// Times the products of runs of their own, where the timed ones did not.
    ///
    /// # Errors
    /// Whatever stops the engine.
    pub fn time_products(&mut self) -> Result<()> {
        let Ok(Running::Here { program, meter, queued: true, .. }) = &mut self.running else {
            return Ok(());
        };
        meter.time(true);
        for _ in 0..PRODUCT_RUNS {
            let (_, _, spent) = metered(&mut **program, &**meter)?;
            self.spent.push(spent / self.repeats as f64);
        }
        Ok(())
    }
}

/// Milliseconds of a run, its products, and the milliseconds in them.
fn metered(program: &mut dyn Program, meter: &dyn Meter) -> Result<(f64, usize, f64)> {
    meter.take()?;
    let start = Instant::now();
    program.run()?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let (products, spent) = meter.take()?;
    Ok((ms, products, spent))
}

impl Runner for Solver<'_> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        let Ok(running) = &mut self.running else { return Ok(Vec::new()) };
        let parts = self.repeats as f64;
        let mut times = Vec::new();
        for k in 0..wake + repeats {
            let (ms, spent) = match running {
                Running::Here { program, meter, queued, .. } => {
                    let (ms, products, spent) = metered(&mut **program, &**meter)?;
                    self.products = products;
                    (ms, (!*queued).then_some(spent))
                }
                Running::Apart { program, meter, spent } => {
                    spent.set(0.0);
                    let (ms, products, _) = metered(&mut **program, &**meter)?;
                    self.products = products;
                    (ms, Some(spent.get()))
                }
                Running::Peer(network) => {
                    network.run()?;
                    (network.ms, None)
                }
            };
            if k >= wake {
                times.push(ms / parts);
                self.spent.extend(spent.map(|spent| spent / parts));
            }
        }
        self.result = Some(match running {
            Running::Here { program, .. } | Running::Apart { program, .. } => program.result()?,
            Running::Peer(network) => network.result()?,
        });
        Ok(times)
    }
}
