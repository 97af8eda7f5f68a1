//! The programs: what each needs, how it solves, and who multiplies for it.

use gustav::{Csr, Dense, Device, Result, Semiring};

use super::engine::{self, Engine, Rival};
use super::{conjugate_gradients, graph_convolution, shortest_paths};

/// One of the programs.
pub struct Program {
    /// What the command line calls it.
    pub name: &'static str,
    /// What its products add and multiply by.
    pub semiring: Semiring,
    /// Brings the pattern to the program's matrix.
    pub prepare: fn(&Csr<f32>) -> Result<Csr<f32>>,
    /// Solves with so many columns; returns the solution and the number of products.
    pub solve: fn(&Csr<f32>, usize, &mut dyn Engine) -> Result<(Dense<f32>, usize)>,
    /// The engine of the program's semiring.
    pub engine: fn(&Device, &Csr<f32>, usize, Option<Rival>) -> Result<Box<dyn Engine>>,
}

impl Program {
    /// Whether vendors have a kernel for its semiring on a GPU.
    pub fn vendor(&self) -> bool {
        self.semiring == Semiring::PlusTimes
    }
}

/// All of them.
pub const PROGRAMS: [Program; 3] = [
    Program {
        name: "cg",
        semiring: Semiring::PlusTimes,
        prepare: conjugate_gradients::prepare,
        solve: conjugate_gradients::solve,
        engine: engine::plus_times,
    },
    Program {
        name: "gcn",
        semiring: Semiring::PlusTimes,
        prepare: graph_convolution::prepare,
        solve: graph_convolution::solve,
        engine: engine::plus_times,
    },
    Program {
        name: "paths",
        semiring: Semiring::MinPlus,
        prepare: shortest_paths::prepare,
        solve: shortest_paths::solve,
        engine: engine::min_plus,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_solves_alike_with_both_engines() {
        for program in &PROGRAMS {
            let pattern: Csr<f32> =
                "grid5:12x12".parse::<gustav::io::Generator>().unwrap().build(3).unwrap();
            let a = (program.prepare)(&pattern).unwrap();
            let solve = |rival| {
                let columns = 8;
                let device = Device::cpu();
                let mut engine = (program.engine)(&device, &a, columns, rival).unwrap();
                (program.solve)(&a, columns, &mut *engine).unwrap().0
            };
            let difference = engine::difference(&solve(None), &solve(Some(Rival::Loop)));
            assert!(difference < 1e-4, "{}: {difference}", program.name);
        }
    }
}
