//! Matrices cut into the parts of ranks, and ranks as threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gustav_core::{
    Csr, CsrView, Dense, DenseView, DenseViewMut, Index, IndexSlice, Layout, Pattern, Result,
    Scalar,
};
use gustav_cpu::Threads;
use gustav_mpi::{
    Communication, Communicator, Device, DistPattern, Hosts, Options, Partition, Ranks, Request,
    Tag,
};

/// Numbers of ranks that are tried one after another.
pub const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 8];

/// Choices that differ from case to case: each number of ranks with each kind of partition and of communication.
#[derive(Default)]
pub struct Spreads {
    number: usize,
}

/// How a case is spread over ranks.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub ranks: usize,
    pub kind: usize,
    /// Consecutive ranks on each host.
    pub on_host: usize,
    pub communication: Communication,
}

impl Spreads {
    pub fn next(&mut self) -> Spread {
        let number = self.number;
        self.number += 1;
        Spread {
            ranks: RANKS[number % RANKS.len()],
            kind: number / RANKS.len() % 4,
            on_host: [1, 2, 3, 8][number / 3 % 4],
            communication: Communication::ALL[number / 2 % 3],
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

    pub fn hosts(&self) -> Hosts {
        Hosts::of_consecutive(self.ranks, self.on_host)
    }

    /// The ranks, which send messages of up to `limit` bytes.
    pub fn in_process(&self, limit: usize) -> Vec<Ranks> {
        Ranks::in_process_on(&self.hosts(), limit)
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

/// The rows of all ranks.
pub fn whole_of<T: Scalar>(
    parts: &[Rows<T>],
    partition: &Partition,
    columns: usize,
    layout: Layout,
) -> Dense<T> {
    let mut whole = Dense::zeros(partition.rows(), columns, layout).expect("a small matrix");
    for (rank, part) in parts.iter().enumerate() {
        part.copy_to(&mut whole.view_mut(), partition, rank);
    }
    whole
}

/// The matrix whose rows are those of all parts, one after another.
pub fn joined<T: Scalar, I: Index, O: Index>(
    parts: &[Csr<T, I, O>],
    ncols: usize,
) -> Result<Csr<T, I, O>> {
    let (mut offsets, mut indices, mut values) = (vec![O::truncate(0)], Vec::new(), Vec::new());
    for part in parts {
        let base = indices.len();
        offsets.extend(part.offsets()[1..].iter().map(|o| O::truncate(o.to_usize() + base)));
        indices.extend_from_slice(part.indices());
        values.extend_from_slice(part.values().as_slice());
    }
    Csr::new(offsets.len() - 1, ncols, offsets, indices, values)
}

/// Called before a rank communicates, and told whether it sends a message.
type OnCall = Box<dyn Fn(bool) + Send + Sync>;

/// Ranks whose messages are counted.
pub struct Counting {
    ranks: Ranks,
    sent: Arc<Sent>,
    on_call: OnCall,
}

/// What was sent of products.
#[derive(Default)]
pub struct Sent {
    bytes: AtomicU64,
    messages: AtomicU64,
}

impl Sent {
    /// Bytes and messages.
    pub fn products(&self) -> [u64; 2] {
        [&self.bytes, &self.messages].map(|n| n.load(Ordering::Relaxed))
    }
}

impl Counting {
    pub fn over(ranks: Ranks) -> (Ranks, Arc<Sent>) {
        Self::watched(ranks, |_| ())
    }

    /// The same, with a function that is called before every reduction and message of a product.
    pub fn watched(
        ranks: Ranks,
        on_call: impl Fn(bool) + Send + Sync + 'static,
    ) -> (Ranks, Arc<Sent>) {
        let (sent, on_call) = (Arc::new(Sent::default()), Box::new(on_call));
        (Ranks::new(Counting { ranks, sent: sent.clone(), on_call }), sent)
    }

    fn inner(&self) -> &dyn Communicator {
        self.ranks.communicator()
    }
}

// SAFETY: the calls are those of another communicator.
unsafe impl Communicator for Counting {
    fn rank(&self) -> usize {
        self.inner().rank()
    }
    fn size(&self) -> usize {
        self.inner().size()
    }
    fn description(&self) -> String {
        self.inner().description()
    }
    fn host(&self) -> String {
        self.inner().host()
    }
    fn message_limit(&self) -> usize {
        self.inner().message_limit()
    }
    fn all_reduce_max(&self, numbers: &mut [u64]) -> Result<()> {
        (self.on_call)(false);
        self.inner().all_reduce_max(numbers)
    }
    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.inner().all_gather(mine, all)
    }
    fn all_to_all(&self, to: &[u64], from: &mut [u64]) -> Result<()> {
        self.inner().all_to_all(to, from)
    }
    fn barrier(&self) -> Result<()> {
        self.inner().barrier()
    }
    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request> {
        if tag != Tag::Plan {
            (self.on_call)(true);
            self.sent.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.sent.messages.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: promised by the caller.
        unsafe { self.inner().start_send(bytes, peer, tag) }
    }
    unsafe fn start_receive(&self, bytes: *mut [u8], peer: usize, tag: Tag) -> Result<Request> {
        // SAFETY: promised by the caller.
        unsafe { self.inner().start_receive(bytes, peer, tag) }
    }
    unsafe fn wait_any(&self, requests: &[Request]) -> Result<usize> {
        // SAFETY: promised by the caller.
        unsafe { self.inner().wait_any(requests) }
    }
    fn abort(&self, status: i32) {
        self.inner().abort(status);
    }
}
