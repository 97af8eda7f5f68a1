//! Parameter blocks: the struct that a kernel takes by value, declared once for the host and for
//! CUDA C++.
//!
//! `parameter_block!` declares the Rust struct and generates the C++ one as the text of a header,
//! which a [`Request`](crate::jit::Request) supplies to the compiler. A kernel includes it by its
//! Rust path, `#include "gustav_cuda::spmm::segmented::Arguments"`. The header asserts the size and
//! the offsets that Rust gives the struct, so that a kernel with another layout does not compile.

use std::fmt::Write;

/// A member of a parameter block. The set is closed: numbers, device addresses (`u64` in Rust) and
/// other blocks.
///
/// # Safety
/// `SPELLING` names a C++ type with the size and the alignment of `Self`, for which every bit
/// pattern of `Self` is valid.
pub(crate) unsafe trait Member: Copy + 'static {
    /// The type in C++.
    const SPELLING: &'static str;
    /// The header that declares it, for blocks.
    const HEADER: Option<&'static str> = None;

    /// Adds the headers that declare it to `headers`.
    fn collect(_headers: &mut Vec<Header>) {}
}

// SAFETY: `u32` of `kernels/common/types.cuh`.
unsafe impl Member for u32 {
    const SPELLING: &'static str = "u32";
}
// SAFETY: `u64` of `kernels/common/types.cuh`.
unsafe impl Member for u64 {
    const SPELLING: &'static str = "u64";
}

/// A struct with the same layout on the host and in kernels.
///
/// # Safety
/// As for [`Member`]; only `parameter_block!` implements it.
pub(crate) unsafe trait ParameterBlock: Member {
    const FIELDS: &'static [Field];
}

/// A field: its C++ declaration and its offset in Rust.
pub(crate) struct Field {
    pub name: &'static str,
    pub spelling: &'static str,
    pub offset: usize,
    pub header: Option<&'static str>,
}

/// A generated header: the name that kernels include it by, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub name: &'static str,
    pub text: String,
}

/// The C++ declaration of `B` as a header.
pub(crate) fn header<B: ParameterBlock>(name: &'static str) -> Header {
    let (block, size) = (B::SPELLING, size_of::<B>());
    let mut text = String::from("#pragma once\n");
    for header in B::FIELDS.iter().filter_map(|field| field.header) {
        let _ = writeln!(text, "#include \"{header}\"");
    }
    let _ = writeln!(text, "struct {block} {{");
    for field in B::FIELDS {
        let _ = writeln!(text, "    {} {};", field.spelling, field.name);
    }
    let _ = writeln!(text, "}};\nstatic_assert(sizeof({block}) == {size}, \"{name} in Rust\");");
    for Field { name: field, offset, .. } in B::FIELDS {
        // NVRTC has no `offsetof`.
        let offset_of = format!("__INTADDR__(&(({block} *)0)->{field})");
        let _ = writeln!(text, "static_assert({offset_of} == {offset}, \"{name} in Rust\");");
    }
    Header { name, text }
}

