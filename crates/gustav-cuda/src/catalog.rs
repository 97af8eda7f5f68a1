//! What this backend offers the planner.

use gustav_core::{Error, Problem, Result};
use gustav_plan::{Algorithm, Chooser};

use crate::spmm::unsupported;

/// One algorithm of the CUDA backend.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Whether it can compute a product.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the reason and the nearest thing that works.
    pub supports: fn(&Problem) -> Result<()>,
}

/// The algorithm that a caller names, as `chooser` or as that of a configuration; none when the rules
/// choose.
///
/// # Errors
/// [`Error::Argument`] when these are two, [`Error::Unsupported`] for other choosers.
pub(crate) fn named(
    problem: &Problem,
    chooser: Chooser,
    configured: Option<Algorithm>,
) -> Result<Option<Algorithm>> {
    match (chooser, configured) {
        (Chooser::Named(named), Some(configured)) if named != configured => Err(Error::Argument {
            name: "config",
            found: format!("one of {configured}"),
            expected: format!("one of {named}"),
        }),
        (Chooser::Named(named), _) => Ok(Some(named)),
        (Chooser::Auto, configured) => Ok(configured),
        (chooser, _) => {
            let reason = format!("the chooser {chooser} does not choose among its algorithms");
            Err(unsupported(problem, "the CUDA backend", &reason, "auto or a name"))
        }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::CsrView;

    use super::*;
    use Algorithm::{RowSplit, Segmented};

    #[test]
    fn a_name_and_a_configuration_agree() {
        let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        let problem = Problem::spmm(&a);
        let of = |chooser, configured| named(&problem, chooser, configured);
        assert_eq!(of(Chooser::Auto, None).expect("the rules"), None);
        assert_eq!(of(Chooser::Auto, Some(Segmented)).expect("a name"), Some(Segmented));
        assert_eq!(of(Chooser::Named(RowSplit), None).expect("a name"), Some(RowSplit));
        let same = of(Chooser::Named(RowSplit), Some(RowSplit)).expect("a name");
        assert_eq!(same, Some(RowSplit));
        let two = of(Chooser::Named(RowSplit), Some(Segmented)).expect_err("two").to_string();
        assert!(two.contains("row-split") && two.contains("segmented"), "{two}");
        let other = of(Chooser::Predictor, None).expect_err("not here").to_string();
        assert!(other.contains("predictor") && other.contains("auto"), "{other}");
    }
}
