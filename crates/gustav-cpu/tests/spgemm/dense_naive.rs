//! `dense-naive` on the battery, as published: f32 and f64, u32, plus-times, finite operands.
//! It stores no zeros, so its entries are looked up in the pattern of the product.

use gustav_core::Semiring::PlusTimes;
use gustav_core::{Csr, Error};
use gustav_cpu::spgemm::SpgemmKernels;
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spgemm_over};

use crate::support::{options, product};

fn passes<T: SpgemmKernels>() {
    let dense = options(Algorithm::DenseNaive, 1, None);
    let reference = options(Algorithm::Gustavson, 1, None);
    let settings = Settings { nonfinite: false, ..Settings::default() };
    check_spgemm_over::<T, u32, u32>(PlusTimes, &settings, |case| {
        let (_, c) = product(PlusTimes, case.a, case.b, true, &dense)?;
        let (_, mut full) = product(PlusTimes, case.a, case.b, true, &reference)?;
        let mut found = 0;
        let pattern = full.pattern().clone();
        for row in 0..c.nrows() {
            let (columns, entries) = c.view().row(row);
            for at in pattern.view().row_range(row) {
                let entry = columns.binary_search(&pattern.indices()[at]).ok();
                found += usize::from(entry.is_some());
                full.values_mut()[at] = entry.map_or(T::zero(), |k| entries[k]);
            }
        }
        assert_eq!(found, c.nnz(), "{}: entries that no term produces", case.name);
        Ok(full)
    });
}

#[test]
fn battery() {
    passes::<f32>();
    passes::<f64>();
}

#[test]
fn matrices_past_the_memory_cap_are_refused() {
    let options = options(Algorithm::DenseNaive, 1, None);
    let a = Csr::<f64>::empty(20_000, 20_000).unwrap();
    let refused = product(PlusTimes, a.view(), a.view(), true, &options).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
}
