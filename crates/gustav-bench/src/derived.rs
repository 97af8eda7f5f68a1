//! Matrices derived from another, for training sets.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::buffer::try_vec;
use gustav_core::{Csr, Error, Index, Result};

/// How a matrix is derived from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Derived {
    /// `copies:K`: K copies on the diagonal.
    Copies(usize),
    /// `leading:N`: the first N rows and columns.
    Leading(usize),
    /// `blocks:K`: every entry becomes a full block of K × K entries (A ⊗ 1).
    Blocks(usize),
    /// `interleaved:K`: every entry becomes a diagonal block of K × K (A ⊗ I).
    Interleaved(usize),
}

impl Display for Derived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Derived::Copies(k) => write!(f, "copies:{k}"),
            Derived::Leading(n) => write!(f, "leading:{n}"),
            Derived::Blocks(k) => write!(f, "blocks:{k}"),
            Derived::Interleaved(k) => write!(f, "interleaved:{k}"),
        }
    }
}

impl FromStr for Derived {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let make: Option<fn(usize) -> Self> = match text.split_once(':').map(|p| p.0) {
            Some("copies") => Some(Derived::Copies),
            Some("leading") => Some(Derived::Leading),
            Some("blocks") => Some(Derived::Blocks),
            Some("interleaved") => Some(Derived::Interleaved),
            _ => None,
        };
        let size = text.split_once(':').and_then(|p| p.1.parse().ok()).filter(|k| *k > 0);
        make.zip(size).map(|(make, size)| make(size)).ok_or_else(|| Error::Argument {
            name: "derive",
            found: text.into(),
            expected: "copies:K, leading:N, blocks:K or interleaved:K".into(),
        })
    }
}

impl TryFrom<String> for Derived {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl Derived {
    /// Rows and columns of the derived matrix.
    pub fn shape(self, (rows, cols): (usize, usize)) -> (usize, usize) {
        match self {
            Derived::Leading(n) => (rows.min(n), cols.min(n)),
            Derived::Copies(k) | Derived::Blocks(k) | Derived::Interleaved(k) => {
                (rows.saturating_mul(k), cols.saturating_mul(k))
            }
        }
    }

    /// The matrix derived from `matrix`, whose rows are sorted; so are those of the result.
    ///
    /// # Errors
    /// [`Error::Overflow`] when it has more entries than 32 bits count, [`Error::OutOfMemory`].
    pub fn of(self, matrix: &Csr<f64>) -> Result<Csr<f64>> {
        let (rows, cols) = self.shape((matrix.nrows(), matrix.ncols()));
        let a = matrix.view();
        let (old_rows, old_cols) = (matrix.nrows(), matrix.ncols());
        build(rows, cols, |row, push: &mut dyn FnMut(usize, f64)| {
            let line = |row: usize| {
                let (columns, values) = a.row(row);
                columns.iter().map(|c| *c as usize).zip(values.iter().copied())
            };
            match self {
                Derived::Leading(_) => {
                    line(row).filter(|(c, _)| *c < cols).for_each(|(c, v)| push(c, v));
                }
                Derived::Copies(_) => {
                    let first = row / old_rows * old_cols;
                    line(row % old_rows).for_each(|(c, v)| push(first + c, v));
                }
                Derived::Blocks(k) => {
                    for (c, v) in line(row / k) {
                        (0..k).for_each(|j| push(c * k + j, v));
                    }
                }
                Derived::Interleaved(k) => {
                    line(row / k).for_each(|(c, v)| push(c * k + row % k, v));
                }
            }
        })
    }
}

/// A matrix from the entries that `line` pushes for each row.
fn build(
    rows: usize,
    cols: usize,
    line: impl Fn(usize, &mut dyn FnMut(usize, f64)),
) -> Result<Csr<f64>> {
    let number = |n: usize| u32::try_from_usize(n, "index of a derived matrix");
    number(cols)?;
    let mut offsets = try_vec::<u32>(rows + 1, "row offsets")?;
    let mut nnz = 0;
    offsets.push(0);
    for row in 0..rows {
        line(row, &mut |_, _| nnz += 1);
        offsets.push(number(nnz)?);
    }
    let mut indices = try_vec::<u32>(nnz, "column indices")?;
    let mut values = try_vec::<f64>(nnz, "values")?;
    for row in 0..rows {
        line(row, &mut |column, value| {
            indices.push(column as u32);
            values.push(value);
        });
    }
    Csr::new(rows, cols, offsets, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    // [0 0 1]
    // [2 3 0]
    fn matrix() -> Csr<f64> {
        Csr::new(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0]).expect("a matrix")
    }

    fn made(text: &str) -> Csr<f64> {
        text.parse::<Derived>().expect("a rule").of(&matrix()).expect("a matrix")
    }

    #[test]
    fn copies_lie_on_the_diagonal() {
        let twice = made("copies:2");
        assert_eq!((twice.nrows(), twice.ncols(), twice.nnz()), (4, 6, 6));
        assert_eq!(twice.offsets()[..], [0, 1, 3, 4, 6]);
        assert_eq!(twice.indices()[..], [2, 0, 1, 5, 3, 4]);
    }

    #[test]
    fn the_leading_part_is_cut_out() {
        let part = made("leading:2");
        assert_eq!((part.nrows(), part.ncols()), (2, 2));
        assert_eq!(part.offsets()[..], [0, 0, 2]);
        assert_eq!(part.indices()[..], [0, 1]);
        assert_eq!(made("leading:9"), matrix());
    }

    #[test]
    fn entries_become_blocks() {
        let blocks = made("blocks:2");
        assert_eq!((blocks.nrows(), blocks.ncols(), blocks.nnz()), (4, 6, 12));
        assert_eq!(blocks.indices()[..4], [4, 5, 4, 5]);
        assert_eq!(blocks.values()[4..8], [2.0, 2.0, 3.0, 3.0]);
        let apart = made("interleaved:2");
        assert_eq!((apart.nrows(), apart.ncols(), apart.nnz()), (4, 6, 6));
        assert_eq!(apart.indices()[..], [4, 5, 0, 2, 1, 3]);
    }

    #[test]
    fn other_words_are_refused() {
        for text in ["copies", "copies:0", "copies:x", "mirror:2"] {
            assert!(text.parse::<Derived>().unwrap_err().to_string().contains("leading:N"));
        }
        assert_eq!("blocks:3".parse::<Derived>().unwrap().to_string(), "blocks:3");
    }
}
