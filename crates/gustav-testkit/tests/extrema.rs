//! The oracle and the battery of max and min on a plain reference kernel: they pass what is right,
//! and catch kernels with a typical mistake.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gustav_core::{Arith, Extremum, Index, Result, Scalar, WinnersMut, bf16, f16};
use gustav_testkit::battery::{Settings, SpmmExtremumCase, check_spmm_extremum};

/// The mistakes that kernels make.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// Of equal products the last wins.
    LastOfEquals,
    /// NaN loses.
    NanLoses,
    /// A minimum for a maximum.
    Other,
    /// The factor before the reduction.
    AlphaFirst,
    /// Empty rows give 0, whatever was asked for.
    IgnoresEmpty,
    /// The winner of an empty row is 0.
    ZeroForNone,
    /// Winners are counted in the order of op(A).
    InOrderOfTheTranspose,
    /// The winner of a row that begins at 0.
    WithinTheRow,
    SkipsLastTerm,
    WritesPadding,
}

fn is_nan<A: Arith>(value: A) -> bool {
    value.partial_cmp(&value).is_none()
}

fn run<T: Scalar, I: Index, O: Index>(
    extremum: Extremum,
    mut case: SpmmExtremumCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    if mistake == Mistake::WritesPadding
        && let Some(last) = case.c.as_mut_slice().expect("a slice").last_mut()
    {
        *last = T::one();
    }
    let transposed = case.a.pattern().transpose()?;
    let (stored, turned) = (case.a.pattern(), transposed.pattern().view());
    let pattern = if case.transpose_a { turned } else { stored };
    let position = |at: usize| match case.transpose_a {
        true => transposed.permutation()[at].to_usize(),
        false => at,
    };
    let alpha = case.alpha.unwrap_or(T::Accum::one());
    let empty = match mistake {
        Mistake::IgnoresEmpty => T::Accum::zero(),
        _ => case.empty.unwrap_or(T::Accum::zero()),
    };
    let is_max = (extremum == Extremum::Max) != (mistake == Mistake::Other);
    let n = case.c.ncols();
    for (i, j) in (0..case.c.nrows()).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let range = pattern.row_range(i);
        let product = |at: usize| {
            let (a, k) = (case.a.values()[position(at)], pattern.indices()[at].to_usize());
            let product = a.to_accum().times(case.b.get(k, j).to_accum());
            if mistake == Mistake::AlphaFirst { alpha.times(product) } else { product }
        };
        let mut best: Option<usize> = None;
        let skipped = usize::from(mistake == Mistake::SkipsLastTerm && !range.is_empty());
        for at in range.start..range.end - skipped {
            let better = best.is_none_or(|best| {
                let (new, old) = (product(at), product(best));
                if is_nan(new) || is_nan(old) {
                    return if mistake == Mistake::NanLoses { is_nan(old) } else { !is_nan(old) };
                }
                let strictly = if is_max { new > old } else { new < old };
                strictly || (new == old && mistake == Mistake::LastOfEquals)
            });
            best = if better { Some(at) } else { best };
        }
        let value = match best {
            Some(at) if mistake == Mistake::AlphaFirst => product(at),
            Some(at) => alpha.times(product(at)),
            None => empty,
        };
        case.c.set(i, j, T::from_accum(value));
        let winner = match (best, mistake) {
            (Some(at), Mistake::InOrderOfTheTranspose) => at as u64,
            (Some(at), Mistake::WithinTheRow) => (at - range.start) as u64,
            (Some(at), _) => position(at) as u64,
            (None, Mistake::ZeroForNone) => 0,
            (None, _) => u64::MAX,
        };
        match &mut case.winners {
            None => {}
            Some(WinnersMut::U32(to)) => to[i * n + j] = winner as u32,
            Some(WinnersMut::U64(to)) => to[i * n + j] = winner,
        }
    }
    Ok(())
}

fn settings() -> Settings {
    Settings { columns: vec![1, 3, 33], ..Settings::default() }
}

fn check<T: Scalar>(extremum: Extremum, mistake: Mistake) {
    check_spmm_extremum::<T, u32, u64>(extremum, &settings(), |case| run(extremum, case, mistake));
}

#[test]
fn a_right_kernel_passes() {
    for extremum in Extremum::ALL {
        check::<f32>(extremum, Mistake::None);
        check::<f64>(extremum, Mistake::None);
        check::<f16>(extremum, Mistake::None);
        check::<bf16>(extremum, Mistake::None);
        check::<i32>(extremum, Mistake::None);
        check::<i64>(extremum, Mistake::None);
    }
}

#[test]
fn mistakes_are_caught() {
    let caught = |check: &dyn Fn()| catch_unwind(AssertUnwindSafe(check)).is_err();
    for mistake in [
        Mistake::LastOfEquals,
        Mistake::NanLoses,
        Mistake::Other,
        Mistake::AlphaFirst,
        Mistake::IgnoresEmpty,
        Mistake::ZeroForNone,
        Mistake::InOrderOfTheTranspose,
        Mistake::WithinTheRow,
        Mistake::SkipsLastTerm,
        Mistake::WritesPadding,
    ] {
        for extremum in Extremum::ALL {
            assert!(caught(&|| check::<f32>(extremum, mistake)), "{mistake:?} of {extremum}");
            // Integers have no NaN.
            let integers = caught(&|| check::<i32>(extremum, mistake));
            assert_eq!(integers, mistake != Mistake::NanLoses, "{mistake:?} of {extremum}");
        }
    }
}
