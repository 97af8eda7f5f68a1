//! The battery run on plain reference kernels: it passes what is right, in time, and catches
//! kernels with a typical mistake.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gustav_core::{
    Arith, Csr, DenseView, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond,
    PlusTimes, Result, Scalar, StaticSemiring, bf16, f16,
};
use gustav_testkit::battery::matrices::matrices;
use gustav_testkit::battery::{
    Settings, SpgemmCase, SpmmCase, SpmvCase, check_spgemm, check_spmm, check_spmv,
};

/// The mistakes that kernels make.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    ReadsC,
    IgnoresBeta,
    IgnoresAlpha,
    IgnoresValues,
    SkipsLastTerm,
    WritesPadding,
    IgnoresTranspose,
    Fails,
    Panics,
}

fn spmm<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    mut case: SpmmCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    match mistake {
        Mistake::Fails => {
            return Err(Error::NoDevice { reason: "none at all".into() });
        }
        Mistake::Panics => panic!("as asked"),
        Mistake::WritesPadding => {
            if let Some(last) = case.c.as_mut_slice().expect("a slice").last_mut() {
                *last = T::one();
            }
        }
        _ => {}
    }
    let transposed = case.a.transpose()?;
    let swap = case.transpose_a && mistake != Mistake::IgnoresTranspose;
    let a = if swap { transposed.view() } else { case.a };
    for i in 0..case.c.nrows().min(a.nrows()) {
        let (cols, values) = a.row(i);
        let terms = cols.len() - usize::from(mistake == Mistake::SkipsLastTerm && !cols.is_empty());
        for j in 0..case.c.ncols() {
            let mut sum = S::zero();
            for (k, v) in cols.iter().zip(values).take(terms) {
                let v = if mistake == Mistake::IgnoresValues { T::one() } else { *v };
                let row = k.to_usize().min(case.b.nrows() - 1);
                sum = S::mul_add(v.to_accum(), case.b.get(row, j).to_accum(), sum);
            }
            let mut c =
                if mistake == Mistake::IgnoresAlpha { sum } else { S::scale(case.alpha, sum) };
            let reads = case.beta != S::zero() && mistake != Mistake::IgnoresBeta;
            if reads || mistake == Mistake::ReadsC {
                c = S::add(c, S::scale(case.beta, case.c.get(i, j).to_accum()));
            }
            case.c.set(i, j, T::from_accum(c));
        }
    }
    Ok(())
}

fn spmv<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    case: SpmvCase<'_, T, I, O>,
) -> Result<()> {
    let SpmvCase { name, a, transpose_a, x, alpha, beta, y } = case;
    let b = DenseView::row_major(x.len(), 1, x)?;
    let c = gustav_core::DenseViewMut::new(y.len(), 1, b.layout(), 1, y)?;
    spmm::<T, I, O, S>(SpmmCase { name, a, transpose_a, b, alpha, beta, c }, Mistake::None)
}

fn spgemm<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    case: SpgemmCase<'_, T, I, O>,
) -> Result<Csr<T, I, O>> {
    let (mut offsets, mut indices, mut values) = (vec![O::default()], Vec::new(), Vec::new());
    for i in 0..case.a.nrows() {
        let mut sums = std::collections::BTreeMap::new();
        let (inner, a) = case.a.row(i);
        for (k, a) in inner.iter().zip(a) {
            let (cols, b) = case.b.row(k.to_usize());
            for (c, b) in cols.iter().zip(b) {
                let sum = sums.entry(*c).or_insert(S::zero());
                *sum = S::mul_add(a.to_accum(), b.to_accum(), *sum);
            }
        }
        let mut row: Vec<_> = sums.into_iter().collect();
        if !case.sorted {
            row.reverse();
        }
        for (c, sum) in row {
            indices.push(c);
            values.push(T::from_accum(sum));
        }
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(case.a.nrows(), case.b.ncols(), offsets, indices, values)
}

fn passes<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    let settings = Settings::default();
    check_spmm::<T, I, O, S>(&settings, |case| spmm::<T, I, O, S>(case, Mistake::None));
    check_spmv::<T, I, O, S>(&settings, spmv::<T, I, O, S>);
    check_spgemm::<T, I, O, S>(&settings, spgemm::<T, I, O, S>);
}

