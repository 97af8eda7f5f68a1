//! Kernel instantiations compiled without a device: every type meets every semiring, targets and
//! tiles take turns.

use gustav_core::{DType, IndexType, SemiringKind};

use crate::dense::Transpose;
use crate::jit::{Compiler, Nvrtc, Request};
use crate::spmm::row_split;
use crate::spmm::segmented::{Config, Reduction, Variant};
use crate::transposed;

const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];
const TYPES: [DType; 6] = [DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I32, DType::I64];

fn segmented(dtype: DType, semiring: SemiringKind, turn: usize) -> Request {
    let bit = |k: usize| turn >> k & 1 == 1;
    let widths = [16 / dtype.bytes() as u32, 1, 2];
    let (lanes, tiles, share) =
        [(8, 1, 1), (32, 2, 1), (4, 3, 4), (1, 1, 32), (16, 4, 2)][turn % 5];
    let atomic = semiring == SemiringKind::PlusTimes && matches!(dtype, DType::F32 | DType::F64);
    let index = |wide| if wide { IndexType::U64 } else { IndexType::U32 };
    let sums = if dtype.bytes() == 2 { DType::F32 } else { dtype };
    Variant {
        config: Config {
            vector: widths[turn % 3],
            lanes,
            tiles,
            share,
            chunk: [4, 8, 2][turn % 3],
            prefetch: bit(0),
            longest: bit(1).then_some(64),
            sorted: true,
            reduction: if atomic && bit(2) { Reduction::Atomic } else { Reduction::FixUp },
            block: 128,
        },
        dtype,
        out: if bit(3) { sums } else { dtype },
        index: index(bit(2)),
        offset: index(bit(1)),
        semiring,
        stride: index(bit(4)),
        position: index(bit(3)),
        exact: bit(2),
        wide_a: !bit(0),
        strips: 1 << (turn % 6),
    }
    .request()
}

#[test]
#[ignore = "needs NVRTC on the library path"]
fn covering_set_compiles_for_every_target() {
    let mut requests = Vec::new();
    for (i, dtype) in TYPES.into_iter().enumerate() {
        for (j, semiring) in SemiringKind::ALL.into_iter().enumerate() {
            // The third round flips what the first two chose by their turn.
            requests.push((i + j, segmented(dtype, semiring, 5 * i + 7 * j)));
            if semiring == SemiringKind::PlusTimes {
                requests.push((i + j + 2, segmented(dtype, semiring, 5 * i + 6)));
            }
        }
        let sums = if dtype.bytes() == 2 { DType::F32 } else { dtype };
        requests.push((i, Transpose::request(dtype, dtype, SemiringKind::PlusTimes)));
        requests.push((i + 1, Transpose::request(sums, dtype, SemiringKind::MinPlus)));
    }
    for (i, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
        requests.push((i, row_split::request(dtype, row_split::Config::default())));
    }
    requests.push((0, transposed::request::<f32, u32>()));
    requests.push((1, transposed::request::<f64, u64>()));
    let mut failures = Vec::new();
    for (turn, request) in &requests {
        let target = TARGETS[turn % TARGETS.len()];
        match Nvrtc.compile(request, target) {
            Ok(cubin) => assert!(cubin.starts_with(b"\x7fELF"), "{} is no cubin", request.name),
            Err(error) => failures.push(format!("{error}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}: {}",
        failures.len(),
        requests.len(),
        failures.join("\n")
    );
}
