//! From types at run time to types of Rust.

/// Runs `$body` with `$T` as the type of values that `$dtype` says.
macro_rules! with_scalar {
    ($dtype:expr, |$T:ident| $body:expr) => {
        match $dtype {
            gustav::DType::F16 => {
                type $T = gustav::f16;
                $body
            }
            gustav::DType::Bf16 => {
                type $T = gustav::bf16;
                $body
            }
            gustav::DType::F32 => {
                type $T = f32;
                $body
            }
            gustav::DType::F64 => {
                type $T = f64;
                $body
            }
            gustav::DType::I32 => {
                type $T = i32;
                $body
            }
            gustav::DType::I64 => {
                type $T = i64;
                $body
            }
        }
    };
}
pub(crate) use with_scalar;

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
