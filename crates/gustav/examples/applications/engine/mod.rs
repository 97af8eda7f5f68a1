//! Who multiplies for a program: gustav's plans, cuSPARSE, or plain loops. The programs are the
//! same for all.

mod cusparse;
mod loops;
mod plans;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gustav::{Error, Result};

use super::algebra::{Algebra, Shape};

pub use cusparse::Cusparse;
pub use loops::Loops;
pub use plans::Plans;

/// C = op(A)·B of the values of A.
pub type Spmm<'e, A> = Box<
    dyn FnMut(
            &<A as Algebra>::Vector,
            &<A as Algebra>::Matrix,
            &mut <A as Algebra>::Matrix,
        ) -> Result<()>
        + 'e,
>;
/// y = A·x of the values of A.
pub type Spmv<'e, A> = Box<
    dyn FnMut(
            &<A as Algebra>::Vector,
            &<A as Algebra>::Vector,
            &mut <A as Algebra>::Vector,
        ) -> Result<()>
        + 'e,
>;
/// The values of X·Yᵀ at the nonzeros.
pub type Sddmm<'e, A> = Box<
    dyn FnMut(
            &<A as Algebra>::Matrix,
            &<A as Algebra>::Matrix,
            &mut <A as Algebra>::Vector,
        ) -> Result<()>
        + 'e,
>;

/// A softmax over the rows of a pattern.
pub trait Softmax<A: Algebra> {
    /// The weights of scores.
    fn weights(&mut self, scores: &A::Vector, to: &mut A::Vector) -> Result<()>;
    /// The gradient with respect to the scores, given that with respect to the weights.
    fn gradient(
        &mut self,
        weights: &A::Vector,
        of_weights: &A::Vector,
        to: &mut A::Vector,
    ) -> Result<()>;
}

/// X and Y, whose inner products at the nonzeros are what scores are made of.
pub type Pair<'a, A> = (&'a <A as Algebra>::Matrix, &'a <A as Algebra>::Matrix);

/// softmax(leaky_relu(X·Yᵀ))·V at the nonzeros in one product, and its gradients in another.
pub trait Attention<A: Algebra> {
    fn sums(&mut self, pair: Pair<'_, A>, v: &A::Matrix, o: &mut A::Matrix) -> Result<()>;
    /// The gradients with respect to V, X and Y, given V, O and the gradient with respect to O.
    fn gradients(
        &mut self,
        pair: Pair<'_, A>,
        inputs: (&A::Matrix, &A::Matrix, &A::Matrix),
        of_v: &mut A::Matrix,
        of_pair: (&mut A::Matrix, &mut A::Matrix),
    ) -> Result<()>;
}

/// Makes products on patterns.
pub trait Engine<'e, A: Algebra> {
    fn spmm(&mut self, pattern: &A::Pattern, shape: Shape) -> Result<Spmm<'e, A>>;

    fn spmv(&mut self, pattern: &A::Pattern) -> Result<Spmv<'e, A>> {
        let _ = pattern;
        Err(self.lacks("products with vectors"))
    }

    fn sddmm(&mut self, pattern: &A::Pattern, depth: usize) -> Result<Sddmm<'e, A>> {
        let _ = (pattern, depth);
        Err(self.lacks("dense products at nonzeros"))
    }

    fn softmax(&mut self, pattern: &A::Pattern) -> Result<Box<dyn Softmax<A> + 'e>> {
        let _ = pattern;
        Err(self.lacks("a softmax over rows"))
    }

    /// Scores, softmax and weighted sums in one, of engines that have that and are asked for it.
    fn attention(
        &mut self,
        algebra: &A,
        pattern: &A::Pattern,
        columns: usize,
    ) -> Result<Option<Box<dyn Attention<A> + 'e>>> {
        let _ = (algebra, pattern, columns);
        Ok(None)
    }

    /// The algorithms that were chosen for the products so far.
    fn chosen(&self) -> Vec<String> {
        Vec::new()
    }

    fn name(&self) -> &str;

    /// The refusal of what the engine has not.
    fn lacks(&self, what: &str) -> Error {
        Error::Unsupported {
            problem: what.into(),
            backend: self.name().into(),
            reason: "it has none".into(),
            nearest: "another engine".into(),
        }
    }
}

/// Counts products, and where asked to, the time they take.
pub trait Meter {
    /// Whether products are timed from here on.
    fn time(&self, on: bool);
    /// The number of products since the last call, and the milliseconds in those that were timed.
    fn take(&self) -> Result<(usize, f64)>;
}

struct Clock<A: Algebra> {
    algebra: Rc<A>,
    on: Cell<bool>,
    count: Cell<usize>,
    marks: RefCell<Vec<(A::Mark, A::Mark)>>,
}

