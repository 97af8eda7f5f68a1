//! Names of engines in records.

/// The vendor libraries on CPUs that the targets of the project refer to.
pub const VENDORS: [&str; 2] = ["mkl", "graphblas"];

/// Algorithms of cuSPARSE; the last three are those of SpMVOp of version 12.9.
pub const CUSPARSE: [&str; 7] = [
    "cusparse-default",
    "cusparse-alg1",
    "cusparse-alg2",
    "cusparse-alg3",
    "cusparse-op",
    "cusparse-op-alg1",
    "cusparse-op-alg2",
];

/// cuSPARSE in whole programs: the fastest of its algorithms for every product, found by a trial; of SpMV those of
/// `cusparseSpMV`.
pub const CUSPARSE_BEST: &str = "cusparse";

/// cuBLAS: its product of dense matrices, with A converted to dense beforehand.
pub const CUBLAS: &str = "cublas";

/// The requests for which Gustav chooses the algorithm.
pub const CHOOSERS: [&str; 3] = ["auto", "once", "predictor"];

/// Three products in place of an attention: SDDMM, softmax, SpMM.
pub const UNFUSED: &str = "unfused";

/// `auto` without the mask of the others.
pub const WHOLE: &str = "whole";
