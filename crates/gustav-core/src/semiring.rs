//! Semirings: the two operations of a product, and how α and β scale it.

use std::fmt::{Debug, Display};

use crate::scalar::Arith;

/// A semiring: the operations ⊕ and ⊗ that a product is made of. The set is closed.
///
/// A product is `C = scale(α, A·B) ⊕ scale(β, C)`. β equal to [`Semiring::zero`] means that C is
/// not read.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Semiring {
    /// ⊕ is +, ⊗ is ×: the ordinary product.
    #[default]
    PlusTimes,
    /// ⊕ is min, ⊗ is +: shortest paths. Its zero is infinity (the largest integer).
    MinPlus,
    /// ⊕ is max, ⊗ is ×: most reliable paths. Its zero is minus infinity (the smallest integer).
    MaxTimes,
    /// ⊕ is or, ⊗ is and: reachability. Any value other than zero is true, results are 1 or 0.
    OrAnd,
    /// ⊕ is +, ⊗ takes A's value: sums of A's values over the entries of B.
    PlusFirst,
    /// ⊕ is +, ⊗ takes B's value: sums of B's values over the entries of A, whose values are
    /// ignored.
    PlusSecond,
}

impl Semiring {
    /// Every semiring.
    pub const ALL: [Semiring; 6] = [
        Semiring::PlusTimes,
        Semiring::MinPlus,
        Semiring::MaxTimes,
        Semiring::OrAnd,
        Semiring::PlusFirst,
        Semiring::PlusSecond,
    ];

    /// The name used on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Semiring::PlusTimes => "plus-times",
            Semiring::MinPlus => "min-plus",
            Semiring::MaxTimes => "max-times",
            Semiring::OrAnd => "or-and",
            Semiring::PlusFirst => "plus-first",
            Semiring::PlusSecond => "plus-second",
        }
    }

    /// The value of an empty sum, and the β that leaves C unread.
    pub fn zero<A: Arith>(self) -> A {
        match self {
            Semiring::MinPlus => <MinPlus as StaticSemiring<A>>::zero(),
            Semiring::MaxTimes => <MaxTimes as StaticSemiring<A>>::zero(),
            _ => <PlusTimes as StaticSemiring<A>>::zero(),
        }
    }

    /// The neutral α.
    pub fn one<A: Arith>(self) -> A {
        match self {
            Semiring::MinPlus => <MinPlus as StaticSemiring<A>>::one(),
            _ => <PlusTimes as StaticSemiring<A>>::one(),
        }
    }
}

impl Display for Semiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    /// Sealed: kernels are chosen by [`super::StaticSemiring::KIND`], so it must be correct.
    pub trait Sealed {}
    impl Sealed for super::PlusTimes {}
    impl Sealed for super::MinPlus {}
    impl Sealed for super::MaxTimes {}
    impl Sealed for super::OrAnd {}
    impl Sealed for super::PlusFirst {}
    impl Sealed for super::PlusSecond {}

    pub trait Ops {}
    impl<S: Sealed> Ops for S {}
    impl Ops for super::Semiring {}
}

/// A semiring over sums of type `A` that is known when a kernel is compiled. The defaults are those
/// of the ordinary product.
#[doc(hidden)]
pub trait StaticSemiring<A: Arith>:
    sealed::Sealed + Copy + Default + Debug + Send + Sync + 'static
{
    /// The semiring's name at run time.
    const KIND: Semiring;

    /// Identity of [`StaticSemiring::add`]: the value of an empty sum, and the β that leaves C
    /// unread.
    #[inline(always)]
    fn zero() -> A {
        <A as crate::Scalar>::zero()
    }
    /// Identity of [`StaticSemiring::scale`]: the neutral α.
    #[inline(always)]
    fn one() -> A {
        <A as crate::Scalar>::one()
    }
    /// ⊕.
    #[inline(always)]
    fn add(a: A, b: A) -> A {
        a.plus(b)
    }
    /// ⊗ of an entry of A and an entry of B.
    fn mul(a: A, b: A) -> A;
    /// `acc ⊕ (a ⊗ b)`.
    #[inline(always)]
    fn mul_add(a: A, b: A, acc: A) -> A {
        Self::add(acc, Self::mul(a, b))
    }
    /// Applies α or β: by multiplication, in min-plus by addition.
    #[inline(always)]
    fn scale(factor: A, sum: A) -> A {
        factor.times(sum)
    }
}