impl<A: Algebra> Clock<A> {
    fn around(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.count.set(self.count.get() + 1);
        if !self.on.get() {
            return work();
        }
        let start = self.algebra.mark()?;
        work()?;
        self.marks.borrow_mut().push((start, self.algebra.mark()?));
        Ok(())
    }
}

impl<A: Algebra> Meter for Clock<A> {
    fn time(&self, on: bool) {
        self.on.set(on);
    }

    fn take(&self) -> Result<(usize, f64)> {
        let mut spent = 0.0;
        for (from, to) in self.marks.borrow_mut().drain(..) {
            spent += A::milliseconds(&from, &to)?;
        }
        Ok((self.count.replace(0), spent))
    }
}

/// The products of one program by one engine, metered, and the algebra between them.
pub struct Products<'e, A: Algebra> {
    pub algebra: Rc<A>,
    engine: Box<dyn Engine<'e, A> + 'e>,
    clock: Rc<Clock<A>>,
}

impl<'e, A: Algebra> Products<'e, A> {
    pub fn new(algebra: A, engine: impl Engine<'e, A> + 'e) -> Self {
        let algebra = Rc::new(algebra);
        let clock = Rc::new(Clock {
            algebra: algebra.clone(),
            on: Cell::new(false),
            count: Cell::new(0),
            marks: RefCell::default(),
        });
        Products { algebra, engine: Box::new(engine), clock }
    }

    pub fn meter(&self) -> Rc<dyn Meter> {
        self.clock.clone()
    }

    /// The algorithms of the products made so far, each once.
    pub fn chosen(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        for words in self.engine.chosen() {
            if !all.contains(&words) {
                all.push(words);
            }
        }
        all.join(", ")
    }

    pub fn spmm(&mut self, pattern: &A::Pattern, shape: Shape) -> Result<Spmm<'e, A>> {
        let (mut inner, clock) = (self.engine.spmm(pattern, shape)?, self.clock.clone());
        Ok(Box::new(move |values, b, c| clock.around(|| inner(values, b, c))))
    }

    pub fn spmv(&mut self, pattern: &A::Pattern) -> Result<Spmv<'e, A>> {
        let (mut inner, clock) = (self.engine.spmv(pattern)?, self.clock.clone());
        Ok(Box::new(move |values, x, y| clock.around(|| inner(values, x, y))))
    }

    pub fn sddmm(&mut self, pattern: &A::Pattern, depth: usize) -> Result<Sddmm<'e, A>> {
        let (mut inner, clock) = (self.engine.sddmm(pattern, depth)?, self.clock.clone());
        Ok(Box::new(move |x, y, values| clock.around(|| inner(x, y, values))))
    }

    pub fn softmax(&mut self, pattern: &A::Pattern) -> Result<Box<dyn Softmax<A> + 'e>> {
        let (inner, clock) = (self.engine.softmax(pattern)?, self.clock.clone());
        Ok(Box::new(Metered { inner, clock }))
    }

    pub fn attention(
        &mut self,
        pattern: &A::Pattern,
        columns: usize,
    ) -> Result<Option<Box<dyn Attention<A> + 'e>>> {
        let (algebra, clock) = (self.algebra.clone(), self.clock.clone());
        let found = self.engine.attention(&algebra, pattern, columns)?;
        Ok(found.map(|inner| Box::new(Metered { inner, clock }) as Box<dyn Attention<A> + 'e>))
    }
}

struct Metered<A: Algebra, P> {
    inner: P,
    clock: Rc<Clock<A>>,
}

impl<'e, A: Algebra> Attention<A> for Metered<A, Box<dyn Attention<A> + 'e>> {
    fn sums(&mut self, pair: Pair<'_, A>, v: &A::Matrix, o: &mut A::Matrix) -> Result<()> {
        self.clock.around(|| self.inner.sums(pair, v, o))
    }

    fn gradients(
        &mut self,
        pair: Pair<'_, A>,
        inputs: (&A::Matrix, &A::Matrix, &A::Matrix),
        of_v: &mut A::Matrix,
        of_pair: (&mut A::Matrix, &mut A::Matrix),
    ) -> Result<()> {
        self.clock.around(|| self.inner.gradients(pair, inputs, of_v, of_pair))
    }
}

impl<'e, A: Algebra> Softmax<A> for Metered<A, Box<dyn Softmax<A> + 'e>> {
    fn weights(&mut self, scores: &A::Vector, to: &mut A::Vector) -> Result<()> {
        self.clock.around(|| self.inner.weights(scores, to))
    }

    fn gradient(
        &mut self,
        weights: &A::Vector,
        of_weights: &A::Vector,
        to: &mut A::Vector,
    ) -> Result<()> {
        self.clock.around(|| self.inner.gradient(weights, of_weights, to))
    }
}
