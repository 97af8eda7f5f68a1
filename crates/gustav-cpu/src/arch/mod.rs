//! Instruction sets, detected at run time, and the vector types that kernels are written with.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod intrinsics;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod portable;
pub(crate) mod stream;
pub(crate) mod vector;

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::Error;

/// An instruction set that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isa {
    /// Plain Rust, any machine.
    Portable,
    /// AArch64 NEON.
    Neon,
    /// x86-64 AVX2 with FMA and F16C.
    Avx2,
    /// x86-64 AVX-512 F, BW, DQ, VL.
    Avx512,
}

impl Isa {
    /// Every instruction set.
    pub const ALL: [Isa; 4] = [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The best instruction set of this machine.
    pub fn detect() -> Isa {
        Isa::ALL.into_iter().rev().find(|isa| isa.available()).unwrap_or(Isa::Portable)
    }

    /// Whether this machine has the instruction set.
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && Isa::Avx2.available()
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => true,
            #[allow(unreachable_patterns, reason = "which arms remain depends on the target")]
            _ => false,
        }
    }

    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}

/// Whether loads of single values are faster than the instruction that gathers a vector of them, as
/// on AMD's processors.
pub(crate) fn has_slow_gathers() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static SLOW: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *SLOW.get_or_init(|| {
            let vendor = std::arch::x86_64::__cpuid(0);
            let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
            [b"AuthenticAMD", b"HygonGenuine"].iter().any(|slow| name == slow.as_slice())
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl Display for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = Error;
    fn from_str(s: &str) -> Result<Self, Error> {
        Isa::ALL.into_iter().find(|isa| isa.name() == s).ok_or_else(|| Error::Argument {
            name: "instruction set",
            found: s.into(),
            expected: "portable, neon, avx2 or avx512".into(),
        })
    }
}
