//! The volume of a product of two sparse matrices.

use std::collections::BTreeMap;

use gustav_core::{DType, Index, PatternView, Result};

use super::tally::{Flow, Lists, OnHost, relay};
use super::{RankVolume, Volume, check_ranks, check_shape, count_message, send};
use crate::blocks::{self, CountedBlock};
use crate::spgemm::is_relayed;
use crate::{Hosts, Partition};

impl Volume {
    /// The volume of an SpGEMM with a whole pattern of A, counted rank by rank without running it: just what a plan on
    /// these ranks and hosts sends, with two levels. `rows` says which rank has which row of A and C, `columns` which
    /// column of A and row of B; row r of B has `row_lengths[r]` nonzeros, of type `dtype`. The nonzeros of a rank are
    /// its intermediate products.
    ///
    /// # Errors
    /// As [`Volume::of`].
    pub fn of_spgemm<I: Index, O: Index>(
        a: &PatternView<'_, I, O>,
        (rows, columns): (&Partition, &Partition),
        hosts: &Hosts,
        row_lengths: &[u64],
        dtype: DType,
    ) -> Result<Self> {
        check_shape((a.nrows(), a.ncols()), (rows.rows(), columns.rows()))?;
        check_shape((a.nrows(), row_lengths.len()), (rows.rows(), columns.rows()))?;
        check_ranks(rows, columns, hosts)?;
        let value = dtype.bytes() as u64;
        let ranks = rows.ranks();
        let mut volume = Volume {
            ranks: vec![RankVolume::default(); ranks],
            oblivious_bytes: row_lengths.iter().sum::<u64>() * (ranks as u64 - 1) * value,
            ..Volume::default()
        };
        let relays = hosts.have_levels();
        let mut on_host = OnHost::new();
        // Every nonzero is multiplied on the rank of its row.
        let all_here = |_: usize, columns: usize, _: &[(u32, u32)]| vec![true; columns];
        for of_host in hosts.each() {
            // Values that ranks of the host need, by the rank of other hosts that has them.
            let mut requested: BTreeMap<usize, Lists> = BTreeMap::new();
            for rank in of_host {
                let entries = rows.range(rank).flat_map(|row| a.row(row));
                volume.ranks[rank].nonzeros = entries.map(|c| row_lengths[c.to_usize()]).sum();
                let (_, blocks) = blocks::count(a, rows.range(rank), columns, rank, &all_here)?;
                for CountedBlock { peer, columns: needed, .. } in blocks {
                    let lengths = &row_lengths[columns.range(peer)];
                    let values: u64 = needed.iter().map(|row| lengths[*row as usize]).sum();
                    volume.rows_of_b_bytes += values * value;
                    if !hosts.differ(rank, peer) {
                        send_values(&mut volume, hosts, (peer, rank), values * value);
                        continue;
                    }
                    volume.direct_network_bytes += values * value;
                    match relays && is_relayed(lengths.iter().sum::<u64>() as usize) {
                        true => {
                            let needed = positions_of(lengths, &needed);
                            requested.entry(peer).or_default().push((rank, needed));
                        }
                        false => send_values(&mut volume, hosts, (peer, rank), values * value),
                    }
                }
            }
            for (from, requested) in requested {
                let of_host = (from, &requested);
                if !relay(&mut volume, hosts, &mut on_host, Flow::Operands, of_host, value) {
                    for (to, needed) in requested {
                        send_values(&mut volume, hosts, (from, to), needed.len() as u64 * value);
                    }
                }
            }
        }
        for (_, from, to) in on_host {
            count_message(&mut volume, hosts, from, to);
        }
        Ok(volume)
    }
}

/// Counts a message of values, if there are some.
fn send_values(volume: &mut Volume, hosts: &Hosts, (from, to): (usize, usize), bytes: u64) {
    if bytes > 0 {
        send(volume, hosts, from, to, bytes);
        count_message(volume, hosts, from, to);
    }
}

