//! Dense matrices over ranks: sent from rank 0, and brought back.

use gustav_core::{Dense, Error, Layout, Result};
use gustav_mpi::{DistDense, Partition, Ranks};

use crate::common::{all_ok, on_ranks};

fn counted(rows: usize, columns: usize) -> Result<Dense<f64>> {
    Dense::from_row_major(rows, columns, (0..rows * columns).map(|v| v as f64).collect())
}

#[test]
fn what_is_scattered_is_gathered() {
    let whole = counted(7, 3).unwrap();
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        let gathered = on_ranks(Ranks::in_process_with_limit(3, 40), |ranks| {
            let rows = Partition::of_counts(&[2, 0, 5])?;
            let of_root = (ranks.rank() == 0).then_some(&whole);
            DistDense::scatter(&ranks, of_root, (&rows, 3), layout)?.gather()
        });
        let gathered = all_ok(gathered).unwrap();
        assert_eq!(gathered[0].as_ref().map(Dense::data), Some(whole.data()));
        assert!(gathered[1].is_none() && gathered[2].is_none());
    }
}

#[test]
fn ranks_that_differ_gather_nothing() {
    // 2 + 1 + 3 elements are as many as three rows of two.
    let columns = |ranks: Ranks| -> Result<_> {
        let local = counted(1, [2, 1, 3][ranks.rank()])?;
        DistDense::new(&ranks, &Partition::even(3, 3), local)?.gather()
    };
    let partitions = |ranks: Ranks| -> Result<_> {
        let rows = Partition::of_counts(&[1, 1, 1 + ranks.rank() / 2])?;
        DistDense::new(&ranks, &rows, counted(rows.count(ranks.rank()), 2)?)?.gather()
    };
    let types = |ranks: Ranks| -> Result<Option<Dense<f64>>> {
        let rows = Partition::even(3, 3);
        if ranks.rank() == 1 {
            let local = Dense::<f32>::zeros(1, 2, Layout::RowMajor)?;
            return DistDense::new(&ranks, &rows, local)?.gather().map(|_| None);
        }
        DistDense::new(&ranks, &rows, counted(1, 2)?)?.gather()
    };
    let found = [
        ("columns of the dense matrix", on_ranks(Ranks::in_process(3), columns)),
        ("partition of rows", on_ranks(Ranks::in_process(3), partitions)),
        ("type of values", on_ranks(Ranks::in_process(3), types)),
    ];
    for (expected, results) in found {
        for result in results {
            match result {
                Err(Error::RanksDiffer { what, .. }) => assert_eq!(what, expected),
                other => panic!("{expected}: {other:?}"),
            }
        }
    }
}

#[test]
fn rows_that_were_exchanged_for_others_are_refused() {
    let found = on_ranks(Ranks::in_process(2), |ranks| -> Result<_> {
        let mut m = DistDense::new(&ranks, &Partition::even(4, 2), counted(2, 1)?)?;
        // Four rows in all, as before.
        *m.local_mut() = counted([1, 3][ranks.rank()], 1)?;
        m.gather()
    });
    for result in found {
        assert!(matches!(result, Err(Error::Shape { .. })), "{result:?}");
    }
}
