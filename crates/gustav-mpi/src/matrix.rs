//! Sparse and dense matrices whose rows are spread over ranks.

use gustav_core::{
    Buffer, Csr, Dense, DenseView, DenseViewMut, Error, Index, Layout, Operation, Pattern, Problem,
    Result, Scalar, SddmmRequest, SpgemmRequest, SpmmRequest, SpmvRequest, Values,
};

use crate::exchange::all_to_all;
use crate::io::send_parts;
use crate::{Ordered, Partition, Ranks};

/// A pattern whose rows are spread over ranks: each has consecutive rows of it, with global column indices. A clone
/// shares the arrays.
///
/// Columns are spread as well: the rank that has column j has row j of a dense B (element j of x), and of the result
/// of a product with Aᵀ.
#[derive(Clone, Debug)]
pub struct DistPattern<I: Index = u32, O: Index = u32> {
    ranks: Ranks,
    rows: Partition,
    columns: Partition,
    nnz: usize,
    local: Pattern<I, O>,
    order: Option<Ordered>,
}

impl<I: Index, O: Index> DistPattern<I, O> {
    /// The pattern whose rows are those of `local` on every rank, one rank after another, over all columns, which are
    /// spread as `columns` says. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Shape`] when one has another number of columns than `columns`,
    /// [`Error::RanksDiffer`] when they differ in `columns`.
    pub fn new(
        ranks: &Ranks,
        columns: &Partition,
        local: impl Into<Pattern<I, O>>,
    ) -> Result<Self> {
        let _lock = ranks.lock();
        Self::joined(ranks, columns, local.into())
    }

    /// The same within a collective call, which has the ranks' lock.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn joined(ranks: &Ranks, columns: &Partition, local: Pattern<I, O>) -> Result<Self> {
        let shape = (local.nrows(), local.ncols(), local.nnz());
        let (rows, nnz) = over_ranks(ranks, columns, shape)?;
        Ok(DistPattern {
            ranks: ranks.clone(),
            rows,
            columns: columns.clone(),
            nnz,
            local,
            order: None,
        })
    }

    /// The ranks.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Which rows each rank has.
    pub fn rows(&self) -> &Partition {
        &self.rows
    }

    /// Which columns each rank has.
    pub fn columns(&self) -> &Partition {
        &self.columns
    }

    /// This rank's rows, over all columns.
    pub fn local(&self) -> &Pattern<I, O> {
        &self.local
    }

    /// The order that its rows were brought into, if they were, by [`DistCsr::scatter_ordered`].
    pub fn order(&self) -> Option<&Ordered> {
        self.order.as_ref()
    }

    /// Rows of all ranks.
    pub fn nrows(&self) -> usize {
        self.rows.rows()
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.columns.rows()
    }

    /// Nonzeros of all ranks.
    pub fn nnz(&self) -> usize {
        self.nnz
    }

    /// A partition of the rows in which ranks have as nearly as possible the same number of nonzeros and row starts:
    /// that of [`Partition::balanced`]. Collective.
    ///
    /// # Errors
    /// As [`Ranks::agree_on`], and all calls of a [`Communicator`](crate::Communicator).
    pub fn balanced_rows(&self) -> Result<Partition> {
        let (ranks, _lock) = (&self.ranks, self.ranks.lock());
        let arguments = vec![
            ("call", "balancing rows".to_owned()),
            ("partition of rows", self.rows.description()),
            ("nonzeros", self.nnz.to_string()),
        ];
        ranks.agree_on(arguments, Ok::<_, Error>(()))?;
        let size = ranks.size();
        let counts = gather_numbers(ranks, [self.local.nnz()])?;
        let before: usize = counts[..ranks.rank()].iter().map(|c| c[0]).sum();
        let own = self.rows.range(ranks.rank());
        let start = |row: usize| before + self.local.offsets()[row - own.start].to_usize();
        let all = self.nnz as u128 + self.nrows() as u128;
        // Each rank finds the ends among its rows.
        let mut ends = vec![0_u64; size + 1];
        for (rank, end) in ends.iter_mut().enumerate().take(size).skip(1) {
            let target = all * rank as u128 / size as u128;
            *end = crate::partition::first_row_past(target, own.clone(), start) as u64;
        }
        ends[size] = self.nrows() as u64;
        ranks.communicator().all_reduce_max(&mut ends)?;
        (0..size).for_each(|rank| ends[rank + 1] = ends[rank + 1].max(ends[rank]));
        Partition::new(ends.iter().map(|end| *end as usize).collect::<Vec<_>>())
    }

    fn problem(&self, operation: Operation) -> Problem {
        Problem::of_pattern(operation, self.nrows(), self.ncols(), self.nnz)
    }

    /// Describes the product with a dense matrix of `columns` columns whose rows are spread as this pattern's columns;
    /// its result has its rows where this pattern has them. With Aᵀ it is the reverse.
    pub fn spmm(&self, columns: usize) -> SpmmRequest<DistPattern<I, O>> {
        let problem = self.problem(Operation::Spmm).columns(columns);
        SpmmRequest { pattern: self.clone(), problem }
    }

    /// Describes the product with a vector.
    pub fn spmv(&self) -> SpmvRequest<DistPattern<I, O>> {
        SpmvRequest { pattern: self.clone(), problem: self.problem(Operation::Spmv) }
    }

    /// Describes X·Yᵀ at the nonzeros, for X spread as this pattern's rows and Y as its columns, of `depth` columns.
    pub fn sddmm(&self, depth: usize) -> SddmmRequest<DistPattern<I, O>> {
        let problem = self.problem(Operation::Sddmm).columns(depth);
        SddmmRequest { pattern: self.clone(), problem }
    }

    /// Describes the product with the sparse matrices of pattern `b`, whose rows are spread as this pattern's columns.
    pub fn spgemm(&self, b: &DistPattern<I, O>) -> SpgemmRequest<DistPattern<I, O>> {
        let problem = self.problem(Operation::Spgemm);
        let problem = Problem { columns: b.ncols(), nnz_b: Some(b.nnz()), ..problem };
        SpgemmRequest { a: self.clone(), b: b.clone(), mask: None, problem }
    }
}