/// Declares parameter blocks.
///
/// A field is a number (`u32`, `u64`), another block, or a device address, which Rust holds as a
/// `u64`. Addresses are written like Rust's pointers, `*const T` or `*mut T`, where `T` is a type
/// of the kernel's source.
macro_rules! parameter_block {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$field_attribute:meta])*
                $field_visibility:vis $field:ident : $(* $access:ident)? $($ty:ident)::+
            ),* $(,)?
        }
    )*) => {$(
        $(#[$attribute])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        $visibility struct $name {
            $(
                $(#[$field_attribute])*
                $field_visibility $field:
                    parameter_block!(@type $(* $access)? $($ty)::+)
            ),*
        }

        // SAFETY: `header` declares the struct with the fields in this order, and asserts size and
        // offsets.
        unsafe impl $crate::jit::parameter_block::Member for $name {
            const SPELLING: &'static str = stringify!($name);
            const HEADER: Option<&'static str> =
                Some(concat!(module_path!(), "::", stringify!($name)));

            fn collect(headers: &mut Vec<$crate::jit::parameter_block::Header>) {
                use $crate::jit::parameter_block::{Member, header};
                $(<parameter_block!(@type $(* $access)? $($ty)::+) as Member>::collect(headers);)*
                let name = concat!(module_path!(), "::", stringify!($name));
                // NVRTC rejects duplicate headers.
                if headers.iter().all(|header| header.name != name) {
                    headers.push(header::<Self>(name));
                }
            }
        }
        // SAFETY: as above.
        unsafe impl $crate::jit::parameter_block::ParameterBlock for $name {
            const FIELDS: &'static [$crate::jit::parameter_block::Field] = &[
                $($crate::jit::parameter_block::Field {
                    name: stringify!($field),
                    spelling: parameter_block!(
                        @spelling $(* $access)? $($ty)::+
                    ),
                    offset: std::mem::offset_of!($name, $field),
                    header: <parameter_block!(
                        @type $(* $access)? $($ty)::+
                    ) as $crate::jit::parameter_block::Member>::HEADER,
                }),*
            ];
        }
    )*};
    (@type * $access:ident $($ty:tt)+) => { u64 };
    (@type $($ty:tt)+) => { $($ty)+ };
    (@spelling * mut $($ty:tt)+) => { concat!(stringify!($($ty)+), " *") };
    (@spelling * const $($ty:tt)+) => { concat!("const ", stringify!($($ty)+), " *") };
    (@spelling $($ty:tt)+) => { <$($ty)+ as $crate::jit::parameter_block::Member>::SPELLING };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::{Compiler, Nvrtc, Request};

    parameter_block! {
        struct Inner {
            offsets: *const Offset,
            count: u32,
        }

        struct Outer {
            first: u32,
            inner: Inner,
            state: *const u64,
            out: *mut schedule::Value,
            again: Inner,
            last: u32,
        }
    }

    const SOURCE: &str = "#include \"common/types.cuh\"
        using Offset = u64;
        namespace schedule { using Value = f32; }
        #pragma pack(push, GUSTAV_PACK)
        #include \"gustav_cuda::jit::parameter_block::tests::Outer\"
        #pragma pack(pop)
        extern \"C\" __global__ void write(const Outer args) { *args.out = args.inner.count; }";

    fn request(pack: u32) -> Request {
        Request::new("blocks.cu", SOURCE).with_block::<Outer>().with("PACK", pack)
    }

    #[test]
    fn headers_declare_the_fields_in_order() {
        let mut headers = Vec::new();
        Outer::collect(&mut headers);
        let [inner, outer] = headers.as_slice() else { panic!("{headers:?}") };
        assert_eq!(inner.name, "gustav_cuda::jit::parameter_block::tests::Inner");
        assert_eq!(outer.name, "gustav_cuda::jit::parameter_block::tests::Outer");
        assert!(outer.text.contains(&format!("#include \"{}\"\n", inner.name)), "{outer:?}");
        let declared = "struct Outer {\n    u32 first;\n    Inner inner;\n    const u64 * state;\n    \
                        schedule :: Value * out;\n    Inner again;\n    u32 last;\n};\n";
        assert!(outer.text.contains(declared), "{outer:?}");
        for (field, offset) in
            [("first", 0), ("inner", 8), ("state", 24), ("out", 32), ("last", 56)]
        {
            let asserted = format!("->{field}) == {offset},");
            assert!(outer.text.contains(&asserted), "{field}: {outer:?}");
        }
        assert!(outer.text.contains("sizeof(Outer) == 64,"), "{outer:?}");
    }

    /// The header compiles if the layouts agree, and not otherwise.
    #[test]
    #[ignore = "needs NVRTC"]
    fn another_layout_does_not_compile() {
        Nvrtc.compile(&request(8), "sm_90").expect("the layout of Rust");
        let refused = Nvrtc.compile(&request(4), "sm_90").expect_err("packed").to_string();
        assert!(refused.contains("parameter_block::tests::Outer in Rust"), "{refused}");
    }
}
