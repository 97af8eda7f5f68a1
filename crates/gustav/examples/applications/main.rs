//! What a faster product does to whole programs: conjugate gradients with many right-hand sides,
//! the forward pass of a two-layer graph convolution, shortest paths between all pairs.
//!
//! `cargo run --release -p gustav --example applications -- cg|gcn|paths [MATRIX] [COLUMNS] [DEVICE]`
//!
//! MATRIX is a file, or `gen:` and the description of a generated matrix; only its pattern is
//! used. Each program runs with gustav's choice of algorithm and with a kernel to compare with:
//! on a GPU the vendor's, on a CPU a loop over rows on one thread, which is what a program does
//! that calls no library.

mod conjugate_gradients;
mod engine;
mod graph_convolution;
mod shortest_paths;

use std::process::ExitCode;
use std::time::Instant;

use gustav::{Csr, Dense, Device, Error, Result};

use engine::{Engine, Rival};

/// One of the programs.
struct Program {
    name: &'static str,
    matrix: &'static str,
    columns: usize,
    /// Brings the pattern to the program's matrix.
    prepare: fn(&Csr<f32>) -> Result<Csr<f32>>,
    /// Solves with so many columns; returns the solution and the number of products.
    solve: fn(&Csr<f32>, usize, &mut dyn Engine) -> Result<(Dense<f32>, usize)>,
    /// The engine of the program's semiring.
    engine: fn(&Device, &Csr<f32>, usize, Option<Rival>) -> Result<Box<dyn Engine>>,
}

const PROGRAMS: [Program; 3] = [
    Program {
        name: "cg",
        matrix: "gen:grid5:300x300",
        columns: 32,
        prepare: conjugate_gradients::prepare,
        solve: conjugate_gradients::solve,
        engine: engine::plus_times,
    },
    Program {
        name: "gcn",
        matrix: "gen:rmat:15,16",
        columns: 128,
        prepare: graph_convolution::prepare,
        solve: graph_convolution::solve,
        engine: engine::plus_times,
    },
    Program {
        name: "paths",
        matrix: "gen:road:40x40",
        columns: usize::MAX,
        prepare: shortest_paths::prepare,
        solve: shortest_paths::solve,
        engine: engine::min_plus,
    },
];

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let named = |k: usize| words.get(k).map(String::as_str);
    let program = named(0).and_then(|name| PROGRAMS.iter().find(|p| p.name == name));
    let program = program.ok_or_else(|| Error::Argument {
        name: "program",
        found: named(0).unwrap_or("nothing").into(),
        expected: "cg, gcn or paths, then a matrix, columns and a device".into(),
    })?;
    let matrix = named(1).unwrap_or(program.matrix);
    let columns = match named(2) {
        Some(text) => text.parse().map_err(|_| Error::Argument {
            name: "columns",
            found: text.into(),
            expected: "a number".into(),
        })?,
        None => program.columns,
    };
    let device: Device = named(3).unwrap_or("cpu").parse()?;

    let pattern: Csr<f32> = match matrix.strip_prefix("gen:") {
        Some(text) => text.parse::<gustav::io::Generator>()?.build(1)?,
        None => gustav::io::read_matrix_market(matrix)?,
    };
    let a = (program.prepare)(&pattern.canonicalize()?)?;
    let columns = columns.min(a.ncols());
    println!("{} on {matrix}: {} rows, {} nonzeros", program.name, a.nrows(), a.nnz());
    println!(
        "{:<10} {:>12} {:>12} {:>8} {:>9}",
        "engine", "total ms", "product ms", "share", "products"
    );
    let rival = if device.is_cuda() { Rival::Vendor } else { Rival::Loop };
    let mut solutions = Vec::new();
    for rival in [None, Some(rival)] {
        let mut engine = (program.engine)(&device, &a, columns, rival)?;
        // The first solution warms up; the second counts.
        (program.solve)(&a, columns, &mut *engine)?;
        engine.take_spent();
        let start = Instant::now();
        let (solution, products) = (program.solve)(&a, columns, &mut *engine)?;
        let total = start.elapsed().as_secs_f64() * 1e3;
        let spent = engine.take_spent().as_secs_f64() * 1e3;
        let (name, share) = (engine.name(), 100.0 * spent / total);
        println!("{name:<10} {total:>12.2} {spent:>12.2} {share:>7.0}% {products:>9}");
        solutions.push(solution);
    }
    println!("largest difference of the solutions: {:.1e}", engine::difference(&solutions));
    Ok(())
}

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
            let both = [solve(None), solve(Some(Rival::Loop))];
            assert!(engine::difference(&both) < 1e-4, "{}", program.name);
        }
    }
}
