//! A program for the ranks of an MPI job, started by the tests of `tests/mpi` with what it is to do as
//! its first argument.

use std::io::Write;
use std::process::ExitCode;

use gustav_core::{Csr, Dense, Error, Layout, Problem, Result, Scale, Semiring, f16};
use gustav_cpu::Threads;
use gustav_mpi::{
    Communication, Device, DistCsr, DistDense, DistPattern, Mpi, Options, Partition, Ranks,
    SpmmPlan, SpmvPlan,
};

/// Numbers without a pattern, the same on every rank.
fn numbers() -> impl FnMut() -> usize {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as usize
    }
}

/// A matrix of small integers, whose products are exact in f64. Some rows are long, many are empty.
fn matrix(rows: usize, cols: usize) -> Result<Csr<f64>> {
    let mut next = numbers();
    let (mut offsets, mut indices, mut values) = (vec![0_u32], Vec::new(), Vec::new());
    for row in 0..rows {
        let len = [next() % 6, 0, 3 * cols / 4]
            [if row % 29 == 5 { 2 } else { usize::from(row % 4 == 1) }];
        for _ in 0..len {
            indices.push((next() % cols) as u32);
            values.push((next() % 9) as f64 - 4.0);
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows, cols, offsets, indices, values)
}

fn dense(rows: usize, columns: usize) -> Result<Dense<f64>> {
    let mut next = numbers();
    let values = (0..rows * columns).map(|_| (next() % 7) as f64 - 3.0).collect();
    Dense::from_row_major(rows, columns, values)
}

fn part(whole: &Dense<f64>, rows: &Partition, rank: usize) -> Result<Dense<f64>> {
    let n = whole.ncols();
    let range = rows.range(rank);
    let values = whole.data()[range.start * n..range.end * n].to_vec();
    Dense::from_row_major(range.len(), n, values)
}

/// Products of a matrix that rank 0 has, on all ranks, compared with those of one rank.
fn products(ranks: &Ranks) -> Result<String> {
    let size = ranks.size();
    let (a, n) = (matrix(203, 187)?, 9);
    let mut checked = 0;
    let options = Options { threads: Threads::new(1, false)?, ..Options::default() };
    for (number, communication) in Communication::ALL.into_iter().enumerate() {
        let rows = Partition::balanced(&a.pattern().view(), size);
        // All columns on one rank in the second case.
        let mut counts = vec![0; size];
        counts[size - 1] = a.ncols();
        let columns = if number == 1 {
            Partition::of_counts(&counts)?
        } else {
            Partition::even(a.ncols(), size)
        };
        let whole = (ranks.rank() == 0).then_some((&a, &rows, &columns));
        let parts = DistCsr::scatter(ranks, whole)?;
        let device = Device::cpu(options.clone()).communication(communication);
        for transpose in [false, true] {
            let (of_b, of_c) = if transpose { (&rows, &columns) } else { (&columns, &rows) };
            let (b, c) = (dense(of_b.rows(), n)?, dense(of_c.rows(), n)?);
            for semiring in [Semiring::PlusTimes, Semiring::MinPlus] {
                for deterministic in [false, true] {
                    let request = parts.pattern().spmm(n).transpose(transpose).semiring(semiring);
                    let mut plan: SpmmPlan<f64> =
                        request.deterministic(deterministic).plan(&device)?;
                    let local_b = DistDense::new(ranks, of_b, part(&b, of_b, ranks.rank())?)?;
                    let mut local_c = DistDense::new(ranks, of_c, part(&c, of_c, ranks.rank())?)?;
                    let scale = Scale::new().alpha(2.0).beta(3.0);
                    plan.execute(&parts, &local_b, &mut local_c, scale)?;
                    let mut expected = c.clone();
                    let problem = Problem::spmm(&a.view())
                        .columns(n)
                        .transpose_a(transpose)
                        .semiring(semiring);
                    gustav_cpu::SpmmPlan::new(a.pattern(), &problem, &options)?.execute(
                        &a,
                        &b,
                        &mut expected,
                        scale,
                    )?;
                    if let Some(found) = local_c.gather()? {
                        assert_eq!(
                            found.data(),
                            expected.data(),
                            "{communication:?} {transpose} {semiring}"
                        );
                    }
                    checked += 1;
                }
            }
            let mut plan: SpmvPlan<f64> =
                parts.pattern().spmv().transpose(transpose).plan(&device)?;
            let (x, mut y) = (
                dense(of_b.rows(), 1)?,
                Dense::zeros(of_c.count(ranks.rank()), 1, Layout::RowMajor)?,
            );
            plan.execute(&parts, part(&x, of_b, ranks.rank())?.data(), y.data_mut(), ())?;
            let mut expected = Dense::zeros(of_c.rows(), 1, Layout::RowMajor)?;
            let problem = Problem::spmm(&a.view()).transpose_a(transpose);
            gustav_cpu::SpmmPlan::new(a.pattern(), &problem, &options)?.execute(
                &a,
                &x,
                &mut expected,
                (),
            )?;
            assert_eq!(y.data(), part(&expected, of_c, ranks.rank())?.data());
            checked += 1;
        }
    }
    Ok(format!("{checked} products are right"))
}

fn run(role: &str, ranks: &Ranks) -> Result<String> {
    let faulty = ranks.rank() == 1;
    match role {
        "products" => products(ranks),
        // The duplicate of a communicator that a program would have.
        "differs" => {
            let a = DistCsr::new(ranks, &Partition::even(8, ranks.size()), matrix(3, 8)?)?;
            let plan: Result<SpmmPlan<f64>> =
                a.pattern().spmm(if faulty { 5 } else { 4 }).plan(&Device::default());
            match plan.err() {
                Some(e @ Error::RanksDiffer { .. }) => Ok(e.to_string()),
                other => panic!("{other:?}"),
            }
        }
        // All nonzeros and all of B are on rank 1: it alone needs memory for B in the type of sums.
        "no-memory" => {
            let columns = Partition::of_counts(&[0, 8, 0])?;
            let rows = if faulty { 3 } else { 0 };
            let a = DistPattern::new(ranks, &columns, matrix(rows, 8)?.pattern())?;
            let plan: Result<SpmmPlan<f16>> = a.spmm(1 << 45).plan(&Device::default());
            let error = plan.err().expect("2^50 bytes are too many");
            assert_eq!(matches!(error, Error::OutOfMemory { .. }), faulty, "{error}");
            Ok(error.to_string())
        }
        "bad-pattern" => {
            let columns = Partition::even(if faulty { 9 } else { 8 }, ranks.size());
            let found = DistCsr::new(ranks, &columns, matrix(3, 8)?);
            Ok(found.expect_err("a column too many on rank 1").to_string())
        }
        "other-call" => {
            let a = DistCsr::new(ranks, &Partition::even(8, ranks.size()), matrix(3, 8)?)?;
            let mut plan: SpmmPlan<f64> = a.pattern().spmm(1).plan(&Device::default())?;
            let mut other: SpmvPlan<f64> = a.pattern().spmv().plan(&Device::default())?;
            let b = dense(a.pattern().columns().count(ranks.rank()), 1)?;
            let mut c = Dense::zeros(3, 1, Layout::RowMajor)?;
            let found = match faulty {
                true => other.execute(&a, b.data(), c.data_mut(), ()),
                false => plan.execute(&a, &b, &mut c, ()),
            };
            Ok(found.expect_err("rank 1 executes another plan").to_string())
        }
        "finalised" => {
            let a = DistCsr::new(ranks, &Partition::even(8, ranks.size()), matrix(3, 8)?)?;
            finalise();
            let found: Result<SpmmPlan<f64>> = a.pattern().spmm(4).plan(&Device::default());
            assert!(ranks.communicator().barrier().is_err());
            assert!(matches!(Mpi::init(), Err(Error::NoMpi { .. })));
            Ok(found.err().expect("MPI is over").to_string())
        }
        "gives-up" if faulty => {
            Err(Error::Argument { name: "file", found: "none".into(), expected: "one".into() })
        }
        "fails" | "dies" | "killed" | "panics" | "gives-up" => {
            let a = DistCsr::new(ranks, &Partition::even(8, ranks.size()), matrix(3, 8)?)?;
            let mut plan: SpmmPlan<f64> = a.pattern().spmm(4).plan(&Device::default())?;
            match role {
                "dies" if faulty => std::process::abort(),
                "panics" if faulty => panic!("something is wrong"),
                // SAFETY: ends this process.
                "killed" if faulty => unsafe {
                    libc::kill(std::process::id() as i32, libc::SIGKILL);
                },
                _ => {}
            }
            let count = a.pattern().columns().count(ranks.rank());
            let b = dense(count + usize::from(faulty), 4)?;
            let mut c = Dense::zeros(3, 4, Layout::RowMajor)?;
            let found = plan.execute(&a, &b, &mut c, ());
            Ok(found.expect_err("B has a row too many on rank 1").to_string())
        }
        _ => panic!("{role} is nothing that ranks do"),
    }
}

/// What a program does that ends MPI by itself.
fn finalise() {
    // SAFETY: a function of MPI that takes nothing, of the library whose symbols the process has.
    let code = unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"MPI_Finalize".as_ptr());
        assert!(!symbol.is_null(), "an MPI is loaded");
        std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn() -> i32>(symbol)()
    };
    assert_eq!(code, 0);
}

