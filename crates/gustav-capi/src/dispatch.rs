//! From types at run time to types of Rust.

/// Runs `$body` with `$p` as the pattern in an `Indices`.
macro_rules! with_indices {
    ($any:expr, |$p:ident| $body:expr) => {
        match $any {
            crate::pattern::Indices::Small($p) => $body,
            crate::pattern::Indices::Long($p) => $body,
            crate::pattern::Indices::Large($p) => $body,
        }
    };
}
pub(crate) use with_indices;
