//! The programs: what each needs, how it runs, and how its result is checked.

use gustav::{Csr, Result};

use super::algebra::Algebra;
use super::conjugate_gradients::{self, ConjugateGradients};
use super::eigenvectors::{self, Eigenvectors};
use super::engine::Products;
use super::graph_attention::{self, GraphAttention};
use super::graph_convolution::{self, GraphConvolution};
use super::page_rank::{self, PageRank};
use super::shortest_paths::{self, ShortestPaths};
use super::training::{Data, EPOCHS};

/// A program that is ready.
pub trait Program {
    /// Runs from the beginning, and waits for the end.
    fn run(&mut self) -> Result<()>;
    /// What came of the last run: a solution, or the losses of the epochs.
    fn result(&self) -> Result<Vec<f32>>;
}

/// How far a result is from what it should be.
#[derive(Clone, Copy)]
pub enum Check {
    /// By what the solution leaves over, of the matrix and its columns; at most so much.
    Residual { of: fn(&Csr<f32>, usize, &[f32]) -> f64, most: f64 },
    /// By the largest relative distance of its losses to another engine's; at most so much. The
    /// data are those of the matrix and the columns.
    Losses { data: fn(&Csr<f32>, usize) -> Data, most: f64 },
}

#[derive(Clone, Copy)]
enum Kind {
    ConjugateGradients,
    Eigenvectors,
    PageRank,
    GraphConvolution,
    GraphAttention,
    ShortestPaths,
}

/// One of the programs.
pub struct Description {
    /// What the command line calls it.
    pub name: &'static str,
    /// Brings the pattern to the program's matrix.
    pub prepare: fn(&Csr<f32>) -> Result<Csr<f32>>,
    /// How its results are checked.
    pub check: Check,
    kind: Kind,
}

/// What is asked of gustav where a program has an attention: scores, softmax and weighted sums in one.
pub const FUSED: &str = "fused";

impl Description {
    /// The program on the matrix that [`Description::prepare`] made, by the engine of `products`.
    pub fn start<'e, A: Algebra>(
        &self,
        products: &mut Products<'e, A>,
        a: &Csr<f32>,
        columns: usize,
    ) -> Result<Box<dyn Program + 'e>> {
        Ok(match self.kind {
            Kind::ConjugateGradients => Box::new(ConjugateGradients::new(products, a, columns)?),
            Kind::Eigenvectors => Box::new(Eigenvectors::new(products, a, columns)?),
            Kind::PageRank => Box::new(PageRank::new(products, a)?),
            Kind::GraphConvolution => Box::new(GraphConvolution::new(products, a, columns)?),
            Kind::GraphAttention => Box::new(GraphAttention::new(products, a, columns)?),
            Kind::ShortestPaths => Box::new(ShortestPaths::new(products, a, columns)?),
        })
    }

    /// What a run is counted as: the epochs of a training.
    pub fn repeats(&self) -> usize {
        match self.check {
            Check::Residual { .. } => 1,
            Check::Losses { .. } => EPOCHS,
        }
    }

    /// Whether it has an attention.
    pub fn attends(&self) -> bool {
        matches!(self.kind, Kind::GraphAttention)
    }

    /// The columns of a run that is asked for so many.
    pub fn columns(&self, asked: usize, a: &Csr<f32>) -> usize {
        match self.kind {
            Kind::PageRank => 1,
            Kind::Eigenvectors | Kind::ShortestPaths => asked.min(a.ncols()),
            _ => asked,
        }
    }
}

/// All of them.
pub const PROGRAMS: [Description; 6] = [
    Description {
        name: "cg",
        prepare: conjugate_gradients::prepare,
        check: Check::Residual { of: conjugate_gradients::error, most: 1e-3 },
        kind: Kind::ConjugateGradients,
    },
    Description {
        name: "eigenvectors",
        prepare: conjugate_gradients::prepare,
        check: Check::Residual { of: eigenvectors::error, most: 5e-3 },
        kind: Kind::Eigenvectors,
    },
    Description {
        name: "pagerank",
        prepare: page_rank::prepare,
        check: Check::Residual { of: page_rank::error, most: 1e-5 },
        kind: Kind::PageRank,
    },
    Description {
        name: "gcn-training",
        prepare: graph_convolution::prepare,
        check: Check::Losses { data: graph_convolution::data, most: 1e-4 },
        kind: Kind::GraphConvolution,
    },
    Description {
        name: "gat-training",
        prepare: graph_attention::prepare,
        check: Check::Losses { data: graph_attention::data, most: 1e-4 },
        kind: Kind::GraphAttention,
    },
    Description {
        name: "paths",
        prepare: shortest_paths::prepare,
        check: Check::Residual { of: shortest_paths::error, most: 0.0 },
        kind: Kind::ShortestPaths,
    },
];

