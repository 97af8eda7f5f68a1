//! Ranks of which one makes another call, or has other types or files: all get an error that names it, and none waits.

use gustav_core::{Csr, Error, Index, Result};
use gustav_io::{Values, WriteOptions};
use gustav_mpi::{
    Device, DistCsr, DistPattern, Partition, Ranks, SddmmPlan, SpgemmPlan, SpmmPlan, SpmvPlan, io,
};

use crate::cases::rows::rows_of;
use crate::common::on_ranks;

/// That each of three ranks finds `what` to differ on the last.
fn expect_last_differs(results: Vec<Result<()>>, what: &str, [found, expected]: [&str; 2]) {
    assert_eq!(results.len(), 3);
    for result in results {
        let Err(Error::RanksDiffer {
            rank, what: name, found: of_rank, expected: of_others, ..
        }) = &result
        else {
            panic!("{what}: {result:?}");
        };
        assert_eq!((*rank, name.as_str()), (2, what));
        assert!(of_rank.contains(found) && of_others.contains(expected), "{result:?}");
    }
}

/// A rank's rows of the same matrix.
fn matrix<I: Index>(ranks: &Ranks) -> Result<DistCsr<f32, I>> {
    let (rows, indices) = (Partition::even(6, 3), [5, 4, 3, 2, 1, 0].map(I::truncate).to_vec());
    let a = Csr::<f32, I>::new(6, 6, (0..7).collect::<Vec<u32>>(), indices, vec![1.0; 6])?;
    let (local, values) = rows_of(&a.view(), &rows, ranks.rank())?;
    DistCsr::new(ranks, &rows, Csr::from_pattern(&local, values)?)
}

#[test]
fn a_rank_that_makes_another_call_is_named() {
    type Call = fn(&DistPattern) -> Result<()>;
    let calls: [(&str, Call); 3] = [
        ("which ranks share a host", |a| a.ranks().hosts().map(drop)),
        ("gathering text", |a| a.ranks().gather_text("some").map(drop)),
        ("balancing rows", |a| a.balanced_rows().map(drop)),
    ];
    for (one, call) in calls {
        for (other, another) in calls.into_iter().filter(|(name, _)| *name != one) {
            let results = on_ranks(Ranks::in_process(3), |ranks| {
                let a = matrix(&ranks)?;
                let found = if ranks.rank() == 2 { another } else { call }(a.pattern());
                // Nothing of it is left: a call that all ranks make is right.
                call(a.pattern()).expect("the same call");
                found
            });
            expect_last_differs(results, "call", [other, one]);
        }
    }
    let other_pattern = on_ranks(Ranks::in_process(3), |ranks| {
        let columns = Partition::even(6, 3);
        let empty = DistPattern::<u32>::new(&ranks, &columns, Csr::<f32>::empty(2, 6)?.pattern())?;
        let a = matrix(&ranks)?;
        if ranks.rank() == 2 { &empty } else { a.pattern() }.balanced_rows().map(drop)
    });
    expect_last_differs(other_pattern, "nonzeros", ["0", "6"]);
}

#[derive(Clone, Copy, Debug)]
enum Typed {
    Spread,
    Spmm,
    Spmv,
    Sddmm,
    Spgemm,
}

fn with_indices<I: Index>(ranks: &Ranks, call: Typed) -> Result<()> {
    let (a, device) = (matrix::<I>(ranks)?, Device::default());
    let (pattern, rows) = (a.pattern(), a.pattern().rows());
    match call {
        Typed::Spread => a.spread(rows, rows).map(drop),
        Typed::Spmm => pattern.spmm(3).plan(&device).map(|_: SpmmPlan<f32>| ()),
        Typed::Spmv => pattern.spmv().plan(&device).map(|_: SpmvPlan<f32>| ()),
        Typed::Sddmm => pattern.sddmm(3).plan(&device).map(|_: SddmmPlan<f32>| ()),
        Typed::Spgemm => pattern.spgemm(pattern).plan(&device).map(|_: SpgemmPlan<f32, I, u32>| ()),
    }
}

#[test]
fn types_of_indices_are_compared() {
    for call in [Typed::Spread, Typed::Spmm, Typed::Spmv, Typed::Sddmm, Typed::Spgemm] {
        let results = on_ranks(Ranks::in_process(3), |ranks| match ranks.rank() {
            2 => with_indices::<u64>(&ranks, call),
            _ => with_indices::<u32>(&ranks, call),
        });
        expect_last_differs(results, "type of column indices", ["u64", "u32"]);
    }
}

#[test]
fn ranks_that_see_different_files_read_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Of `bytes` bytes, by a comment, and all of one shape and number of entries.
    let write = |name: &str, header: &str, bytes: usize| {
        let start = format!("%%MatrixMarket matrix coordinate {header}\n%");
        let end = "\n4 4 2\n2 1 3\n4 2 5\n";
        let comment = " ".repeat(bytes - start.len() - end.len());
        std::fs::write(path(name), format!("{start}{comment}{end}")).unwrap();
    };
    write("general.mtx", "real general", 100);
    write("symmetric.mtx", "real symmetric", 100);
    write("integers.mtx", "integer general", 100);
    write("longer.mtx", "real general", 101);
    let whole: DistCsr<f32> =
        io::read_csr(&Ranks::alone(), path("general.mtx"), Values::Ones).unwrap();
    io::write_csr(&whole, path("arrays.npz"), &WriteOptions::default()).unwrap();
    for (other, found, expected) in [
        ("symmetric.mtx", "Symmetric", "General"),
        ("integers.mtx", "Integer", "Real"),
        ("longer.mtx", "101 bytes", "100 bytes"),
        ("arrays.npz", "npz", "Matrix Market"),
    ] {
        let results = on_ranks(Ranks::in_process(3), |ranks| {
            let name = if ranks.rank() == 2 { other } else { "general.mtx" };
            io::read_csr::<f32, u32, u32>(&ranks, path(name), Values::Ones).map(drop)
        });
        expect_last_differs(results, "file", [found, expected]);
    }
}
