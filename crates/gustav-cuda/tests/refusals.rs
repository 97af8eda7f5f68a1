//! What every algorithm takes and what it refuses, asked without a device.

use gustav_core::{CsrView, DType, Error, IndexType, Layout, Operation, Problem, Result, Semiring};
use gustav_cuda::{Entry, spmm, spmv};
use gustav_plan::Algorithm::{self, *};

const TYPES: [DType; 6] = [DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I32, DType::I64];
const INDICES: [IndexType; 2] = [IndexType::U32, IndexType::U64];
const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];
const BOTH: [bool; 2] = [false, true];

/// Every combination of what a product of `operation` can ask for.
fn problems(operation: Operation) -> Vec<Problem> {
    let a = CsrView::<f32, u32, u32>::new(2, 2, &[0, 1, 2], &[0, 1], &[1.0; 2]).expect("a matrix");
    let layouts: &[Layout] = if operation == Operation::Spmm { &LAYOUTS } else { &LAYOUTS[..1] };
    let mut all = vec![Problem { operation, ..Problem::spmm(&a) }];
    let mut each = |refine: &dyn Fn(&Problem) -> Vec<Problem>| {
        all = all.iter().flat_map(refine).collect();
    };
    each(&|p| TYPES.map(|dtype| Problem { dtype, output: dtype, ..p.clone() }).into());
    each(&|p| INDICES.map(|index_type| Problem { index_type, ..p.clone() }).into());
    each(&|p| INDICES.map(|offset_type| Problem { offset_type, ..p.clone() }).into());
    each(&|p| Semiring::ALL.iter().map(|s| p.clone().semiring(*s)).collect());
    each(&|p| layouts.iter().map(|b| p.clone().layouts(*b, p.layout_c)).collect());
    each(&|p| layouts.iter().map(|c| p.clone().layouts(p.layout_b, *c)).collect());
    each(&|p| BOTH.map(|asked| p.clone().transpose_a(asked)).into());
    each(&|p| BOTH.map(|asked| p.clone().deterministic(asked)).into());
    each(&|p| BOTH.map(|asked| p.clone().finite(asked)).into());
    each(&|p| BOTH.map(|asked| p.clone().tf32(asked)).into());
    all
}

/// Whether the page of `algorithm` says that it takes `p`.
fn takes(algorithm: Algorithm, p: &Problem) -> bool {
    let spmm = p.operation == Operation::Spmm;
    let plain = p.semiring == Semiring::PlusTimes;
    let real = !p.dtype.is_integer();
    let paper = plain
        && matches!(p.dtype, DType::F32 | DType::F64)
        && (p.index_type, p.offset_type) == (IndexType::U32, IndexType::U32)
        && !p.transpose_a;
    let both = |layout| (p.layout_b, p.layout_c) == (layout, layout);
    match algorithm {
        Segmented | EvenShares | RowBlock | ColumnPanel | BStationary => true,
        RowSplit if !spmm => true,
        RowSplit => paper && p.layout_b == Layout::RowMajor,
        ThreadRow | NonzeroSplit | MergePath | SellP | EllR => paper && both(Layout::RowMajor),
        HeavyLight => paper && both(Layout::RowMajor) && !p.deterministic,
        OutputStationary | Dcsr => paper && both(Layout::ColumnMajor),
        Tensor => plain && real && (p.dtype != DType::F32 || p.tf32),
        Dense => plain && real && p.finite,
        Vendor => plain && real && p.index_type == p.offset_type && !p.deterministic,
        other => panic!("{other} is in no catalog"),
    }
}

/// What `entry` refuses is exactly what its page says; a refusal names the algorithm, the reason, and
/// another algorithm of `catalog` that does take the product.
fn check(catalog: &[Entry], operation: Operation) {
    let (mut taken, mut refused) = (0, 0);
    for problem in problems(operation) {
        for entry in catalog {
            let name = entry.algorithm.name();
            match (entry.supports)(&problem) {
                Ok(()) => {
                    assert!(takes(entry.algorithm, &problem), "{name} takes {problem}");
                    taken += 1;
                }
                Err(Error::Unsupported { backend, reason, nearest, .. }) => {
                    assert!(!takes(entry.algorithm, &problem), "{name} refuses {problem}");
                    assert!(backend.contains(name) && !reason.is_empty(), "{backend}: {reason}");
                    let works = |e: &&Entry| {
                        nearest.contains(e.algorithm.name()) && (e.supports)(&problem).is_ok()
                    };
                    assert!(catalog.iter().any(|e| works(&e)), "{name}, {problem}: {nearest}");
                    refused += 1;
                }
                Err(other) => panic!("{name}, {problem}: {other}"),
            }
        }
    }
    assert!(taken > 1000 && refused > 1000, "{taken} taken, {refused} refused");
}

#[test]
fn of_products_with_a_dense_matrix() {
    check(spmm::catalog(), Operation::Spmm);
}

#[test]
fn of_products_with_a_vector() {
    check(spmv::catalog(), Operation::Spmv);
}

#[test]
fn other_products_are_sent_where_they_belong() {
    let sent = |result: Result<()>, to: &str| {
        let text = result.expect_err("another product").to_string();
        assert!(text.contains(to), "{text}");
    };
    let of = |operation| problems(operation).swap_remove(0);
    for entry in spmm::catalog() {
        sent((entry.supports)(&of(Operation::Spmv)), "nearest that works: Problem::spmm");
    }
    for entry in spmv::catalog() {
        sent((entry.supports)(&of(Operation::Spmm)), "nearest that works: Problem::spmv");
    }
}
