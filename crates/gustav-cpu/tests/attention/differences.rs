//! Gradients against finite differences of the oracle's product, in f64.

use gustav_core::{Csr, HeadValues};
use gustav_cpu::arch::Isa;
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::oracle;

use crate::support::{Example, options};

/// ⟨dO, O⟩, whose gradients are those of the product.
fn objective(example: &Example<f64>) -> f64 {
    let reference = oracle::Attention {
        pattern: example.a.pattern().view(),
        heads: example.heads,
        columns: example.columns,
        value_columns: example.value_columns,
        q: example.q.view(),
        k: example.k.view(),
        v: example.v.view(),
        scores: example.scores,
        bias: Some((&example.bias, HeadValues::HeadMajor)),
    };
    let o = reference.compute().expect("shapes that fit").o;
    let (m, e) = (example.a.nrows(), example.value_columns);
    let of_o = |at: usize| {
        let (head, row, column) = (at / (m * e), at / e % m, at % e);
        example.of_o.get(row, head * e + column)
    };
    o.iter().enumerate().map(|(at, o)| o * of_o(at)).sum()
}

/// Central differences of step h are off by h² f‴/6, and by a rounding of f over h.
fn check(a: Csr<f64>, negative_slope: Option<f64>) {
    const STEP: f64 = 1e-4;
    let mut example = Example::over(a, 2, 5, 3);
    example.scores.negative_slope = negative_slope;
    let gradients = example.run(&options(Isa::detect(), 2), HeadValues::HeadMajor);
    let operands: [(&[f64], fn(&mut Example<f64>) -> &mut [f64]); 4] = [
        (&gradients.of_q, |e| e.q.data_mut()),
        (&gradients.of_k, |e| e.k.data_mut()),
        (&gradients.of_v, |e| e.v.data_mut()),
        (&gradients.of_bias, |e| &mut e.bias),
    ];
    let largest = objective(&example).abs().max(1.0);
    for (which, (found, of)) in operands.into_iter().enumerate() {
        for at in (0..found.len()).step_by(3) {
            let mut moved = |by: f64| {
                let before = of(&mut example)[at];
                of(&mut example)[at] = before + by;
                let value = objective(&example);
                of(&mut example)[at] = before;
                value
            };
            let difference = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            // Third derivatives stay below 100: operands are below 1.5, and weights add up to 1.
            let bound = STEP * STEP * 100.0 / 6.0 + 1e3 * f64::EPSILON * largest / STEP;
            let error = (difference - found[at]).abs();
            assert!(error <= bound, "operand {which}, element {at}: {error:e} of {bound:e}");
        }
        assert!(found.iter().any(|g| g.abs() > 0.01), "operand {which} has no gradient");
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    // Columns of the second repeat.
    for slope in [None, Some(0.2)] {
        check(random_rows(20, 17, 3, |row| row % 6), slope);
        check(unsorted(9, 12, 4), slope);
    }
}