/// The partition of the rows, and the nonzeros of all ranks, of a pattern of which this rank has `nrows` rows, over
/// `ncols` columns, with `nnz` nonzeros. Collective.
///
/// # Errors
/// As [`DistPattern::new`].
pub(crate) fn over_ranks(
    ranks: &Ranks,
    columns: &Partition,
    (nrows, ncols, nnz): (usize, usize, usize),
) -> Result<(Partition, usize)> {
    let fits = (columns.rows(), columns.ranks()) == (ncols, ranks.size());
    let checked = fits.then_some(()).ok_or_else(|| Error::Shape {
        op: "pattern over ranks",
        expected: format!("{ncols} columns over {} ranks", ranks.size()),
        found: format!("a partition of {} rows over {} ranks", columns.rows(), columns.ranks()),
    });
    let arguments = vec![
        ("call", "a pattern over ranks".to_owned()),
        ("columns of the pattern", ncols.to_string()),
        ("partition of columns", columns.description()),
    ];
    ranks.agree_on(arguments, checked)?;
    let counts = gather_numbers(ranks, [nrows, nnz])?;
    let rows = Partition::of_counts(&counts.iter().map(|c| c[0]).collect::<Vec<_>>())?;
    Ok((rows, counts.iter().map(|c| c[1]).sum()))
}

/// A sparse matrix whose rows are spread over ranks: a [`DistPattern`] and this rank's values.
#[derive(Clone, Debug)]
pub struct DistCsr<T: Scalar, I: Index = u32, O: Index = u32> {
    pattern: DistPattern<I, O>,
    local: Csr<T, I, O>,
}