/// Loads a library, as a program that was linked to it has.
fn load(file: &str) {
    let name = std::ffi::CString::new(file).expect("a file");
    // SAFETY: loading the libraries of these tests runs only their own initialisers.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
    assert!(!library.is_null(), "{file} can be loaded");
}

/// One line, whole where all ranks write to one terminal.
fn say(line: &str) {
    // There is nobody to return an error to.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn main() -> ExitCode {
    let role = std::env::args().nth(1).unwrap_or_default();
    // What follows are libraries that the program has loaded before gustav looks for an MPI.
    std::env::args().skip(2).for_each(|file| load(&file));
    let mpi = match Mpi::init() {
        Ok(mpi) => mpi,
        Err(e) => {
            say(&e.to_string());
            return ExitCode::FAILURE;
        }
    };
    let ranks = mpi.world();
    if let Ok(ranks) = &ranks {
        // MPICH's launcher does not always forward who aborts.
        let rank = ranks.rank();
        std::panic::set_hook(Box::new(move |info| say(&format!("rank {rank}: {info}"))));
    }
    match ranks.map(|ranks| (run(&role, &ranks), ranks)) {
        Ok((Ok(said), _)) => {
            println!("{} ({:?}): {said}", mpi.version(), mpi.thread_level());
            ExitCode::SUCCESS
        }
        Ok((Err(e), ranks)) => {
            say(&format!("rank {}: {e}", ranks.rank()));
            // The others may wait for this one.
            ranks.communicator().abort(1);
            ExitCode::FAILURE
        }
        Err(e) => {
            say(&e.to_string());
            ExitCode::FAILURE
        }
    }
}