/// The largest difference of two results, relative to the second.
pub fn difference(one: &[f32], other: &[f32]) -> f64 {
    let pairs = one.iter().zip(other).map(|(x, y)| (f64::from(*x), f64::from(*y)));
    let relative = pairs.map(|(x, y)| (x - y).abs() / y.abs().max(1e-30));
    // A NaN is the largest of all.
    relative.fold(0.0, |most, e| if e > most || e.is_nan() { e } else { most })
}

#[cfg(test)]
mod tests {
    use gustav::Device;

    use super::super::algebra::{Gpu, Host};
    use super::super::engine::{Cusparse, Engine, Loops, Plans};
    use super::*;

    fn result(
        program: &Description,
        a: &Csr<f32>,
        engine: impl Engine<'static, Host> + 'static,
    ) -> Vec<f32> {
        let mut products = Products::new(Host::new(&Device::cpu()), engine);
        let meter = products.meter();
        let mut running = program.start(&mut products, a, program.columns(8, a)).unwrap();
        running.run().unwrap();
        let first = running.result().unwrap();
        running.run().unwrap();
        assert_eq!(first, running.result().unwrap(), "{} begins anew", program.name);
        assert!(meter.take().unwrap().0 > 6, "{} multiplies", program.name);
        first
    }

    #[test]
    fn every_program_is_right_with_plans_and_with_loops() {
        for graph in ["grid5:12x12", "rmat:8,6"] {
            let graph: Csr<f32> = graph.parse::<gustav::io::Generator>().unwrap().build(3).unwrap();
            let graph = graph.canonicalize().unwrap();
            for program in &PROGRAMS {
                let a = (program.prepare)(&graph).unwrap();
                let planned = result(program, &a, Plans::new(&Device::cpu()));
                let looped = result(program, &a, Loops);
                match program.check {
                    Check::Residual { of, most } => {
                        let columns = program.columns(8, &a);
                        for x in [&planned, &looped] {
                            let found = of(&a, columns, x);
                            assert!(found <= most, "{}: {found}", program.name);
                        }
                        let off: Vec<f32> = planned.iter().map(|x| 1.1 * x + 0.1).collect();
                        assert!(of(&a, columns, &off) > most, "{} is checked", program.name);
                    }
                    Check::Losses { most, .. } => {
                        let found = difference(&planned, &looped);
                        assert!(found <= most, "{}: {found}", program.name);
                        let learnt = planned[EPOCHS - 1] < 0.95 * planned[0];
                        assert!(learnt, "{}: {planned:?}", program.name);
                    }
                }
            }
        }
    }

    /// Everything in a GPU's memory gives what host memory gives.
    #[test]
    #[ignore = "needs a CUDA device"]
    fn every_program_is_right_on_a_gpu() {
        let device = Device::cuda(0).expect("a CUDA device");
        for graph in ["grid5:40x40", "rmat:10,8"] {
            let graph: Csr<f32> = graph.parse::<gustav::io::Generator>().unwrap().build(3).unwrap();
            let graph = graph.canonicalize().unwrap();
            for program in &PROGRAMS {
                let a = (program.prepare)(&graph).unwrap();
                for columns in [1, 8, 33, 300] {
                    // A wide network tells the vertices of a small graph apart at once, and losses
                    // of next to nothing differ by much.
                    let columns = if program.repeats() > 1 { columns.min(64) } else { columns };
                    let columns = program.columns(columns, &a);
                    let gpu = || Gpu::new(&device).unwrap();
                    let engines = [
                        Products::new(gpu(), Plans::new(&device)),
                        Products::new(gpu(), Plans::fused(&device)),
                        Products::new(gpu(), Cusparse::new(&device)),
                    ];
                    for mut products in engines {
                        let name = program.name;
                        let running = program.start(&mut products, &a, columns);
                        if name == "paths" && running.is_err() {
                            let refused = running.err().unwrap().to_string();
                            assert!(refused.contains("semiring"), "{refused}");
                            continue;
                        }
                        let mut running = running.unwrap();
                        running.run().unwrap();
                        let first = running.result().unwrap();
                        running.run().unwrap();
                        assert_eq!(first.len(), running.result().unwrap().len());
                        let (found, most) = match program.check {
                            Check::Residual { of, most } => (of(&a, columns, &first), most),
                            Check::Losses { most, .. } => {
                                let host = result_of(program, &a, columns);
                                (difference(&first, &host), most)
                            }
                        };
                        assert!(found <= most, "{name} at {columns}: {found}");
                    }
                }
            }
        }
    }

    fn result_of(program: &Description, a: &Csr<f32>, columns: usize) -> Vec<f32> {
        let device = Device::cpu();
        let mut products = Products::new(Host::new(&device), Plans::new(&device));
        let mut running = program.start(&mut products, a, columns).unwrap();
        running.run().unwrap();
        running.result().unwrap()
    }

    #[test]
    fn matrices_that_are_no_graphs_are_refused() {
        let wide = Csr::<f32>::new(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
        for program in &PROGRAMS {
            let refused = (program.prepare)(&wide).unwrap_err().to_string();
            assert!(refused.contains("as many columns as rows"), "{}: {refused}", program.name);
        }
    }
}
