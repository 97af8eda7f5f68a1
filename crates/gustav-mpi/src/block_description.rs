//! How a rank describes a block to the rank that has its columns.

use gustav_core::{Error, Result};

use crate::blocks::{Block, Part};

/// A block of another rank whose columns this rank has.
pub struct RemoteBlock {
    /// Columns of this rank that are multiplied on the other.
    pub columns: Vec<u32>,
    /// What is multiplied here: rows of the other rank numbered without gaps, columns of this rank, values in order.
    pub nonzeros: Part,
}

/// The description of `block`: the columns that are multiplied here, then the lengths of the rows and the columns of
/// the nonzeros that are multiplied there, each list preceded by its length.
///
/// # Errors
/// [`Error::Unsupported`] for a row of more than 2³² nonzeros.
pub fn describe(block: &Block) -> Result<Vec<u32>> {
    let there = &block.there;
    let mut words = vec![block.columns.len() as u32];
    words.extend_from_slice(&block.columns);
    words.push(there.rows.len() as u32);
    for ends in there.offsets.windows(2) {
        let len = u32::try_from(ends[1] - ends[0]).map_err(|_| Error::Unsupported {
            problem: format!("a row of {} nonzeros", ends[1] - ends[0]),
            backend: "a product over ranks".into(),
            reason: "lengths of rows travel as u32".into(),
            nearest: "rows without duplicate columns".into(),
        })?;
        words.push(len);
    }
    words.extend_from_slice(&there.columns);
    Ok(words)
}

impl RemoteBlock {
    /// Reads the description by rank `peer` for rank `rank`, which has `count` columns.
    ///
    /// # Errors
    /// [`Error::Communication`] for what no rank describes.
    pub fn read(words: &[u32], (rank, peer): (usize, usize), count: usize) -> Result<Self> {
        let read = || {
            let (columns, words) = list(words)?;
            let (lengths, words) = list(words)?;
            let mut offsets = vec![0_u64];
            for len in lengths {
                offsets.push(offsets[offsets.len() - 1] + u64::from(*len));
            }
            let known = |columns: &[u32]| columns.iter().all(|c| (*c as usize) < count);
            let complete = offsets[offsets.len() - 1] == words.len() as u64;
            (complete && known(columns) && known(words)).then(|| RemoteBlock {
                columns: columns.to_vec(),
                nonzeros: Part {
                    rows: (0..lengths.len() as u32).collect(),
                    offsets,
                    columns: words.to_vec(),
                    positions: (0..words.len()).collect(),
                },
            })
        };
        read().ok_or_else(|| Error::Communication {
            rank,
            peer: Some(peer),
            action: "reading the description of a block",
            reason: "it is damaged".into(),
        })
    }
}

/// A list preceded by its length, and the rest.
fn list(words: &[u32]) -> Option<(&[u32], &[u32])> {
    let (len, rest) = words.split_first()?;
    rest.split_at_checked(*len as usize)
}
