//! α and β as C gives them.

use gustav::{Arith, DType, Error, Result, Scalar, Scale};

use crate::pointer::pointee;

/// α and β where a call says them.
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    alpha: Option<f64>,
    beta: Option<f64>,
}

// Integers up to here are exact as `double`.
const EXACT: f64 = (1_u64 << 53) as f64;

impl Factors {
    /// The factors of a product of `dtype`, none where NULL is given.
    ///
    /// # Safety
    /// Each is NULL or points to a number.
    ///
    /// # Errors
    /// [`Error::Argument`] for a factor that the integers of `dtype` lack.
    pub(crate) unsafe fn new(alpha: *const f64, beta: *const f64, dtype: DType) -> Result<Self> {
        let given = |name, at: *const f64| match at.is_null() {
            true => Ok(None),
            // SAFETY: promised by the caller.
            false => unsafe { pointee(name, at) }.copied().map(Some),
        };
        let (alpha, beta) = (given("alpha", alpha)?, given("beta", beta)?);
        for (name, factor) in [("alpha", alpha), ("beta", beta)] {
            let limit = if dtype == DType::I32 { f64::from(i32::MAX) } else { EXACT };
            let fits = |factor: f64| factor.fract() == 0.0 && factor.abs() <= limit;
            if let Some(factor) = factor.filter(|f| dtype.is_integer() && !fits(*f)) {
                return Err(Error::Argument {
                    name,
                    found: factor.to_string(),
                    expected: format!("an integer of {dtype} of at most {limit}"),
                });
            }
        }
        Ok(Factors { alpha, beta })
    }

    /// The factors in the type of the sums.
    pub(crate) fn scale<A: Arith>(self) -> Scale<A> {
        let of = <A as Scalar>::from_f64;
        Scale { alpha: self.alpha.map(of), beta: self.beta.map(of) }
    }
}