/// The ordinary product: ⊕ is +, ⊗ is ×.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PlusTimes;

impl<A: Arith> StaticSemiring<A> for PlusTimes {
    const KIND: Semiring = Semiring::PlusTimes;
    #[inline(always)]
    fn mul(a: A, b: A) -> A {
        a.times(b)
    }
    #[inline(always)]
    fn mul_add(a: A, b: A, acc: A) -> A {
        a.times_plus(b, acc)
    }
}

/// ⊕ is min, ⊗ is +: shortest paths. Zero is infinity (the largest integer).
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MinPlus;

impl<A: Arith> StaticSemiring<A> for MinPlus {
    const KIND: Semiring = Semiring::MinPlus;
    #[inline(always)]
    fn zero() -> A {
        A::INFINITY
    }
    #[inline(always)]
    fn one() -> A {
        <A as crate::Scalar>::zero()
    }
    #[inline(always)]
    fn add(a: A, b: A) -> A {
        a.minimum(b)
    }
    #[inline(always)]
    fn mul(a: A, b: A) -> A {
        a.plus_saturating(b)
    }
    #[inline(always)]
    fn scale(factor: A, sum: A) -> A {
        factor.plus_saturating(sum)
    }
}

/// ⊕ is max, ⊗ is ×. Zero is minus infinity (the smallest integer).
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxTimes;

impl<A: Arith> StaticSemiring<A> for MaxTimes {
    const KIND: Semiring = Semiring::MaxTimes;
    #[inline(always)]
    fn zero() -> A {
        A::NEG_INFINITY
    }
    #[inline(always)]
    fn add(a: A, b: A) -> A {
        a.maximum(b)
    }
    #[inline(always)]
    fn mul(a: A, b: A) -> A {
        a.times(b)
    }
    #[inline(always)]
    fn scale(factor: A, sum: A) -> A {
        // An empty maximum stays empty, also with a negative factor.
        if sum == A::NEG_INFINITY { sum } else { factor.times(sum) }
    }
}

/// ⊕ is or, ⊗ is and; any value other than zero is true, results are 1 or 0.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct OrAnd;

#[inline(always)]
fn truth<A: Arith>(t: bool) -> A {
    if t { <A as crate::Scalar>::one() } else { <A as crate::Scalar>::zero() }
}

impl<A: Arith> StaticSemiring<A> for OrAnd {
    const KIND: Semiring = Semiring::OrAnd;
    #[inline(always)]
    fn add(a: A, b: A) -> A {
        truth(!a.is_zero() | !b.is_zero())
    }
    #[inline(always)]
    fn mul(a: A, b: A) -> A {
        truth(!a.is_zero() & !b.is_zero())
    }
    #[inline(always)]
    fn scale(factor: A, sum: A) -> A {
        <Self as StaticSemiring<A>>::mul(factor, sum)
    }
}

/// ⊕ is +, ⊗ takes A's value: sums of A over the entries of B.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PlusFirst;

impl<A: Arith> StaticSemiring<A> for PlusFirst {
    const KIND: Semiring = Semiring::PlusFirst;
    #[inline(always)]
    fn mul(a: A, _b: A) -> A {
        a
    }
}

/// ⊕ is +, ⊗ takes B's value: A counts as a pattern, its values are ignored.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PlusSecond;

impl<A: Arith> StaticSemiring<A> for PlusSecond {
    const KIND: Semiring = Semiring::PlusSecond;
    #[inline(always)]
    fn mul(_a: A, b: A) -> A {
        b
    }
}

