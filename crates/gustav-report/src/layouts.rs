//! Layouts of B and C and masks of C, as suites and records name them.

use gustav_core::Layout;
use serde::Deserialize;

/// Layouts of B and C.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layouts {
    /// Both row-major.
    #[default]
    RowMajor,
    /// Both column-major.
    ColumnMajor,
    /// B row-major and C column-major, as in `csrmm2` of earlier cuSPARSE.
    RowToColumnMajor,
}

impl Layouts {
    /// The name in suites and records.
    pub fn name(self) -> &'static str {
        match self {
            Layouts::RowMajor => "row-major",
            Layouts::ColumnMajor => "column-major",
            Layouts::RowToColumnMajor => "row-to-column-major",
        }
    }

    /// Layout of B.
    pub fn b(self) -> Layout {
        match self {
            Layouts::ColumnMajor => Layout::ColumnMajor,
            Layouts::RowMajor | Layouts::RowToColumnMajor => Layout::RowMajor,
        }
    }

    /// Layout of C.
    pub fn c(self) -> Layout {
        match self {
            Layouts::RowMajor => Layout::RowMajor,
            Layouts::ColumnMajor | Layouts::RowToColumnMajor => Layout::ColumnMajor,
        }
    }
}

/// The entries of C that are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mask {
    /// Those at which A has an entry.
    Own,
    /// All entries of C without one in sixteen.
    Most,
}

impl Mask {
    /// The name in suites and records.
    pub fn name(self) -> &'static str {
        match self {
            Mask::Own => "own",
            Mask::Most => "most",
        }
    }
}
