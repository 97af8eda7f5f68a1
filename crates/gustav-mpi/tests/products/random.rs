//! Random matrices, partitions and hosts, and numbers of columns past those of 32 bits.

use gustav_core::{Dense, DenseView, Layout, Pattern, Result};
use gustav_mpi::{Communication, DistPattern, Partition, ProductShape, Ranks, SpmmPlan, Volume};

use crate::cases::random::{self, Random, device};
use crate::common::{Threads, all_ok, on_ranks};

#[test]
fn spmm_of_every_type() -> Result<()> {
    random::spmm_of_every_type(&Threads)
}

#[test]
fn sddmm_of_every_type() -> Result<()> {
    random::sddmm_of_every_type(&Threads)
}

#[test]
fn spgemm_of_every_type() -> Result<()> {
    random::spgemm_of_every_type(&Threads)
}

/// Columns past 2³¹, most of them on one rank; B is memory that nobody touches but for the rows that count.
#[test]
#[ignore = "needs 9 GB of memory"]
fn columns_past_31_bits() -> Result<()> {
    let counts = [5_usize, (1 << 31) + 7, 3];
    let columns = Partition::of_counts(&counts)?;
    let beyond = Partition::of_counts(&[1 << 32, (1 << 32) - 1, 9])?;
    assert_eq!((beyond.owner((1 << 33) - 2), beyond.owner((1 << 33) - 1)), (1, 2));
    let last = columns.rows() - 1;
    // Ranks 0 and 2 have a row each, with a column of every rank.
    let indices = vec![4_u64, 6 + (1 << 31), last as u64];
    let found = all_ok(on_ranks(Ranks::in_process(3), |ranks| {
        let local = match ranks.rank() {
            1 => Pattern::<u64, u64>::new(0, columns.rows(), vec![0], Vec::new())?,
            _ => Pattern::new(1, columns.rows(), vec![0, 3], indices.clone())?,
        };
        let a = DistPattern::new(&ranks, &columns, local)?;
        let device = device(Communication::Cheapest);
        let mut plan: SpmmPlan<f32> = a.spmm(1).plan(&device)?;
        let mut b = vec![0_f32; counts[ranks.rank()]];
        for (column, value) in [(4, 2.0), (6 + (1 << 31), 30.0), (last, 400.0)] {
            if columns.owner(column) == ranks.rank() {
                b[column - columns.range(ranks.rank()).start] = value;
            }
        }
        let mut c = Dense::zeros(a.local().nrows(), 1, Layout::RowMajor)?;
        let values = vec![1.0; a.local().nnz()];
        plan.execute(&values, DenseView::row_major(b.len(), 1, &b)?, &mut c, ())?;
        Ok(c.data().to_vec())
    }))?;
    assert_eq!(found.concat(), [432.0; 2]);
    Ok(())
}

/// Where columns are past 2³³ in all, ranks send what they would if these were few.
#[test]
fn columns_past_33_bits_are_counted() -> Result<()> {
    let mut random = Random(31);
    let small = random.matrix::<f32, u64, u64>(40, 12);
    let rows = Partition::even(40, 4);
    let near = Partition::of_counts(&[3; 4])?;
    let far = Partition::of_counts(&[(1 << 32) - 1, 1 << 31, (1 << 32) - 5, (1 << 31) + 3])?;
    let shifted = |column: &u64| {
        let rank = near.owner(*column as usize);
        (far.range(rank).start + *column as usize - near.range(rank).start) as u64
    };
    let indices: Vec<u64> = small.indices().iter().map(shifted).collect();
    let large = Pattern::<u64, u64>::new(40, far.rows(), small.offsets().to_vec(), indices)?;
    for communication in Communication::ALL {
        let dtype = gustav_core::DType::F32;
        let shape = ProductShape { columns: 3, dtype, transpose_a: false, communication };
        let of_large = Volume::of(&large.view(), &rows, &far, shape)?;
        let of_small = Volume::of(&small.view().pattern(), &rows, &near, shape)?;
        assert!(of_small.bytes() > 0 && far.rows() > 1 << 33);
        assert_eq!((&of_large.ranks, of_large.bytes()), (&of_small.ranks, of_small.bytes()));
    }
    Ok(())
}
