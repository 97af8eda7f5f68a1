//! What a faster product does to whole programs: conjugate gradients with many right-hand sides,
//! the forward pass of a two-layer graph convolution, shortest paths between all pairs.
//!
//! `cargo run --release -p gustav --example applications -- cg|gcn|paths [MATRIX] [COLUMNS] [DEVICE]`
//!
//! MATRIX is a file, or `gen:` and the description of a generated matrix; only its pattern is
//! used. Each program runs with gustav's choice of algorithm and with a kernel to compare with:
//! on a GPU the vendor's where there is one, else a loop over rows on one thread, which is what a
//! program does that calls no library. On a GPU every product moves its operands there and back.

mod conjugate_gradients;
mod engine;
mod graph_convolution;
mod program;
mod shortest_paths;

use std::process::ExitCode;
use std::time::Instant;

use gustav::{Csr, Device, Error, Result};

use engine::Rival;
use program::PROGRAMS;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

/// The matrix and the columns to try a program with.
fn usual(program: &str) -> (&'static str, usize) {
    match program {
        "cg" => ("gen:grid5:300x300", 32),
        "gcn" => ("gen:rmat:15,16", 128),
        _ => ("gen:road:40x40", usize::MAX),
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
    let (usual, width) = usual(program.name);
    let matrix = named(1).unwrap_or(usual);
    let columns = match named(2) {
        Some(text) => text.parse().map_err(|_| Error::Argument {
            name: "columns",
            found: text.into(),
            expected: "a number".into(),
        })?,
        None => width,
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
    let vendor = device.is_cuda() && program.vendor();
    let rival = if vendor { Rival::Vendor } else { Rival::Loop };
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
        let share = 100.0 * spent / total;
        let name = match rival {
            None => "gustav",
            Some(Rival::Vendor) => "vendor",
            Some(Rival::Loop) => "loop",
        };
        println!("{name:<10} {total:>12.2} {spent:>12.2} {share:>7.0}% {products:>9}");
        solutions.push(solution);
    }
    if let [one, other] = &solutions[..] {
        println!("largest difference of the solutions: {:.1e}", engine::difference(one, other));
    }
    Ok(())
}
