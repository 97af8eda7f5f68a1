//! The features of sparsity, for `gustav info --features`.

use std::collections::BTreeMap;
use std::fmt::Write;

use gustav::{CsrView, Features, Index, SampledFeatures, Scalar, WarpShape};
use serde::Serialize;

use crate::failure::Result;
use crate::output::Number;

/// The features, and the errors of estimated ones.
#[derive(Serialize)]
pub struct Report {
    features: BTreeMap<&'static str, Number>,
    feature_errors: Option<BTreeMap<&'static str, Number>>,
    feature_rows: usize,
}

fn by_name(values: [f64; Features::COUNT]) -> BTreeMap<&'static str, Number> {
    Features::NAMES.into_iter().zip(values.map(Number)).collect()
}

impl Report {
    /// The features of `a`, from all rows or from about `sample` of them.
    ///
    /// # Errors
    /// For a sample of no rows, and when memory runs out.
    pub fn new<T: Scalar, I: Index, O: Index>(
        a: &CsrView<'_, T, I, O>,
        sample: Option<usize>,
    ) -> Result<Self> {
        let shape = WarpShape::default();
        let (features, feature_errors, feature_rows) = match sample {
            None => (Features::new(&a.pattern(), shape)?, None, a.nrows()),
            Some(rows) => {
                let sampled = SampledFeatures::new(&a.pattern(), shape, rows)?;
                (sampled.features, Some(by_name(sampled.errors)), sampled.rows)
            }
        };
        Ok(Report { features: by_name(features.values()), feature_errors, feature_rows })
    }

    /// One line a feature.
    pub fn text(&self) -> String {
        let mut t = format!("features from {} rows\n", self.feature_rows);
        for name in Features::NAMES {
            let error = self.feature_errors.as_ref().map(|e| format!(" ± {:.3}", e[name].0));
            // Writing to a String cannot fail.
            let _ = writeln!(
                t,
                "  {name:<36}{:>16}{}",
                number(self.features[name].0),
                error.unwrap_or_default(),
            );
        }
        t
    }
}

fn number(value: f64) -> String {
    if value == value.trunc() {
        format!("{value}")
    } else if value.abs() < 1e-3 {
        format!("{value:.3e}")
    } else {
        format!("{value:.3}")
    }
}