macro_rules! passes {
    ($($name:ident: $t:ty;)*) => {$(
        #[test]
        fn $name() {
            passes::<$t, u32, u32, PlusTimes>();
            passes::<$t, u32, u64, MinPlus>();
            passes::<$t, u64, u32, MaxTimes>();
            passes::<$t, u64, u64, OrAnd>();
            passes::<$t, u32, u32, PlusFirst>();
            passes::<$t, u32, u32, PlusSecond>();
        }
    )*};
}

passes! {
    a_plain_kernel_passes_f16: f16;
    a_plain_kernel_passes_bf16: bf16;
    a_plain_kernel_passes_f32: f32;
    a_plain_kernel_passes_f64: f64;
    a_plain_kernel_passes_i32: i32;
    a_plain_kernel_passes_i64: i64;
}

fn is_caught<T: Scalar, S: StaticSemiring<T::Accum>>(mistake: Mistake)
where
    T::Accum: Arith,
{
    let settings = Settings { columns: vec![1, 3, 8], ..Settings::default() };
    let check =
        || check_spmm::<T, u32, u32, S>(&settings, |case| spmm::<T, _, _, S>(case, mistake));
    let payload = catch_unwind(AssertUnwindSafe(check)).expect_err("the mistake goes unnoticed");
    let message = payload.downcast_ref::<String>().expect("a message");
    assert!(message.contains("cases failed") && message.contains("n = "), "{message}");
}

#[test]
fn mistakes_are_caught() {
    for mistake in [
        Mistake::ReadsC,
        Mistake::IgnoresBeta,
        Mistake::IgnoresAlpha,
        Mistake::IgnoresValues,
        Mistake::SkipsLastTerm,
        Mistake::WritesPadding,
        Mistake::IgnoresTranspose,
        Mistake::Fails,
        Mistake::Panics,
    ] {
        is_caught::<f32, PlusTimes>(mistake);
        is_caught::<f64, MaxTimes>(mistake);
        is_caught::<f16, PlusTimes>(mistake);
        is_caught::<f32, MinPlus>(mistake);
    }
    // Integers have no NaN; a sentinel must do to notice that C is read.
    for mistake in [Mistake::IgnoresValues, Mistake::SkipsLastTerm, Mistake::IgnoresBeta] {
        is_caught::<i32, PlusTimes>(mistake);
        is_caught::<i64, MinPlus>(mistake);
    }
}

/// Values of the battery's matrix of that name.
fn values_of<T: Scalar>(name: &str) -> Vec<f64> {
    let list = matrices::<T, u32, u32>();
    let found = list.iter().find(|m| m.name == name).expect(name);
    found.csr.values().iter().map(|v| v.to_f64()).collect()
}

fn largest<T: Scalar>(name: &str) -> f64 {
    values_of::<T>(name).iter().fold(0.0, |most: f64, v| most.max(v.abs()))
}

#[test]
fn matrices_hold_what_their_names_say() {
    fn check<T: Scalar>() {
        let list = matrices::<T, u32, u32>();
        let names: HashSet<_> = list.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), list.len(), "names repeat");
        assert!(values_of::<T>("explicit zeros").contains(&0.0));
        let random = values_of::<T>("random");
        assert!(random.iter().any(|v| *v < 0.0) && random.iter().any(|v| *v > 0.0));
        assert!(list.iter().any(|m| !m.traits.canonical) && list.iter().any(|m| !m.traits.finite));
        assert!(largest::<T>("huge magnitudes") > 500.0 * largest::<T>("random"));
    }
    check::<f16>();
    check::<bf16>();
    check::<f32>();
    check::<f64>();
    check::<i32>();
    check::<i64>();
}

#[test]
fn matrices_of_floats_hold_what_their_names_say() {
    fn check<T: Scalar>() {
        let tiny = values_of::<T>("tiny magnitudes");
        assert!(tiny.iter().all(|v| *v != 0.0), "tiny values have become zeros");
        assert!(largest::<T>("tiny magnitudes") < 1e-6);
        let special = values_of::<T>("NaN and infinity");
        assert!(special.iter().any(|v| v.is_nan()) && special.iter().any(|v| v.is_infinite()));
        assert!(values_of::<T>("overflow").iter().all(|v| v.is_finite()));
        let list = matrices::<T, u32, u32>();
        let finite = list.iter().filter(|m| m.traits.finite);
        assert!(finite.flat_map(|m| m.csr.values()).all(|v| v.to_f64().is_finite()));
    }
    check::<f16>();
    check::<bf16>();
    check::<f32>();
    check::<f64>();
}