impl<T: Scalar, I: Index, O: Index> DistCsr<T, I, O> {
    /// The matrix whose rows are those of `local` on every rank; see [`DistPattern::new`]. Collective.
    ///
    /// # Errors
    /// As [`DistPattern::new`].
    pub fn new(ranks: &Ranks, columns: &Partition, local: Csr<T, I, O>) -> Result<Self> {
        let _lock = ranks.lock();
        Self::joined(ranks, columns, local)
    }

    /// The same within a collective call, which has the ranks' lock.
    pub(crate) fn joined(ranks: &Ranks, columns: &Partition, local: Csr<T, I, O>) -> Result<Self> {
        let pattern = DistPattern::joined(ranks, columns, local.pattern().clone())?;
        Ok(DistCsr { pattern, local })
    }

    /// Sends rows of `whole`, which rank 0 has and others do not, to the ranks: rows as `rows` says, columns as
    /// `columns` says. Only rank 0's partitions count. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Argument`] when rank 0 has no matrix or another has one, [`Error::Shape`] when a
    /// partition does not fit, [`Error::OutOfMemory`].
    pub fn scatter(
        ranks: &Ranks,
        whole: Option<(&Csr<T, I, O>, &Partition, &Partition)>,
    ) -> Result<Self> {
        let (local, columns) = {
            let _lock = ranks.lock();
            ranks.agree_on(
                vec![
                    ("call", "scatter".to_owned()),
                    ("type of values", T::DTYPE.to_string()),
                    ("type of column indices", I::TYPE.to_string()),
                    ("type of row offsets", O::TYPE.to_string()),
                ],
                check_root(ranks, &whole),
            )?;
            let part = |q: usize| whole.map(|(a, rows, _)| (a, rows.range(q)));
            let offsets =
                |q: usize| part(q).map_or(&[][..], |(a, r)| &a.offsets()[r.start..=r.end]);
            let entries = |q: usize| {
                part(q).map_or(0..0, |(a, r)| {
                    a.offsets()[r.start].to_usize()..a.offsets()[r.end].to_usize()
                })
            };
            let all = 0..ranks.size();
            let boundaries = whole.map_or(&[][..], |(_, _, columns)| columns.offsets());
            let boundaries: Vec<&[usize]> = all.clone().map(|_| boundaries).collect();
            let columns = first(all_to_all(ranks, &boundaries)?);
            let mut offsets: Vec<O> =
                first(all_to_all(ranks, &all.clone().map(offsets).collect::<Vec<_>>())?);
            let of = |q: usize| whole.map_or(&[][..], |(a, ..)| &a.indices()[entries(q)]);
            let indices: Vec<I> =
                first(all_to_all(ranks, &all.clone().map(of).collect::<Vec<_>>())?);
            let of = |q: usize| whole.map_or(&[][..], |(a, ..)| &a.values().as_slice()[entries(q)]);
            let values: Vec<T> = first(all_to_all(ranks, &all.map(of).collect::<Vec<_>>())?);
            let base = offsets.first().map_or(0, |o| o.to_usize());
            offsets.iter_mut().for_each(|o| *o = O::truncate(o.to_usize() - base));
            let columns = Partition::new(columns);
            let local = columns.and_then(|columns| {
                let nrows = offsets.len().saturating_sub(1);
                Ok((Csr::new(nrows, columns.rows(), offsets, indices, values)?, columns))
            });
            ranks.together(local)?
        };
        Self::new(ranks, &columns, local)
    }

