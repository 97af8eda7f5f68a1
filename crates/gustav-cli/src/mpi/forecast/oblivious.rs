//! Schemes of communication that do not look at the pattern.

use std::ops::Range;

use gustav_mpi::{Partition, RankVolume, Traffic, Volume};

/// A rank with these messages, of which those of `on_host` stay on its host.
fn of_traffic(all: Traffic, on_host: Traffic, nonzeros: u64) -> RankVolume {
    let Traffic { sent_bytes, received_bytes, sent_messages } = all;
    let network = Traffic {
        sent_bytes: sent_bytes - on_host.sent_bytes,
        received_bytes: received_bytes - on_host.received_bytes,
        sent_messages: sent_messages - on_host.sent_messages,
    };
    RankVolume { sent_bytes, received_bytes, sent_messages, nonzeros, network }
}

/// The ranks on the host of rank `q`, of which each has so many.
fn of_host(q: usize, per_host: usize, ranks: usize) -> Range<usize> {
    let first = q - q % per_host;
    first..first.saturating_add(per_host).min(ranks)
}

/// Every rank sends its part of B, of so many bytes, to all others.
pub fn all_gather(bytes_of_b: &[u64], work: &[u64], per_host: usize) -> Volume {
    let ranks = work.len();
    let mut before = vec![0];
    bytes_of_b.iter().for_each(|bytes| before.push(before[before.len() - 1] + bytes));
    let of_rank = |q: usize| {
        let own = bytes_of_b[q];
        // Among the ranks of a range, of which it is one.
        let among = |others: Range<usize>| {
            let messages = others.len() as u64 - 1;
            Traffic {
                sent_bytes: own * messages,
                received_bytes: before[others.end] - before[others.start] - own,
                sent_messages: messages,
            }
        };
        of_traffic(among(0..ranks), among(of_host(q, per_host, ranks)), work[q])
    };
    Volume { ranks: (0..ranks).map(of_rank).collect(), ..Volume::default() }
}

/// Bytes of a row of B, and of C.
#[derive(Clone, Copy)]
pub struct RowBytes {
    pub of_b: u64,
    pub of_c: u64,
}

/// 1.5D (Koanantakool et al. 2016): `copies` ranks have a block of rows of A, B and C, as large as
/// those of as many ranks together; each multiplies its part of the blocks of B, which is sent to
/// it whole, and the copies of C are summed by an all-reduce.
pub fn replicated(
    (of_b, of_c): (&Partition, &Partition),
    nonzeros: &[u64],
    row: RowBytes,
    copies: usize,
    per_host: usize,
) -> Volume {
    let ranks = nonzeros.len();
    let blocks = ranks / copies;
    let rows_of = |p: &Partition, blocks: Range<usize>| {
        (p.offsets()[blocks.end * copies] - p.offsets()[blocks.start * copies]) as u64
    };
    let stages = blocks / copies;
    let of_rank = |q: usize| {
        let (block, copy) = (q / copies, q % copies);
        let mine = copy * stages..(copy + 1) * stages;
        // The copy whose part has the block sends it to the other blocks' copies of that part.
        let sends = mine.contains(&block);
        let own = if sends { rows_of(of_b, block..block + 1) } else { 0 };
        let rounds = 2 * (copies as u64 - 1);
        let sums = rounds * rows_of(of_c, block..block + 1) * row.of_c / copies as u64;
        // Sums go round the copies of a block.
        let [next, previous] = [1, copies - 1].map(|step| block * copies + (copy + step) % copies);
        // Among the ranks of a range, of which it is one.
        let among = |others: Range<usize>| {
            // Blocks whose rank of this copy is there.
            let first = others.start.saturating_sub(copy).div_ceil(copies);
            let there = first..(others.end + copies - 1 - copy) / copies;
            let receivers = if sends { there.len() as u64 - 1 } else { 0 };
            let from = mine.start.max(there.start)..mine.end.min(there.end);
            let received = if from.is_empty() { 0 } else { rows_of(of_b, from) - own };
            let is_there = |rank: usize| u64::from(others.contains(&rank));
            Traffic {
                sent_bytes: receivers * own * row.of_b + is_there(next) * sums,
                received_bytes: received * row.of_b + is_there(previous) * sums,
                sent_messages: receivers + is_there(next) * rounds,
            }
        };
        let work: u64 = nonzeros[block * copies..(block + 1) * copies].iter().sum();
        let on_host = among(of_host(q, per_host, ranks));
        of_traffic(among(0..ranks), on_host, work / copies as u64)
    };
    Volume { ranks: (0..ranks).map(of_rank).collect(), ..Volume::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every rank sends every other in 1.5D: bytes and messages.
    fn messages(p: &Partition, row: RowBytes, copies: usize) -> Vec<(usize, usize, u64, u64)> {
        let ranks = p.ranks();
        let blocks = ranks / copies;
        let stages = blocks / copies;
        let rows =
            |block: usize| (p.offsets()[(block + 1) * copies] - p.offsets()[block * copies]) as u64;
        let mut all = Vec::new();
        for from in 0..ranks {
            let (block, copy) = (from / copies, from % copies);
            if block / stages == copy {
                let others = (0..ranks).filter(|to| to % copies == copy && *to != from);
                all.extend(others.map(|to| (from, to, rows(block) * row.of_b, 1)));
            }
            let next = block * copies + (copy + 1) % copies;
            let rounds = 2 * (copies as u64 - 1);
            all.push((from, next, rounds * rows(block) * row.of_c / copies as u64, rounds));
        }
        all
    }

    #[test]
    fn ranks_send_and_receive_what_copies_need() {
        let row = RowBytes { of_b: 8, of_c: 12 };
        for (copies, ranks, per_host) in
            [(2, 4, 1), (2, 16, 3), (2, 24, 6), (3, 36, 5), (4, 32, 7), (4, 64, 64), (3, 9, 2)]
        {
            let counts: Vec<usize> = (0..ranks).map(|q| q * 7 % 5).collect();
            let p = Partition::of_counts(&counts).expect("counts");
            let volume = replicated((&p, &p), &vec![1; ranks], row, copies, per_host);
            let mut expected = vec![RankVolume { nonzeros: 1, ..RankVolume::default() }; ranks];
            for (from, to, bytes, messages) in messages(&p, row, copies) {
                let network = from / per_host != to / per_host;
                let times = |number: u64| if network { number } else { 0 };
                expected[from].sent_bytes += bytes;
                expected[from].sent_messages += messages;
                expected[from].network.sent_bytes += times(bytes);
                expected[from].network.sent_messages += times(messages);
                expected[to].received_bytes += bytes;
                expected[to].network.received_bytes += times(bytes);
            }
            assert_eq!(volume.ranks, expected, "{copies} copies, {ranks} ranks, {per_host}");
        }
    }
}
