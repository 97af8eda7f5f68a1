//! What a faster product does to whole programs: conjugate gradients with many right-hand sides,
//! eigenvectors, PageRank, the training of a graph convolution and of a graph attention network of two layers,
//! shortest paths between all pairs.
//!
//! `cargo run --release -p gustav --example applications -- PROGRAM [MATRIX] [COLUMNS] [DEVICE]`
//!
//! PROGRAM is cg, eigenvectors, pagerank, gcn-training, gat-training or paths. MATRIX is a file, or `gen:` and
//! the description of a generated matrix; only its pattern is used. Each program runs with gustav's
//! choice of algorithm and with another engine: on a GPU cuSPARSE, else loops over rows on one
//! thread, which is what a program does that calls no library. Everything stays in the memory of
//! the device; what is between products is computed by cuBLAS and by kernels of the program
//! (`algebra/steps.cu`), on the stream that the products are queued on.

mod algebra;
mod conjugate_gradients;
mod eigenvectors;
mod engine;
mod graph;
mod graph_attention;
mod graph_convolution;
mod page_rank;
mod program;
mod shortest_paths;
mod training;

use std::process::ExitCode;
use std::time::Instant;

use gustav::{Csr, Device, Error, Result};

use algebra::{Algebra, Gpu, Host};
use engine::{Cusparse, Loops, Plans, Products};
use program::{Check, Description, FUSED, PROGRAMS, difference};

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
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
        "eigenvectors" => ("gen:grid5:300x300", 16),
        "paths" => ("gen:road:40x40", usize::MAX),
        _ => ("gen:rmat:15,16", 64),
    }
}

/// Runs the program with every engine; returns whether all results are right.
fn run(words: &[String]) -> Result<bool> {
    let named = |k: usize| words.get(k).map(String::as_str);
    let program = named(0).and_then(|name| PROGRAMS.iter().find(|p| p.name == name));
    let program = program.ok_or_else(|| Error::Argument {
        name: "program",
        found: named(0).unwrap_or("nothing").into(),
        expected: format!(
            "{}, then a matrix, columns and a device",
            PROGRAMS.each_ref().map(|p| p.name).join(", ")
        ),
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
    let columns = program.columns(columns, &a);
    println!("{} on {matrix}: {} rows, {} nonzeros", program.name, a.nrows(), a.nnz());
    println!(
        "{:<10} {:>12} {:>12} {:>8} {:>9}",
        "engine", "total ms", "product ms", "share", "products"
    );
    let plans = Plans::new(&device);
    let fused = Plans::fused(&device);
    let mut results = match device.is_cuda() {
        true => vec![
            timed(program, "gustav", Products::new(Gpu::new(&device)?, plans), &a, columns)?,
            timed(
                program,
                "cusparse",
                Products::new(Gpu::new(&device)?, Cusparse::new(&device)),
                &a,
                columns,
            )?,
        ],
        false => vec![
            timed(program, "gustav", Products::new(Host::new(&device), plans), &a, columns)?,
            timed(program, "loop", Products::new(Host::new(&device), Loops), &a, columns)?,
        ],
    };
    if program.attends() {
        results.push(match device.is_cuda() {
            true => timed(program, FUSED, Products::new(Gpu::new(&device)?, fused), &a, columns)?,
            false => timed(program, FUSED, Products::new(Host::new(&device), fused), &a, columns)?,
        });
    }
    match program.check {
        Check::Residual { of, most } => {
            let left: Vec<f64> = results.iter().map(|x| of(&a, columns, x)).collect();
            let found: Vec<_> = left.iter().map(|left| format!("{left:.1e}")).collect();
            println!("what is left over: {}; at most {most:.1e}", found.join(" and "));
            // NaN is not right.
            Ok(left.iter().all(|left| *left <= most))
        }
        Check::Losses { data, most } => {
            let (first, last) = (results[0][0], results[0][results[0].len() - 1]);
            let features = data(&a, columns).features.columns;
            println!("{features} features a vertex, loss {first:.4} to {last:.4}");
            let off: Vec<f64> = results.iter().map(|x| difference(x, &results[1])).collect();
            let found: Vec<_> = off.iter().map(|off| format!("{off:.1e}")).collect();
            println!("differences of the losses: {}; at most {most:.1e}", found.join(" and "));
            Ok(off.iter().all(|off| *off <= most))
        }
    }
}

/// Runs a program and prints its times; returns its result.
fn timed<A: Algebra>(
    program: &Description,
    name: &str,
    mut products: Products<'_, A>,
    a: &Csr<f32>,
    columns: usize,
) -> Result<Vec<f32>> {
    let meter = products.meter();
    let mut running = program.start(&mut products, a, columns)?;
    // The first run warms up, and the third one's products are timed.
    running.run()?;
    let start = Instant::now();
    running.run()?;
    let total = start.elapsed().as_secs_f64() * 1e3 / program.repeats() as f64;
    meter.take()?;
    meter.time(true);
    running.run()?;
    let (count, spent) = meter.take()?;
    let spent = spent / program.repeats() as f64;
    let (share, count) = (100.0 * spent / total, count / program.repeats());
    let chosen = products.chosen();
    println!("{name:<10} {total:>12.3} {spent:>12.3} {share:>7.0}% {count:>9} {chosen}");
    running.result()
}
