//! Products over ranks.

use crate::ranks::{RankRecords, SCHEMES};
use crate::table::{Row, Table, number, row};

/// The tables that the records fill.
pub(crate) fn all(records: &RankRecords) -> Vec<Table> {
    let tables = [beside_petsc(records), losses(records), counted(records)];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn beside_petsc(records: &RankRecords) -> Table {
    let line = |product: crate::ranks::BesidePetsc| -> Row {
        let (times, bytes) = (product.times, product.bytes);
        row![
            product.matrices,
            product.operation,
            times.count,
            number(times.geomean, 2),
            number(times.worst, 2),
            number(times.best, 2),
            number(100.0 * times.lost, 0),
            number(bytes.geomean, 2),
            number(bytes.best, 2),
        ]
    };
    Table::new(
        "ranks-beside-petsc",
        "Over two ranks, beside PETSc",
        "matrices, product, cases, geomean, worst, best, lost %, bytes geomean, most bytes",
        "Time of PETSc ÷ ours, and our bytes ÷ PETSc's: SpMV beside MatMult, SpMM of 64 columns beside MatMatMult, f64, in \
         one job of two ranks with one core each. Unseen matrices are those that no rule was fitted to.",
        records.beside_petsc().into_iter().map(line).collect(),
    )
}

fn losses(records: &RankRecords) -> Table {
    let mut rows = Vec::new();
    for product in records.beside_petsc() {
        let lost = product.each.iter().filter(|speed| speed.ratio < 1.0);
        rows.extend(lost.map(|speed| {
            row![
                product.matrices,
                product.operation,
                speed.matrix,
                number(speed.ratio, 2),
                number(speed.bytes, 2)
            ]
        }));
    }
    Table::new(
        "ranks-losses",
        "Over two ranks, slower than PETSc",
        "matrices, product, matrix, PETSc ÷ ours, bytes",
        "Every product beside PETSc that was lost, the worst first.",
        rows,
    )
}

fn counted(records: &RankRecords) -> Table {
    let names = SCHEMES.map(|scheme| scheme.replace('-', " "));
    let columns = format!(
        "matrices, ranks, cases, {}, {}, imbalance, of bytes",
        names[1..].join(", "),
        names.map(|name| format!("efficiency {name}")).join(", "),
    );
    let line = |counted: crate::ranks::CountedBytes| -> Row {
        let mut cells = row![counted.matrices, counted.ranks, counted.cases];
        cells.extend(counted.relative[1..].iter().map(|share| number(*share, 3)));
        let efficiency = (0..SCHEMES.len()).map(|k| counted.efficiency.map(|each| each[k]));
        cells.extend(efficiency.map(|value| number(value, 3)));
        cells.extend([counted.imbalance, counted.communication_imbalance].map(|v| number(v, 2)));
        cells
    };
    Table::new(
        "ranks-bytes",
        "Bytes over ranks, counted",
        &columns,
        "An SpMM of 64 columns in f32: geometric means over matrices of bytes ÷ those of sending all of B to all ranks, of \
         the predicted efficiency (see the figure for its assumptions), and of how much more than the mean the busiest rank \
         multiplies and sends by the cheapest plan.",
        records.counted().into_iter().map(line).collect(),
    )
}