/// The operations of a semiring that is known at compile time (a type that implements
/// [`StaticSemiring`]) or at run time ([`Semiring`]).
///
/// Backends compile their kernels for plus-times, the most common one, and once more for
/// [`Semiring`], which covers all others.
#[doc(hidden)]
pub trait Ops<A: Arith>: sealed::Ops + Copy + Debug + Send + Sync + 'static {
    /// Whether this type is always plus-times.
    const PLUS_TIMES: bool;

    /// The operations of the semiring `kind`; types of one semiring ignore it.
    fn of(kind: Semiring) -> Self;
    /// The value of an empty sum.
    fn zero(self) -> A;
    /// The neutral factor.
    fn one(self) -> A;
    /// `a ⊕ b`.
    fn add(self, a: A, b: A) -> A;
    /// `a ⊗ b`.
    fn mul(self, a: A, b: A) -> A;
    /// `acc ⊕ (a ⊗ b)`.
    fn mul_add(self, a: A, b: A, acc: A) -> A;
    /// Applies α or β to a sum.
    fn scale(self, factor: A, sum: A) -> A;
}

/// Code that is compiled for every semiring; the one that runs is chosen at run time.
#[doc(hidden)]
pub trait Visit<A: Arith> {
    /// The result.
    type Output;
    /// Runs with the operations `s`.
    fn visit<S: Ops<A>>(self, s: S) -> Self::Output;
}

/// Runs `$body` with `$s` as the type of the semiring that `$kind` names.
macro_rules! specialized {
    ($kind:expr, |$s:ident| $body:expr) => {
        match $kind {
            Semiring::PlusTimes => {
                let $s = PlusTimes;
                $body
            }
            Semiring::MinPlus => {
                let $s = MinPlus;
                $body
            }
            Semiring::MaxTimes => {
                let $s = MaxTimes;
                $body
            }
            Semiring::OrAnd => {
                let $s = OrAnd;
                $body
            }
            Semiring::PlusFirst => {
                let $s = PlusFirst;
                $body
            }
            Semiring::PlusSecond => {
                let $s = PlusSecond;
                $body
            }
        }
    };
}

impl Semiring {
    /// Runs `visitor` compiled for this semiring: for inner loops in which a branch per operation
    /// would cost more than six copies of the loop.
    #[doc(hidden)]
    #[inline(always)]
    pub fn specialize<A: Arith, V: Visit<A>>(self, visitor: V) -> V::Output {
        specialized!(self, |s| visitor.visit(s))
    }
}

impl<A: Arith, S: StaticSemiring<A>> Ops<A> for S {
    const PLUS_TIMES: bool = matches!(S::KIND, Semiring::PlusTimes);

    #[inline(always)]
    fn of(kind: Semiring) -> Self {
        debug_assert_eq!(kind, S::KIND);
        S::default()
    }
    #[inline(always)]
    fn zero(self) -> A {
        <S as StaticSemiring<A>>::zero()
    }
    #[inline(always)]
    fn one(self) -> A {
        <S as StaticSemiring<A>>::one()
    }
    #[inline(always)]
    fn add(self, a: A, b: A) -> A {
        <S as StaticSemiring<A>>::add(a, b)
    }
    #[inline(always)]
    fn mul(self, a: A, b: A) -> A {
        <S as StaticSemiring<A>>::mul(a, b)
    }
    #[inline(always)]
    fn mul_add(self, a: A, b: A, acc: A) -> A {
        <S as StaticSemiring<A>>::mul_add(a, b, acc)
    }
    #[inline(always)]
    fn scale(self, factor: A, sum: A) -> A {
        <S as StaticSemiring<A>>::scale(factor, sum)
    }
}

impl<A: Arith> Ops<A> for Semiring {
    const PLUS_TIMES: bool = false;

    #[inline(always)]
    fn of(kind: Semiring) -> Self {
        kind
    }
    #[inline(always)]
    fn zero(self) -> A {
        Semiring::zero(self)
    }
    #[inline(always)]
    fn one(self) -> A {
        Semiring::one(self)
    }
    #[inline(always)]
    fn add(self, a: A, b: A) -> A {
        specialized!(self, |s| Ops::add(s, a, b))
    }
    #[inline(always)]
    fn mul(self, a: A, b: A) -> A {
        specialized!(self, |s| Ops::mul(s, a, b))
    }
    #[inline(always)]
    fn mul_add(self, a: A, b: A, acc: A) -> A {
        specialized!(self, |s| Ops::mul_add(s, a, b, acc))
    }
    #[inline(always)]
    fn scale(self, factor: A, sum: A) -> A {
        specialized!(self, |s| Ops::scale(s, factor, sum))
    }
}