/// The positions of the nonzeros of `rows`, which increase, of a rank whose rows have these lengths.
fn positions_of(lengths: &[u64], rows: &[u32]) -> Vec<u32> {
    let (mut positions, mut first, mut next) = (Vec::new(), 0, 0);
    for row in rows {
        let row = *row as usize;
        first += lengths[next..row].iter().sum::<u64>();
        positions.extend((first..first + lengths[row]).map(|at| at as u32));
        (first, next) = (first + lengths[row], row + 1);
    }
    positions
}

#[cfg(test)]
mod tests {
    use gustav_core::Scalar;
    use gustav_io::Generator;

    use super::*;
    use crate::testing::on_ranks;
    use crate::{Device, DistScalar, Ranks, SpgemmPlan};

    /// What is counted for A·B is what a plan of ranks on hosts of `per_host` ranks counts of itself: B is `right`, A,
    /// or where A is not square its transpose.
    fn check<T: DistScalar>(left: &str, right: Option<&str>, ranks: usize, per_host: usize) {
        let generator = |text: &str| text.parse::<Generator>().expect("a generator");
        let (left, right) = (generator(left), right.map(generator));
        let a = left.build::<T, u32, u32>(2).expect("small");
        let rows = Partition::balanced(&a.pattern().view(), ranks);
        let square = a.nrows() == a.ncols();
        let inner = if square { rows.clone() } else { Partition::even(a.ncols(), ranks) };
        let hosts = Hosts::of_consecutive(ranks, per_host);
        let b = match &right {
            Some(right) => right.build::<T, u32, u32>(2).expect("small"),
            None if square => a.clone(),
            None => a.view().transpose().expect("small"),
        };
        let lengths: Vec<u64> =
            (0..b.nrows()).map(|row| b.pattern().view().row_len(row) as u64).collect();
        let counted =
            Volume::of_spgemm(&a.pattern().view(), (&rows, &inner), &hosts, &lengths, T::DTYPE);
        let counted = counted.expect("a volume");
        for found in on_ranks(Ranks::in_process_on(&hosts, 1 << 20), |ranks| {
            let make = |generator: &Generator, spread| {
                crate::io::generate::<T, u32, u32>(&ranks, generator, 2, spread)
            };
            let a = make(&left, (&rows, &inner))?;
            let b = match &right {
                Some(right) => {
                    let even = Partition::even(b.ncols(), ranks.size());
                    make(right, (&inner, &even))?
                }
                None if square => a.clone(),
                None => a.transpose()?,
            };
            let request = a.pattern().spgemm(b.pattern());
            let plan: SpgemmPlan<T> = request.plan(&Device::default())?;
            Ok::<_, gustav_core::Error>(plan.explain().volume.clone())
        }) {
            assert_eq!(found.expect("a plan"), counted, "{left} x {right:?}, {ranks} ranks");
        }
    }

    #[test]
    fn plans_send_what_is_counted() {
        for (ranks, per_host) in [(1, 1), (2, 1), (3, 2), (4, 4), (7, 3), (8, 2)] {
            check::<f32>("rmat:7,5", None, ranks, per_host);
            check::<f64>("uniform:50x110,4", None, ranks, per_host);
            check::<f64>("uniform:110x50,4", Some("power-law:50x70,1,2"), ranks, per_host);
            check::<gustav_core::f16>("empty:30x30,3,0.5", None, ranks, per_host);
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let a = "diagonal:6".parse::<Generator>().expect("a generator");
        let a = a.build::<f32, u32, u32>(1).expect("small");
        let (even, others) = (Partition::even(6, 2), Partition::even(6, 3));
        let of = |rows: &Partition, columns: &Partition, hosts: usize, rows_of_b: usize| {
            let lengths = vec![1; rows_of_b];
            let hosts = Hosts::apart(hosts);
            let a = a.pattern().view();
            Volume::of_spgemm(&a, (rows, columns), &hosts, &lengths, f32::DTYPE)
        };
        assert!(of(&even, &even, 2, 6).is_ok());
        for refused in [
            of(&even, &others, 2, 6),
            of(&even, &even, 3, 6),
            of(&even, &even, 2, 5),
            of(&Partition::even(5, 2), &even, 2, 6),
        ] {
            assert!(matches!(refused, Err(gustav_core::Error::Shape { .. })), "{refused:?}");
        }
    }
}
