//! `pipeline`: dense operands converted by the host while the device multiplies.

use gustav_core::{Csr, Dense, Error, Layout, Result, Scalar};
use gustav_cuda::spgemm::pipeline::{Block, Config, Pipeline};
use gustav_cuda::spgemm::shared_row;
use gustav_cuda::{DeviceDense, Entries, PinnedBuffer};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::oracle;

use crate::device;

/// The rows of `block` of a dense matrix, in the plainest way.
fn convert<T: Scalar>(dense: &Dense<T>, block: Block<'_, T>) -> Result<usize> {
    let mut at = 0;
    block.offsets[0] = block.first;
    for (k, i) in block.rows.clone().enumerate() {
        for j in (0..dense.ncols()).filter(|j| !dense.get(i, *j).is_zero()) {
            block.indices[at] = j as u32;
            block.values[at] = dense.get(i, j);
            at += 1;
        }
        block.offsets[k + 1] = block.first + at as u32;
    }
    Ok(at)
}

fn configs() -> Vec<Config> {
    let usual = Config::default();
    let narrow = shared_row::Config { width: Some(32), ..shared_row::Config::default() };
    vec![
        usual,
        Config { block_rows: Some(1), ..usual },
        Config { block_rows: Some(7), kernel: Some(narrow), ..usual },
        Config { overlapped: false, ..usual },
    ]
}

fn products<T: Scalar>() {
    let device = device();
    for [m, k, n] in [[65, 65, 65], [1, 200, 3], [90, 7, 150], [3, 1, 1], [0, 4, 4], [4, 4, 0]] {
        let a = random_rows::<T, u32, u32>(m, k, 1, |row| row % 12);
        let b = random_rows::<T, u32, u32>(k, n, 2, |row| (row + 1) % 9);
        let dense = |m: &Csr<T>| m.view().to_dense(Layout::RowMajor).expect("a dense matrix");
        let (dense_a, dense_b) = (dense(&a), dense(&b));
        for config in configs() {
            let mut pipeline = Pipeline::<T>::new(&device, [m, k, n], config).expect("memory");
            let mut c = DeviceDense::zeros(&device, m, n, Layout::RowMajor).expect("C");
            let mut host = PinnedBuffer::zeroed(&device, m * n, "C").expect("C");
            for _ in 0..2 {
                let one = T::one().to_accum();
                pipeline
                    .run(
                        &mut |block| convert(&dense_b, block),
                        &mut |block| convert(&dense_a, block),
                        one,
                        &mut c,
                        Some(&mut host),
                    )
                    .expect("a product");
                let sparse = c.to_csr(Entries::Pattern, device.stream()).expect("CSR");
                let sparse = sparse.download().expect("CSR");
                let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(sparse.view());
                assert!(verdict.expect("shapes").ok, "{m} {k} {n} {config:?}");
                assert_eq!(host[..], *c.download().expect("C").data());
                let stages = pipeline.timeline();
                assert!(stages.iter().all(|s| s.start_ms <= s.end_ms));
                let blocks = m.div_ceil(config.block_rows.unwrap_or(m.max(1)));
                assert_eq!(stages.iter().filter(|s| s.name == "convert A").count(), blocks);
                assert_eq!(stages.iter().filter(|s| s.name == "multiply").count(), blocks);
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_of_dense_matrices() {
    products::<f32>();
    products::<f64>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_conversion_that_fails_leaves_the_pipeline_usable() {
    let device = device();
    let dense = Dense::from_fn(40, 40, Layout::RowMajor, |i, j| ((i * j) % 3) as f32).expect("A");
    let config = Config { block_rows: Some(8), ..Config::default() };
    let mut pipeline = Pipeline::<f32>::new(&device, [40; 3], config).expect("memory");
    let mut c = DeviceDense::zeros(&device, 40, 40, Layout::RowMajor).expect("C");
    let refuse = |_: Block<'_, f32>| Err(Error::Cancelled { what: "a test", done: 0, of: 1 });
    let mut plain = |block: Block<'_, f32>| convert(&dense, block);
    let failed = pipeline.run(&mut plain, &mut { refuse }, 1.0, &mut c, None);
    assert!(matches!(failed, Err(Error::Cancelled { .. })));
    let mut again = |block: Block<'_, f32>| convert(&dense, block);
    pipeline.run(&mut plain, &mut again, 1.0, &mut c, None).expect("a product");
    let a = Csr::<f32>::from_dense(dense.view()).expect("CSR");
    let sparse = c.to_csr(Entries::Pattern, device.stream()).expect("CSR").download().expect("CSR");
    assert!(oracle::Spgemm::new(a.view(), a.view()).verify(sparse.view()).expect("shapes").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_shapes_are_refused() {
    let device = device();
    let mut pipeline = Pipeline::<f32>::new(&device, [4, 5, 6], Config::default()).expect("memory");
    let mut c = DeviceDense::zeros(&device, 4, 5, Layout::RowMajor).expect("C");
    let mut none = |_: Block<'_, f32>| Ok(0);
    let refused = pipeline.run(&mut { none }, &mut none, 1.0, &mut c, None);
    assert!(matches!(refused, Err(Error::Shape { .. })));
    let config = Config { block_rows: Some(0), ..Config::default() };
    assert!(Pipeline::<f32>::new(&device, [4, 5, 6], config).is_err());
    assert!(Pipeline::<i32>::new(&device, [4, 5, 6], Config::default()).is_err());
}