    /// The same matrix with rows as `rows` says and columns as `columns`. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Shape`] when a partition does not fit, [`Error::RanksDiffer`], [`Error::OutOfMemory`].
    pub fn spread(&self, rows: &Partition, columns: &Partition) -> Result<Self> {
        let (ranks, pattern) = (self.pattern.ranks(), &self.pattern);
        let local = {
            let _lock = ranks.lock();
            let expected = (pattern.nrows(), pattern.ncols(), ranks.size(), ranks.size());
            let found = (rows.rows(), columns.rows(), rows.ranks(), columns.ranks());
            let words = |(r, c, p, q): (usize, usize, usize, usize)| {
                format!("{r} rows over {p} ranks and {c} columns over {q}")
            };
            let fits = (expected == found).then_some(()).ok_or_else(|| Error::Shape {
                op: "spread",
                expected: words(expected),
                found: words(found),
            });
            let arguments = vec![
                ("call", "spreading a matrix anew".to_owned()),
                ("type of values", T::DTYPE.to_string()),
                ("type of column indices", I::TYPE.to_string()),
                ("partition of rows", rows.description()),
                ("partition of columns", columns.description()),
            ];
            ranks.agree_on(arguments, fits)?;
            let (own, a) = (pattern.rows.range(ranks.rank()), self.local.view());
            // Where the rows of each rank begin among this rank's, and their entries.
            let row = |q: usize| rows.offsets()[q].clamp(own.start, own.end) - own.start;
            let of_rows: Vec<usize> = (0..=ranks.size()).map(row).collect();
            let of_entries: Vec<usize> =
                of_rows.iter().map(|row| a.offsets()[*row].to_usize()).collect();
            let lengths: Vec<u64> = (0..own.len()).map(|r| a.pattern().row_len(r) as u64).collect();
            let lengths = send_parts(ranks, &of_rows, &lengths)?;
            let indices: Vec<I> = send_parts(ranks, &of_entries, a.indices())?;
            let values: Vec<T> = send_parts(ranks, &of_entries, a.values().as_slice())?;
            let build = || {
                O::try_from_usize(indices.len(), "row offset")?;
                let mut offsets = gustav_core::buffer::try_vec(lengths.len() + 1, "row offsets")?;
                let mut end = 0;
                offsets.push(O::truncate(end));
                for len in &lengths {
                    end += *len as usize;
                    offsets.push(O::truncate(end));
                }
                Csr::new(lengths.len(), columns.rows(), offsets, indices, values)
            };
            ranks.together(build())?
        };
        Self::new(ranks, columns, local)
    }

    /// The same matrix with rows spread so that ranks have as nearly as possible the same number of nonzeros and row
    /// starts; columns are spread as rows where it is square, else as they are. Collective.
    ///
    /// # Errors
    /// On every rank, [`Error::OutOfMemory`].
    pub fn balanced(&self) -> Result<Self> {
        let rows = self.pattern.balanced_rows()?;
        let square = self.pattern.nrows() == self.pattern.ncols();
        self.spread(&rows, if square { &rows } else { self.pattern.columns() })
    }

    pub(crate) fn set_order(&mut self, order: Ordered) {
        self.pattern.order = Some(order);
    }

    /// The pattern.
    pub fn pattern(&self) -> &DistPattern<I, O> {
        &self.pattern
    }

    /// This rank's rows, over all columns.
    pub fn local(&self) -> &Csr<T, I, O> {
        &self.local
    }

    /// This rank's values, with the identity of the pattern.
    pub fn values(&self) -> Values<'_, T> {
        self.local.values()
    }

    /// This rank's values, to change them under an unchanged pattern.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.local.values_mut()
    }
}

impl<'a, T: Scalar, I: Index, O: Index> From<&'a DistCsr<T, I, O>> for Values<'a, T> {
    fn from(a: &'a DistCsr<T, I, O>) -> Self {
        a.values()
    }
}

/// A dense matrix whose rows are spread over ranks; plans also take this rank's rows by themselves.
#[derive(Clone, Debug)]
pub struct DistDense<T: Scalar> {
    ranks: Ranks,
    rows: Partition,
    local: Dense<T>,
}

impl<T: Scalar> DistDense<T> {
    /// Zeros, `columns` of them in a row.
    ///
    /// # Errors
    /// [`Error::Argument`] when `rows` is of another number of ranks, [`Error::OutOfMemory`].
    pub fn zeros(ranks: &Ranks, rows: &Partition, columns: usize, layout: Layout) -> Result<Self> {
        let local = Dense::zeros(rows.count(ranks.rank()), columns, layout)?;
        Self::new(ranks, rows, local)
    }

