//! Files and generators over ranks.

use std::path::Path;

use gustav_core::{Csr, Error, Index, Permutation, Result, Scalar};
use gustav_io::{Generator, Storage, Values, WriteOptions};
use gustav_mpi::{Device, DistCsr, Ordered, Partition, Ranks, SpmvPlan, io};

use crate::cases::rows::joined;
use crate::common::{RANKS, all_ok, on_ranks};

/// The matrix that ranks read from `path`, on every number of ranks the one that one process reads.
fn check<T: Scalar, I: Index, O: Index>(path: &Path, values: Values) {
    let options = gustav_io::ReadOptions { values, ..Default::default() };
    let expected: Csr<T, I, O> = gustav_io::read_csr(path, &options).unwrap();
    for size in RANKS {
        let read = on_ranks(Ranks::in_process_with_limit(size, 1000), |ranks| -> Result<_> {
            let a: DistCsr<T, I, O> = io::read_csr(&ranks, path, values)?;
            assert_eq!(a.pattern().rows(), &Partition::even(expected.nrows(), size));
            let balanced = a.balanced()?;
            let rows = Partition::balanced(&expected.view().pattern(), size);
            assert_eq!(balanced.pattern().rows(), &rows);
            Ok((a.local().clone(), balanced.local().clone()))
        });
        let parts = all_ok(read).unwrap();
        let (even, balanced): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        for parts in [even, balanced] {
            let found = joined(&parts, expected.ncols()).unwrap();
            assert_eq!(found.offsets(), expected.offsets(), "{size} ranks, {}", path.display());
            assert_eq!(found.indices(), expected.indices());
            assert_eq!(found.values().as_slice(), expected.values().as_slice());
        }
    }
}

const GENERAL: &str = "%%MatrixMarket matrix coordinate real general
% a comment
5 7 8
3 2 1.5
1 7 -2

5 1 4e-1
3 2 7
% another
3 1 8.25
2 2 9
1 1 10
5 7 11.5";

#[test]
fn matrix_market_files_are_parsed_once_over_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("general.mtx"), GENERAL).unwrap();
    check::<f64, u32, u32>(&path("general.mtx"), Values::Ones);
    check::<f32, u64, u64>(&path("general.mtx"), Values::Ones);
    for (field, symmetry, value) in [
        ("real", "symmetric", " 2e1"),
        ("integer", "skew-symmetric", " -3"),
        ("pattern", "symmetric", ""),
        ("pattern", "general", ""),
    ] {
        let mut text = format!("%%MatrixMarket matrix coordinate {field} {symmetry}\n40 40 60\n");
        for k in 0..60 {
            let (row, column) = (3 + k * 7 % 38, 1 + k * 5 % 3);
            text += &format!("{row} {column}{value}\n");
        }
        let name = path(&format!("{field}-{symmetry}.mtx"));
        std::fs::write(&name, text).unwrap();
        check::<f32, u32, u32>(&name, Values::Ones);
        check::<i64, u32, u64>(&name, Values::Random(7));
    }
    // More ranks than lines, and no entries.
    std::fs::write(path("empty.mtx"), "%%MatrixMarket matrix coordinate real general\n3 2 0\n")
        .unwrap();
    check::<f32, u32, u32>(&path("empty.mtx"), Values::Ones);
}

#[test]
fn arrays_are_read_by_rows_and_other_files_whole() {
    let folder = tempfile::tempdir().unwrap();
    let a: Csr<f32> = "power-law:300x200,1,2".parse::<Generator>().unwrap().build(3).unwrap();
    let write = |name: &str, storage| {
        let options = WriteOptions { storage, ..WriteOptions::default() };
        gustav_io::write_csr(folder.path().join(name), a.view(), &options).unwrap();
    };
    write("compressed.npz", Storage::Csr);
    write("columns.npz", Storage::Csc);
    write("text.mtx.gz", Storage::Csr);
    for name in ["compressed.npz", "columns.npz", "text.mtx.gz"] {
        check::<f32, u32, u32>(&folder.path().join(name), Values::Ones);
    }
}

#[test]
fn what_ranks_write_is_what_one_process_would() {
    let folder = tempfile::tempdir().unwrap();
    let generator: Generator = "rmat:9,6".parse().unwrap();
    let whole: Csr<f64, u64, u32> = generator.build(5).unwrap();
    for (number, size) in RANKS.into_iter().enumerate() {
        for name in ["a.mtx", "a.npz", "a.mtx.zst"] {
            let path = folder.path().join(format!("{size}-{name}"));
            let options = WriteOptions { pattern_only: number == 3, ..WriteOptions::default() };
            let written = on_ranks(Ranks::in_process(size), |ranks| -> Result<_> {
                let rows = Partition::balanced(&whole.view().pattern(), size);
                let columns = Partition::even(whole.ncols(), size);
                let a = io::generate::<f64, u64, u32>(&ranks, &generator, 5, (&rows, &columns))?;
                assert_eq!(a.pattern().rows(), &rows);
                io::write_csr(&a, &path, &options)
            });
            all_ok(written).unwrap();
            let found: Csr<f64, u64, u32> =
                gustav_io::read_csr(&path, &Default::default()).unwrap();
            assert_eq!((found.offsets(), found.indices()), (whole.offsets(), whole.indices()));
            if number != 3 {
                assert_eq!(found.values().as_slice(), whole.values().as_slice());
            }
            // Stored arrays are read in parts.
            check::<f64, u64, u32>(&path, Values::Ones);
        }
    }
}

