//! The vendor's functions that Yang, Buluç and Owens (2018) measured beside, which their layouts of B and C tell
//! apart, and its products in these layouts.

use super::Platform;
use crate::{Case, Layouts, Record};

/// A function of cuSPARSE at the paper's time.
pub(crate) struct VendorFunction {
    pub name: &'static str,
    pub layouts: Layouts,
    /// What the paper's choice between its two kernels gained over it on a Tesla K40c.
    pub paper: &'static str,
}

pub(crate) const VENDOR_FUNCTIONS: [VendorFunction; 2] = [
    VendorFunction {
        name: "csrmm",
        layouts: Layouts::ColumnMajor,
        paper: "2.69 in the geometric mean, 22.4 at best",
    },
    VendorFunction {
        name: "csrmm2",
        layouts: Layouts::RowToColumnMajor,
        paper: "1.32 in the geometric mean, 4.1 at best",
    },
];

impl VendorFunction {
    /// The function with its layouts.
    pub fn title(&self) -> String {
        format!("{}: {}", self.name, self.layouts.name())
    }

    /// Time of the fastest reference peer in its layouts on the case of `record`, in the same suite.
    pub fn ms(&self, platform: &Platform, record: &Record) -> Option<f64> {
        let case = Case { layout: self.layouts.name().into(), ..record.case.clone() };
        let same = |r: &&Record| {
            r.case == case
                && r.suite == record.suite
                && platform.reference_peers.contains(&r.engine)
        };
        platform.records.iter().filter(same).filter_map(|r| r.execute_ms).reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn the_fastest_in_the_layouts_of_the_same_suite_counts() {
        let of = |engine: &str, layouts: Layouts, suite: &str, ms: f64| {
            let mut found = record("m", engine, "default");
            found.case.layout = layouts.name().into();
            Record { suite: suite.into(), execute_ms: Some(ms), ..found }
        };
        let records = [
            of("gustav", Layouts::RowMajor, "a", 1.0),
            of("mkl", Layouts::RowMajor, "a", 2.0),
            of("mkl", Layouts::ColumnMajor, "a", 5.0),
            of("graphblas", Layouts::ColumnMajor, "a", 4.0),
            of("gustav", Layouts::ColumnMajor, "a", 0.5),
            of("mkl", Layouts::ColumnMajor, "b", 3.0),
        ];
        let platform = Platform::all(&records).remove(0);
        let ms = VENDOR_FUNCTIONS.map(|function| function.ms(&platform, &records[0]));
        assert_eq!(ms, [Some(4.0), None]);
    }
}
