//! What plans promise.

use gustav_core::{HeadValues, bf16};
use gustav_cpu::CpuScalar;
use gustav_cpu::arch::Isa;
use gustav_testkit::oracle;

use crate::support::{Example, Results, options};

fn threads_do_not_change_a_bit_of<T: CpuScalar>() {
    let example = Example::<T>::new();
    for order in [HeadValues::Shared, HeadValues::NonzeroMajor] {
        let results =
            [1, 2, 3, 7].map(|threads| example.run(&options(Isa::detect(), threads), order));
        assert!(results[0].o.iter().any(|v| !v.is_zero()));
        assert!(results.iter().all(|r| *r == results[0]), "{order:?}");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    threads_do_not_change_a_bit_of::<f32>();
    threads_do_not_change_a_bit_of::<bf16>();
}

/// Rows and columns that are cut: their parts are merged.
#[test]
fn long_rows_and_columns_are_right() {
    fn check<T: CpuScalar>() {
        let example = Example::<T>::new();
        let Example { a, heads, columns, value_columns, q, k, v, of_o, bias, scores } = &example;
        let results = example.run(&options(Isa::detect(), 3), HeadValues::Shared);
        let dense = |values: &Vec<T>, like: &gustav_core::Dense<T>| {
            let (m, n) = (like.nrows(), like.ncols());
            gustav_core::Dense::from_row_major(m, n, values.clone()).expect("a matrix")
        };
        let product = oracle::Attention {
            pattern: a.pattern().view(),
            heads: *heads,
            columns: *columns,
            value_columns: *value_columns,
            q: q.view(),
            k: k.view(),
            v: v.view(),
            scores: *scores,
            bias: Some((bias, HeadValues::HeadMajor)),
        };
        let Results { o, lse, of_q, of_k, of_v, of_bias } = &results;
        let o = dense(o, of_o);
        let verdict = product.verify(o.view(), Some(lse)).expect("shapes that fit");
        assert!(verdict.ok, "{verdict}");
        let (of_q, of_k, of_v) = (dense(of_q, q), dense(of_k, k), dense(of_v, v));
        let (o, of_o) = (o.view(), of_o.view());
        let verdict = oracle::AttentionGradients { product, o, lse, of_o }
            .verify(&oracle::FoundGradients {
                of_q: of_q.view(),
                of_k: of_k.view(),
                of_v: of_v.view(),
                of_bias: Some((of_bias, HeadValues::Shared)),
            })
            .expect("shapes that fit");
        assert!(verdict.ok, "{verdict}");
    }
    check::<f32>();
    check::<f64>();
    check::<gustav_core::f16>();
}

#[test]
fn a_plan_executes_again_and_says_what_it_is() {
    let example = Example::<f32>::new();
    let options = options(Isa::detect(), 2);
    let once = example.run(&options, HeadValues::HeadMajor);
    let (mut forward, backward) = example.plans(&options);
    let mut o = gustav_core::Dense::from_row_major(
        example.of_o.nrows(),
        example.of_o.ncols(),
        vec![f32::NAN; once.o.len()],
    )
    .expect("a matrix");
    for _ in 0..2 {
        let call = gustav_cpu::AttentionCall {
            bias: Some(((&example.bias).into(), HeadValues::HeadMajor)),
            ..Default::default()
        };
        forward.execute(&example.q, &example.k, &example.v, &mut o, call).expect("a product");
        assert_eq!(o.data(), once.o);
    }
    assert_eq!(forward.choice().algorithm.name(), "segmented");
    assert_eq!(forward.choice().config.threads, 2);
    assert!(forward.workspace_bytes() > 0);
    // The transposed pattern, and a number for every head and row.
    let least = 4 * (2 * example.a.nnz() + example.heads * example.a.nrows());
    assert!(backward.workspace_bytes() > least);
    assert_eq!(backward.pattern_id(), example.a.pattern().id());
    assert_eq!(backward.choice().algorithm.name(), "segmented");
}