    /// The matrix of which this rank has the rows `local`.
    ///
    /// # Errors
    /// [`Error::Shape`] when `rows` gives this rank another number of them or is of another number of ranks.
    pub fn new(ranks: &Ranks, rows: &Partition, local: Dense<T>) -> Result<Self> {
        if (rows.ranks(), rows.count(ranks.rank())) != (ranks.size(), local.nrows()) {
            return Err(Error::Shape {
                op: "dense matrix over ranks",
                expected: format!(
                    "{} rows on rank {} of {}",
                    local.nrows(),
                    ranks.rank(),
                    ranks.size()
                ),
                found: format!(
                    "a partition with {} rows, of {} ranks",
                    rows.count(ranks.rank()),
                    rows.ranks()
                ),
            });
        }
        Ok(DistDense { ranks: ranks.clone(), rows: rows.clone(), local })
    }

    /// Sends rows of `whole`, of `columns` columns, which rank 0 has and others do not, to the ranks, in `layout`.
    /// Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Shape`] when it has another shape or is missing on rank 0, [`Error::RanksDiffer`],
    /// [`Error::OutOfMemory`].
    pub fn scatter(
        ranks: &Ranks,
        whole: Option<&Dense<T>>,
        (rows, columns): (&Partition, usize),
        layout: Layout,
    ) -> Result<Self> {
        let local = {
            let _lock = ranks.lock();
            let expected = (ranks.rank() == 0).then_some((rows.rows(), columns));
            let found = whole.map(|m| (m.nrows(), m.ncols()));
            let words = |shape: Option<(usize, usize)>| {
                shape.map_or("none on this rank".into(), |(r, c)| format!("{r} x {c}"))
            };
            let fits = expected == found && rows.ranks() == ranks.size();
            let checked = fits.then_some(()).ok_or_else(|| Error::Shape {
                op: "scatter",
                expected: format!("{} rows of ranks, {}", ranks.size(), words(expected)),
                found: format!("{} rows of ranks, {}", rows.ranks(), words(found)),
            });
            let arguments = vec![
                ("call", "scatter of a dense matrix".to_owned()),
                ("partition of rows", rows.description()),
                ("columns of the dense matrix", columns.to_string()),
                ("type of values", T::DTYPE.to_string()),
            ];
            let packed = checked
                .and_then(|()| whole.map(|m| m.view().to_layout(Layout::RowMajor)).transpose());
            let packed = ranks.agree_on(arguments, packed)?;
            let part = |q: usize| match &packed {
                Some(m) => &m.data()[rows.range(q).start * columns..rows.range(q).end * columns],
                None => &[][..],
            };
            let parts: Vec<&[T]> = (0..ranks.size()).map(part).collect();
            let values = first(all_to_all(ranks, &parts)?);
            let local = Dense::from_row_major(rows.count(ranks.rank()), columns, values);
            let local = local.and_then(|m| match layout {
                Layout::RowMajor => Ok(m),
                layout => m.view().to_layout(layout),
            });
            ranks.together(local)?
        };
        Self::new(ranks, rows, local)
    }

    /// The rows of all ranks on rank 0, and nothing on others. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::RanksDiffer`] when columns, types or partitions are not the same, [`Error::Shape`] when
    /// a rank's rows are not as many as its partition says, [`Error::OutOfMemory`].
    pub fn gather(&self) -> Result<Option<Dense<T>>> {
        let _lock = self.ranks.lock();
        let columns = self.local.ncols();
        let checked = self.check_local("gather");
        let arguments = vec![
            ("call", "gather of a dense matrix".to_owned()),
            ("partition of rows", self.rows.description()),
            ("columns of the dense matrix", columns.to_string()),
            ("type of values", T::DTYPE.to_string()),
        ];
        let packed = checked.and_then(|()| match self.local.layout() {
            Layout::RowMajor if self.local.leading_dimension() == columns => Ok(None),
            _ => self.local.view().to_layout(Layout::RowMajor).map(Some),
        });
        let rows = self.ranks.agree_on(arguments, packed)?;
        let values = rows.as_ref().unwrap_or(&self.local).data();
        let mut to: Vec<&[T]> = vec![&[]; self.ranks.size()];
        to[0] = values;
        let parts = all_to_all(&self.ranks, &to)?;
        let whole = || {
            let len = self.rows.rows().saturating_mul(columns);
            let mut values = gustav_core::buffer::try_vec(len, "rows of all ranks")?;
            parts.iter().for_each(|part| values.extend_from_slice(part));
            Dense::from_row_major(self.rows.rows(), columns, values)
        };
        let whole = (self.ranks.rank() == 0).then(whole).transpose();
        self.ranks.together(whole)
    }