#[test]
fn errors_of_files_reach_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let read = |text: &str| -> Vec<Error> {
        std::fs::write(&path, text).unwrap();
        let results = on_ranks(Ranks::in_process(3), |ranks| {
            io::read_csr::<f32, u32, u32>(&ranks, &path, Values::Ones)
        });
        results.into_iter().map(|r| r.expect_err("a damaged file")).collect()
    };
    // A damaged line is one rank's, which names the line in the whole file.
    let errors = read(&GENERAL.replace("2 2 9", "2 2 x"));
    assert!(errors.iter().any(|e| matches!(e, Error::Parse { line: 11, .. })), "{errors:?}");
    assert!(errors.iter().all(|e| e.to_string().contains("line 11, column 5")), "{errors:?}");
    // A wrong number of entries is everybody's.
    for (text, said) in [("5 7 9", "found 8"), ("5 7 7", "7 entries")] {
        let errors = read(&GENERAL.replace("5 7 8", text));
        assert!(errors.iter().all(|e| e.to_string().contains(said)), "{errors:?}");
    }
    // A folder that is not there, after the ranks have begun.
    let missing = folder.path().join("none/a.mtx");
    let results = on_ranks(Ranks::in_process(3), |ranks| {
        let generator: Generator = "diagonal:9".parse().unwrap();
        let even = Partition::even(9, 3);
        let a = io::generate::<f32, u32, u32>(&ranks, &generator, 1, (&even, &even))?;
        let other = Partition::even(8, 3);
        let shape = io::generate::<f32, u32, u32>(&ranks, &generator, 1, (&other, &even));
        assert!(matches!(shape, Err(Error::Shape { .. })));
        for name in ["a.npy", "a.smtx", "a"] {
            let refused = io::write_csr(&a, missing.with_file_name(name), &Default::default());
            assert!(matches!(refused, Err(Error::Argument { .. })), "{refused:?}");
        }
        io::write_csr(&a, &missing, &Default::default())
    });
    assert!(matches!(&results[0], Err(Error::Io { .. })), "{results:?}");
    assert!(results[1..].iter().all(|r| matches!(r, Err(Error::OtherRank { rank: 0, .. }))));
    // The disk is full half way: nothing replaces the old file.
    let target = Path::new("/dev/full");
    let results = on_ranks(Ranks::in_process(3), |ranks| {
        let generator: Generator = "diagonal:90000".parse().unwrap();
        let even = Partition::even(90_000, 3);
        let a = io::generate::<f32, u32, u32>(&ranks, &generator, 1, (&even, &even))?;
        let format = Some(gustav_io::Format::Npz);
        io::write_csr(&a, target, &WriteOptions { format, ..WriteOptions::default() })
    });
    assert!(results.iter().all(Result::is_err), "{results:?}");
}

#[test]
fn an_order_of_rows_saves_rows_of_b() {
    // A grid whose points are numbered at random.
    let grid: Csr<f64> = "grid5:24x24".parse::<Generator>().unwrap().build(1).unwrap();
    let n = grid.nrows();
    let shuffled = Permutation::new((0..n as u32).map(|k| k * 131 % n as u32).collect()).unwrap();
    let a = shuffled.apply_rows(grid.view()).unwrap();
    let a: Csr<f64> = shuffled.apply_columns(a.view()).unwrap();
    let x: Vec<f64> = (0..n).map(|k| (k % 13) as f64).collect();
    let expected: Vec<f64> = (0..n)
        .map(|row| {
            let pattern = a.view().pattern();
            let entries = pattern.row_range(row);
            entries.map(|k| a.values()[k] * x[a.indices()[k] as usize]).sum()
        })
        .collect();
    let order = gustav_plan::Order::ReverseCuthillMckee;
    let found = on_ranks(Ranks::in_process(4), |ranks| {
        let whole = (ranks.rank() == 0).then_some(&a);
        let (a, rows) = DistCsr::scatter_ordered(&ranks, whole, order).unwrap();
        let mut plan: SpmvPlan<f64> = a.pattern().spmv().plan(&Device::default()).unwrap();
        let x: Vec<f64> = rows.iter().map(|row| x[*row as usize]).collect();
        let mut y = vec![0.0; rows.len()];
        plan.execute(&a, &x, &mut y, ()).unwrap();
        let Ordered { rows_before, rows_after, .. } = *a.pattern().order().unwrap();
        assert!(rows_after * 3 < rows_before, "{rows_after} of {rows_before}");
        let text = plan.explain().to_string();
        assert!(text.contains(&format!("{rows_after} rows of B travel, {rows_before}")), "{text}");
        assert!(text.contains("% of the slowest rank's time"), "{text}");
        let volume = &plan.explain().volume;
        assert_eq!(volume.rows_of_b_bytes, rows_after * 8);
        (rows, y)
    });
    for (row, y) in found.into_iter().flat_map(|(rows, y)| rows.into_iter().zip(y)) {
        assert!((y - expected[row as usize]).abs() < 1e-9, "row {row}");
    }
    let missing = on_ranks(Ranks::in_process(2), |ranks| {
        DistCsr::<f64>::scatter_ordered(&ranks, None, order).map(drop)
    });
    assert!(matches!(missing[0], Err(Error::Argument { .. })) && missing[1].is_err());
}
