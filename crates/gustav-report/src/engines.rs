//! Engines as records name them.

/// The CPU libraries that the project measures itself against.
pub const VENDORS: [&str; 2] = ["mkl", "graphblas"];

/// Algorithms of cuSPARSE.
pub const CUSPARSE: [&str; 4] =
    ["cusparse-default", "cusparse-alg1", "cusparse-alg2", "cusparse-alg3"];

/// cuSPARSE in whole programs: the fastest of its algorithms for every product, found by a trial.
pub const CUSPARSE_BEST: &str = "cusparse";

/// cuBLAS: its product of dense matrices, over A with its zeros written out beforehand.
pub const CUBLAS: &str = "cublas";

/// What is asked of gustav where it chooses the algorithm itself.
pub const CHOOSERS: [&str; 3] = ["auto", "once", "predictor"];

/// `auto` without the mask of the others.
pub const WHOLE: &str = "whole";