    /// Whether this rank's rows are as many as its partition says: `local_mut` lends the whole matrix, which may have
    /// been exchanged for another.
    pub(crate) fn check_local(&self, op: &'static str) -> Result<()> {
        let (rank, found) = (self.ranks.rank(), self.local.nrows());
        let own = self.rows.count(rank);
        (own == found).then_some(()).ok_or_else(|| Error::Shape {
            op,
            expected: format!("{own} rows on rank {rank}"),
            found: format!("{found} rows"),
        })
    }

    /// The ranks.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Which rows each rank has.
    pub fn rows(&self) -> &Partition {
        &self.rows
    }

    /// This rank's rows.
    pub fn local(&self) -> &Dense<T> {
        &self.local
    }

    /// This rank's rows, to be written.
    pub fn local_mut(&mut self) -> &mut Dense<T> {
        &mut self.local
    }
}

impl<'a, T: Scalar> From<&'a DistDense<T>> for DenseView<'a, T> {
    fn from(m: &'a DistDense<T>) -> Self {
        m.local.view()
    }
}

impl<'a, T: Scalar> From<&'a mut DistDense<T>> for DenseViewMut<'a, T> {
    fn from(m: &'a mut DistDense<T>) -> Self {
        m.local.view_mut()
    }
}

/// What rank 0 sent; others send nothing.
fn first<W>(mut parts: Vec<Vec<W>>) -> Vec<W> {
    parts.swap_remove(0)
}

fn check_root<T: Scalar, I: Index, O: Index>(
    ranks: &Ranks,
    whole: &Option<(&Csr<T, I, O>, &Partition, &Partition)>,
) -> Result<()> {
    let Some((a, rows, columns)) = whole else {
        return match ranks.rank() {
            0 => Err(Error::Argument {
                name: "matrix to scatter",
                found: "none on rank 0".into(),
                expected: "the matrix on rank 0".into(),
            }),
            _ => Ok(()),
        };
    };
    if ranks.rank() != 0 {
        return Err(Error::Argument {
            name: "matrix to scatter",
            found: format!("one on rank {}", ranks.rank()),
            expected: "none but on rank 0".into(),
        });
    }
    let expected = [(rows, a.nrows(), "rows"), (columns, a.ncols(), "columns")];
    for (partition, count, what) in expected {
        if (partition.rows(), partition.ranks()) != (count, ranks.size()) {
            return Err(Error::Shape {
                op: "scatter",
                expected: format!("a partition of {count} {what} over {} ranks", ranks.size()),
                found: format!("{} over {}", partition.rows(), partition.ranks()),
            });
        }
    }
    Ok(())
}

/// The numbers of every rank. Collective.
pub(crate) fn gather_numbers<const N: usize>(
    ranks: &Ranks,
    mine: [usize; N],
) -> Result<Vec<[usize; N]>> {
    let mut all = Buffer::<usize>::zeroed(N * ranks.size(), "numbers of ranks")?;
    let bytes = bytemuck::cast_slice_mut(&mut all);
    ranks.communicator().all_gather(bytemuck::cast_slice(&mine), bytes)?;
    Ok(all.chunks_exact(N).map(|c| std::array::from_fn(|k| c[k])).collect())
}
