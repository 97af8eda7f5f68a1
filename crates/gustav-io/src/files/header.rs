//! The information of a file about its matrix before the first entry.

use super::format::{Compression, Format};

/// The kind of values in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Floating-point numbers.
    Real,
    /// Integers (and Booleans).
    Integer,
    /// No values, only positions.
    Pattern,
}

impl Field {
    /// The field's name as Matrix Market writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Real => "real",
            Field::Integer => "integer",
            Field::Pattern => "pattern",
        }
    }
}

/// The half of a matrix that a file omits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Symmetry {
    /// None.
    #[default]
    General,
    /// An entry below the diagonal stands for its mirror image too.
    Symmetric,
    /// As symmetric, with the mirror image negated; there is no diagonal.
    SkewSymmetric,
}

impl Symmetry {
    /// The symmetry's name as Matrix Market writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Symmetry::General => "general",
            Symmetry::Symmetric => "symmetric",
            Symmetry::SkewSymmetric => "skew-symmetric",
        }
    }
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The file's format.
    pub format: Format,
    /// How the file is compressed.
    pub compression: Compression,
    /// Whether the file holds every element rather than the nonzeros.
    pub dense: bool,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// Number of entries stored in the file; symmetry may add their mirror images.
    pub entries: u64,
    /// The kind of values in the file.
    pub field: Field,
    /// The half of the matrix that the file omits.
    pub symmetry: Symmetry,
}
