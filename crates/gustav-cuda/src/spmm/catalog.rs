//! The SpMM algorithms of this backend, and what a plan asks of each.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

use super::operands::Operands;
use super::pattern::Pattern;
use super::{
    b_stationary, column_panel, dcsr, dense, ell_r, even_shares, heavy_light, merge_path,
    nonzero_split, output_stationary, row_block, row_split, segmented, sell_p, tensor, thread_row,
    vendor,
};
use crate::Device;
use crate::catalog::Entry;
use crate::stream::Stream;

/// An algorithm prepared for one pattern: what a plan holds.
pub(crate) trait Method: Send {
    /// Bytes that it holds on the device.
    fn bytes(&self) -> usize;

    /// Compiles what `operands` need, unless that has been done.
    fn compile(&mut self, _device: &Device, _operands: &Operands) -> Result<()> {
        Ok(())
    }

    /// Whether it brings the values of A into an order of its own before it multiplies.
    fn converts(&self) -> bool {
        false
    }

    /// Queues that, ahead of [`Method::launch`].
    ///
    /// # Safety
    /// As [`Method::launch`].
    unsafe fn convert(&mut self, _stream: &Stream, _operands: &Operands) -> Result<()> {
        Ok(())
    }

    /// Queues C = scale(α, A·B) ⊕ scale(β, C).
    ///
    /// # Safety
    /// The addresses in `operands` are valid until the stream has done the work, and A has the
    /// pattern that the method was prepared for.
    unsafe fn launch(
        &mut self,
        device: &Device,
        stream: &Stream,
        operands: &Operands,
    ) -> Result<()>;
}

/// Each algorithm is a module with
/// - `Config`: its tile sizes;
/// - `supports(&Problem) -> Result<()>`;
/// - `choose(&Pattern, &Problem) -> Result<(Config, String)>`: its configuration and the reason;
/// - `configs(&Problem) -> Vec<Config>`: those that autotuning tries;
/// - `Prepared::new(&Pattern, &Problem, Config) -> Result<Prepared>`, a [`Method`];
/// - `ANY_LAYOUT`: whether it takes column-major operands itself.
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
            pub fn algorithm(&self) -> Algorithm {
                match self {
                    $(Config::$variant(_) => Algorithm::$variant,)*
                }
            }

            /// Whether the algorithm takes column-major B and C itself.
            pub fn any_layout(&self) -> bool {
                match self {
                    $(Config::$variant(_) => $module::ANY_LAYOUT,)*
                }
            }

            /// The algorithm's own choice for a pattern, and the reason.
            pub(super) fn choose(
                algorithm: Algorithm,
                pattern: &Pattern<'_>,
                problem: &Problem,
            ) -> Result<(Self, String)> {
                match algorithm {
                    $(Algorithm::$variant => {
                        let (config, reason) = $module::choose(pattern, problem)?;
                        Ok((Config::$variant(config), reason))
                    })*
                    other => Err(no_kernel(problem, other)),
                }
            }

            /// The algorithm in this configuration, prepared for a pattern.
            pub(super) fn prepare(
                self,
                pattern: &Pattern<'_>,
                problem: &Problem,
            ) -> Result<Box<dyn Method>> {
                Ok(match self {
                    $(Config::$variant(config) => {
                        Box::new($module::Prepared::new(pattern, problem, config)?)
                    })*
                })
            }

            /// The configurations of `algorithm` that are worth timing for `problem`.
            pub fn candidates(algorithm: Algorithm, problem: &Problem) -> Vec<Self> {
                match algorithm {
                    $(Algorithm::$variant => {
                        $module::configs(problem).into_iter().map(Config::$variant).collect()
                    })*
                    _ => Vec::new(),
                }
            }
        }

        static CATALOG: &[Entry] = &[$(
            Entry {
                algorithm: Algorithm::$variant,
                supports: |problem| {
                    $crate::spmm::checks::epilogue(problem, Algorithm::$variant)?;
                    $crate::spmm::checks::output(problem, Algorithm::$variant)?;
                    $module::supports(problem)
                },
            },
        )*];
    };
}

pub(crate) use algorithms;

algorithms! {
    Segmented => segmented,
    EvenShares => even_shares,
    RowBlock => row_block,
    ColumnPanel => column_panel,
    BStationary => b_stationary,
    Tensor => tensor,
    RowSplit => row_split,
    ThreadRow => thread_row,
    NonzeroSplit => nonzero_split,
    MergePath => merge_path,
    OutputStationary => output_stationary,
    Dcsr => dcsr,
    SellP => sell_p,
    EllR => ell_r,
    HeavyLight => heavy_light,
    Dense => dense,
    Vendor => vendor,
}

/// The SpMM algorithms of this backend.
pub fn catalog() -> &'static [Entry] {
    CATALOG
}

/// `algorithm` is in the catalog and computes `problem`.
pub(super) fn check(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    match CATALOG.iter().find(|e| e.algorithm == algorithm) {
        Some(entry) => (entry.supports)(problem),
        None => Err(no_kernel(problem, algorithm)),
    }
}

fn no_kernel(problem: &Problem, algorithm: Algorithm) -> gustav_core::Error {
    let backend = format!("{algorithm} on CUDA");
    let nearest: Vec<_> = CATALOG.iter().map(|e| e.algorithm.name()).collect();
    let reason = "it has no kernel for this product";
    super::unsupported(problem, &backend, reason, &nearest.join(", "))
}
