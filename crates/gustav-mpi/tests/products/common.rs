//! Matrices cut into the parts of ranks, and ranks as threads.

use gustav_core::{
    CsrView, DenseView, DenseViewMut, Index, IndexSlice, Layout, Pattern, Result, Scalar,
};
use gustav_cpu::Threads;
use gustav_mpi::{Communication, Device, DistPattern, Options, Partition, Ranks};

/// Numbers of ranks that are tried in turn.
pub const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 8];

/// Choices that every case makes anew: each number of ranks with each kind of partition and of communication.
#[derive(Default)]
pub struct Turns {
    turn: usize,
}

/// How a case is spread over ranks.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub ranks: usize,
    pub kind: usize,
    pub communication: Communication,
}

impl Turns {
    pub fn next(&mut self) -> Spread {
        let turn = self.turn;
        self.turn += 1;
        Spread {
            ranks: RANKS[turn % RANKS.len()],
            kind: turn / RANKS.len() % 4,
            communication: Communication::ALL[turn / 2 % 3],
        }
    }
}

impl Spread {
    /// A partition of `rows` rows: even, all on one rank, uneven with empty ranks, or only on the first and last.
    pub fn partition(&self, rows: usize) -> Partition {
        let Spread { ranks, kind, .. } = *self;
        let mut counts = vec![0; ranks];
        match kind {
            0 => return Partition::even(rows, ranks),
            1 => counts[ranks / 2] = rows,
            2 => {
                let mut left = rows;
                for (rank, count) in counts.iter_mut().enumerate() {
                    *count = if rank % 3 == 1 { 0 } else { left.div_ceil(2) };
                    left -= *count;
                }
                counts[0] += left;
            }
            _ => {
                counts[0] = rows / 3;
                counts[ranks - 1] += rows - rows / 3;
            }
        }
        Partition::of_counts(&counts).expect("counts of rows")
    }

    pub fn device(&self) -> Device {
        let threads = Threads::new(1, false).expect("one thread");
        Device::cpu(Options { threads, ..Options::default() }).communication(self.communication)
    }
}

/// Runs `work` on every rank, and returns what each gives, in order.
pub fn on_ranks<R: Send>(ranks: Vec<Ranks>, work: impl Fn(Ranks) -> R + Sync) -> Vec<R> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks.into_iter().map(|r| scope.spawn(move || work(r))).collect();
        let results = threads.into_iter().map(|t| t.join());
        results.map(|r| r.unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}

/// The error of the rank that failed first, in order, if one did.
pub fn all_ok<R>(results: Vec<Result<R>>) -> Result<Vec<R>> {
    results.into_iter().collect()
}

/// The rows of `a` that `rank` has.
pub fn rows_of<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    partition: &Partition,
    rank: usize,
) -> Result<(Pattern<I, O>, Vec<T>)> {
    let rows = partition.range(rank);
    let of = |row: usize| IndexSlice::new(a.offsets()).get(row);
    let entries = of(rows.start)..of(rows.end);
    let offsets =
        (rows.start..=rows.end).map(|r| O::truncate(of(r) - entries.start)).collect::<Vec<_>>();
    let indices = a.indices()[entries.clone()].to_vec();
    let pattern = Pattern::new(rows.len(), a.ncols(), offsets, indices)?;
    Ok((pattern, a.values().as_slice()[entries].to_vec()))
}

/// The pattern of `rank` with columns spread as `columns`.
pub fn pattern_of<T: Scalar, I: Index, O: Index>(
    ranks: &Ranks,
    a: &CsrView<'_, T, I, O>,
    (rows, columns): (&Partition, &Partition),
) -> Result<(DistPattern<I, O>, Vec<T>)> {
    let (local, values) = rows_of(a, rows, ranks.rank())?;
    Ok((DistPattern::new(ranks, columns, local)?, values))
}

/// A rank's rows of a dense matrix, in its layout, with padding where it has some.
pub struct Rows<T> {
    rows: usize,
    columns: usize,
    layout: Layout,
    ld: usize,
    pub data: Vec<T>,
}

impl<T: Scalar> Rows<T> {
    pub fn of(m: &DenseView<'_, T>, partition: &Partition, rank: usize) -> Self {
        let range = partition.range(rank);
        let (rows, columns, layout) = (range.len(), m.ncols(), m.layout());
        let (whole, len, lines) = match layout {
            Layout::RowMajor => (columns, columns, rows),
            Layout::ColumnMajor => (m.nrows(), rows, columns),
        };
        let ld = len + if m.leading_dimension() > whole { 3 } else { 0 };
        let mut data = vec![T::from_f64(-77.0); lines * ld];
        for i in 0..rows {
            for j in 0..columns {
                let at = if layout == Layout::RowMajor { i * ld + j } else { j * ld + i };
                data[at] = m.get(range.start + i, j);
            }
        }
        Rows { rows, columns, layout, ld, data }
    }

    pub fn view(&self) -> DenseView<'_, T> {
        DenseView::new(self.rows, self.columns, self.layout, self.ld, &self.data).expect("rows")
    }

    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        let Rows { rows, columns, layout, ld, data } = self;
        DenseViewMut::new(*rows, *columns, *layout, *ld, data).expect("rows")
    }

    /// Writes the rows to their place in `m`.
    pub fn copy_to(&self, m: &mut DenseViewMut<'_, T>, partition: &Partition, rank: usize) {
        let first = partition.range(rank).start;
        for i in 0..self.rows {
            for j in 0..self.columns {
                m.set(first + i, j, self.view().get(i, j));
            }
        }
    }
}
