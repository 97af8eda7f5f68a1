//! Index arrays of other crates, read in place.

use gustav_core::{Error, Index, Result, index};

mod sealed {
    pub trait Sealed {}
}

/// An index type of other crates whose arrays are read in place as arrays of `u32` or `u64`.
pub trait Indices: sealed::Sealed + Copy {
    /// The index type of the same width.
    type Index: Index;

    /// `indices` in place.
    ///
    /// # Errors
    /// [`Error::Argument`] with the position of the first negative index.
    fn read(indices: &[Self]) -> Result<&[Self::Index]>;

    /// `indices` as this type, in the same memory where the compiler sees that it can be.
    ///
    /// # Errors
    /// [`Error::Argument`] with the first index that does not fit.
    fn write(indices: Vec<Self::Index>) -> Result<Vec<Self>>;
}

macro_rules! indices {
    ($($t:ty => $index:ty, |$from:ident| $read:expr;)*) => {$(
        impl sealed::Sealed for $t {}

        impl Indices for $t {
            type Index = $index;

            fn read($from: &[Self]) -> Result<&[$index]> {
                $read
            }

            fn write(indices: Vec<$index>) -> Result<Vec<Self>> {
                let fit = |i: $index| {
                    <$t>::try_from(i).map_err(|_| Error::Argument {
                        name: "index array",
                        found: i.to_string(),
                        expected: format!("at most {}", <$t>::MAX),
                    })
                };
                indices.into_iter().map(fit).collect()
            }
        }
    )*};
}

indices! {
    u32 => u32, |from| Ok(from);
    u64 => u64, |from| Ok(from);
    // gustav has 64-bit targets only.
    usize => u64, |from| Ok(bytemuck::cast_slice(from));
    i32 => u32, |from| index::unsigned(from);
    i64 => u64, |from| index::unsigned(from);
}
