//! What choices lose, as `bench/fit_cost_model.py` records it.

use std::path::Path;

use gustav_core::Result;

use crate::csv::{self, Csv, Line};

/// What one choice lost against the fastest of all measured configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    /// `spmm` or `spmv` on a GPU, `cpu-spmm` on a CPU.
    pub product: String,
    /// The type of the values.
    pub dtype: String,
    /// Columns of B.
    pub columns: usize,
    /// The matrix.
    pub matrix: String,
    /// What it was to the fit: `unseen`, one of the `unseen copies` of such along the diagonal, or `held out` with its
    /// family.
    pub matrices: String,
    /// Who chose: `rules`, `model`, a `model of small products` or `of two widths`, or `one configuration`.
    pub chooser: String,
    /// Time of the choice ÷ least time, less one.
    pub regret: f64,
}

/// The regrets in a file.
///
/// # Errors
/// [`gustav_core::Error::Io`] when it cannot be read, [`gustav_core::Error::Format`] for columns that are missing,
/// [`gustav_core::Error::Parse`] for a line that lacks a number.
pub fn read(path: &Path) -> Result<Vec<Regret>> {
    parse(&csv::text(path)?).map_err(|e| e.in_file(path))
}

fn parse(text: &str) -> Result<Vec<Regret>> {
    let csv = Csv::parse(text, "regrets", "bench/fit_cost_model.py");
    let [product, dtype, columns] =
        [csv.column("product")?, csv.column("dtype")?, csv.column("columns")?];
    let [matrix, matrices] = [csv.column("matrix")?, csv.column("matrices")?];
    let [chooser, regret] = [csv.column("chooser")?, csv.column("regret")?];
    let of_line = |line: Line<'_>| {
        Ok(Regret {
            product: line.word(product).to_owned(),
            dtype: line.word(dtype).to_owned(),
            columns: line.number(columns)? as usize,
            matrix: line.word(matrix).to_owned(),
            matrices: line.word(matrices).to_owned(),
            chooser: line.word(chooser).to_owned(),
            regret: line.number(regret)?,
        })
    };
    csv.lines().map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_regrets_and_missing_columns_are_named() {
        let text = "product,dtype,columns,matrix,matrices,chooser,regret\n\
                    spmm,f32,32,\"uniform:25x10000,5000\",held out,model,0.125\n";
        let found = parse(text).expect("regrets");
        assert_eq!((found.len(), found[0].columns, found[0].regret), (1, 32, 0.125));
        assert_eq!(found[0].matrix, "uniform:25x10000,5000");
        let error = parse("product,dtype\n").expect_err("no columns").to_string();
        assert!(error.contains("columns") && error.contains("fit_cost_model"), "{error}");
        let error = parse(&text.replace("0.125", "much")).expect_err("no number").to_string();
        assert!(error.contains("much"), "{error}");
    }
}
