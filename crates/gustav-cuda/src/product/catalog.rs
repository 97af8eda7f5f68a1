//! The algorithms that the planner may choose from.

use gustav_core::{Error, Problem, Result};
use gustav_plan::{Algorithm, Chooser};

use super::unsupported;

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

/// The algorithm that the caller names by `chooser` or by a configuration; `None` if the rules
/// choose.
///
/// # Errors
/// [`Error::Argument`] when the two differ, [`Error::Unsupported`] for other choosers.
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

/// Checks that `algorithm` is in the catalog and supports `problem`.
///
/// # Errors
/// [`Error::Unsupported`] with the reason and the nearest thing that works.
pub(crate) fn check(catalog: &[Entry], problem: &Problem, algorithm: Algorithm) -> Result<()> {
    match catalog.iter().find(|e| e.algorithm == algorithm) {
        Some(entry) => (entry.supports)(problem),
        None => Err(no_kernel(catalog, problem, algorithm)),
    }
}

/// The error for an algorithm that is not in the catalog.
pub(crate) fn no_kernel(catalog: &[Entry], problem: &Problem, algorithm: Algorithm) -> Error {
    let backend = format!("{algorithm} on CUDA");
    let nearest: Vec<_> = catalog.iter().map(|e| e.algorithm.name()).collect();
    unsupported(problem, &backend, "it has no kernel for this product", &nearest.join(", "))
}

/// Declares the configurations and the catalog of a product. Every algorithm is a module with
/// - `Config`: its parameters;
/// - `supports(&Problem) -> Result<()>`;
/// - `configs(&Problem) -> Vec<Config>`: those that autotuning tries; for SpGEMM the default comes
///   first.
macro_rules! algorithms {
    ($($variant:ident => $module:ident,)*) => {
        /// The configuration of one algorithm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Config {
            $(
                #[doc = concat!("Of `", stringify!($module), "`.")]
                $variant($module::Config),
            )*
        }

        impl Config {
            /// The algorithm that it configures.
            pub fn algorithm(&self) -> gustav_plan::Algorithm {
                match self {
                    $(Config::$variant(_) => gustav_plan::Algorithm::$variant,)*
                }
            }

            /// The configurations of `algorithm` to time for `problem`.
            pub fn candidates(
                algorithm: gustav_plan::Algorithm,
                problem: &gustav_core::Problem,
            ) -> Vec<Self> {
                match algorithm {
                    $(gustav_plan::Algorithm::$variant => {
                        $module::configs(problem).into_iter().map(Config::$variant).collect()
                    })*
                    _ => Vec::new(),
                }
            }
        }

        static CATALOG: &[$crate::product::catalog::Entry] = &[$(
            $crate::product::catalog::Entry {
                algorithm: gustav_plan::Algorithm::$variant,
                supports: |problem| {
                    let algorithm = gustav_plan::Algorithm::$variant;
                    $crate::product::checks::epilogue(problem, algorithm)?;
                    $crate::product::checks::output(problem, algorithm)?;
                    $crate::product::checks::batch(problem, algorithm)?;
                    $module::supports(problem)
                },
            },
        )*];

        /// The algorithms of this backend for the product.
        pub fn catalog() -> &'static [$crate::product::catalog::Entry] {
            CATALOG
        }
    };
}

/// The same for products with a dense matrix or a vector, whose modules also have
/// - `choose(&Pattern, &Problem) -> Result<(Config, String)>`: the configuration that its rules
///   choose, and the reason;
/// - `Prepared::new(&Pattern, &Problem, Config) -> Result<Prepared>`, a
///   [`Method`](super::method::Method);
/// - `ANY_LAYOUT`: whether it supports column-major operands without conversion.
macro_rules! algorithms_with_dense {
    ($($variant:ident => $module:ident,)*) => {
        $crate::product::catalog::algorithms! { $($variant => $module,)* }

        impl Config {
            /// Whether the algorithm supports column-major B and C without conversion.
            pub fn any_layout(&self) -> bool {
                match self {
                    $(Config::$variant(_) => $module::ANY_LAYOUT,)*
                }
            }

            /// The configuration that the algorithm's rules choose for a pattern, and the reason.
            pub(super) fn choose(
                algorithm: gustav_plan::Algorithm,
                pattern: &$crate::schedule::pattern::Pattern<'_>,
                problem: &gustav_core::Problem,
            ) -> gustav_core::Result<(Self, String)> {
                match algorithm {
                    $(gustav_plan::Algorithm::$variant => {
                        let (config, reason) = $module::choose(pattern, problem)?;
                        Ok((Config::$variant(config), reason))
                    })*
                    other => Err($crate::product::catalog::no_kernel(CATALOG, problem, other)),
                }
            }

            /// The algorithm in this configuration, prepared for a pattern.
            pub(super) fn prepare(
                self,
                pattern: &$crate::schedule::pattern::Pattern<'_>,
                problem: &gustav_core::Problem,
            ) -> gustav_core::Result<Box<dyn $crate::product::method::Method>> {
                Ok(match self {
                    $(Config::$variant(config) => {
                        Box::new($module::Prepared::new(pattern, problem, config)?)
                    })*
                })
            }
        }
    };
}

pub(crate) use {algorithms, algorithms_with_dense};

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
