//! Parameters of the cost model, and the rates of the device that they were fitted on.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use gustav_core::Result;
use serde::{Deserialize, Serialize};

use super::{Bound, Calibration, Class};

/// Bytes of the widest vectors that kernels on a GPU load.
pub(crate) const VECTOR_BYTES: usize = 16;

/// The parameters of a class of devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// The devices whose records they were fitted to.
    pub device: String,
    /// Nominal rates; parameters are relative to them.
    pub rates: Rates,
    /// Those of SpMM, by the columns of B that they were fitted to: rows of B of a power of two of vectors of 16 bytes.
    pub spmm: BTreeMap<usize, OfProduct>,
    /// The same for rows of B that are no whole vectors: kernels load their values in narrower vectors.
    #[serde(rename = "spmm-narrow")]
    pub spmm_narrow: BTreeMap<usize, OfProduct>,
    /// The same for rows of B of another number of vectors, which leave lanes of a group idle.
    #[serde(rename = "spmm-partial")]
    pub spmm_partial: BTreeMap<usize, OfProduct>,
    /// Those of SpMV.
    pub spmv: OfProduct,
}

/// What a prediction takes parameters from: the mean of the parameters of two products, which may be the same.
#[derive(Clone, Copy, Debug)]
pub struct Fitted<'p> {
    below: &'p OfProduct,
    above: &'p OfProduct,
    /// What those above count in the mean, from 0 to 1.
    weight: f64,
}

/// The parameters of one class of schedules for values of one size.
#[derive(Clone, Copy, Debug)]
pub struct OfClass<'p> {
    /// Whether the class was measured with values of this size.
    pub measured: bool,
    tables: [Tables<'p>; 2],
    weight: f64,
}

/// A parameter for each bound: of those common to all classes, and of the others.
#[derive(Clone, Copy, Debug)]
struct Tables<'p> {
    common: Option<&'p BTreeMap<Bound, f64>>,
    class: Option<&'p BTreeMap<Bound, f64>>,
}

/// The parameters of a class of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuParameters {
    /// The device whose records they were fitted to.
    pub device: String,
    /// Nominal rates; parameters are relative to them.
    pub rates: CpuRates,
    /// Those of SpMM.
    #[serde(rename = "cpu-spmm")]
    pub spmm: OfProduct,
}

/// Nominal rates of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuRates {
    /// Bytes per microsecond from memory, of all threads.
    pub memory: f64,
    /// Bytes per microsecond from the caches of one thread.
    pub cache: f64,
    /// Loop iterations per microsecond of one thread.
    pub steps: f64,
}

impl CpuParameters {
    /// Those of CPUs.
    pub fn of_cpus() -> &'static CpuParameters {
        static PARAMETERS: OnceLock<CpuParameters> = OnceLock::new();
        PARAMETERS.get_or_init(|| {
            serde_json::from_str(include_str!("cpu.json"))
                .expect("the parameters that are part of the library")
        })
    }
}

/// The parameters of a product.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfProduct {
    /// By bytes of a value: the bounds that all classes of schedules share.
    pub common: BTreeMap<usize, BTreeMap<Bound, f64>>,
    /// By bytes of a value and class of schedules.
    pub classes: BTreeMap<usize, BTreeMap<Class, BTreeMap<Bound, f64>>>,
}

/// Nominal rates of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bytes per microsecond from memory.
    pub memory: f64,
    /// Bytes per microsecond from L2, of one multiprocessor.
    pub l2: f64,
    /// Bytes per microsecond from shared memory, of one multiprocessor.
    pub shared: f64,
    /// Instructions of warps per microsecond, of one multiprocessor.
    pub issue: f64,
    /// Dependent instructions per microsecond, of one warp.
    pub serial: f64,
}

impl Parameters {
    /// Those that all GPUs have without a calibration of their own.
    pub fn of_gpus() -> &'static Parameters {
        static PARAMETERS: OnceLock<Parameters> = OnceLock::new();
        PARAMETERS.get_or_init(|| {
            serde_json::from_str(include_str!("hopper.json"))
                .expect("the parameters that are part of the library")
        })
    }

    /// Those of the GPU with this name: as it was calibrated, if it was.
    ///
    /// # Errors
    /// As [`Calibration::of_device`].
    pub fn of_gpu(device: &str) -> Result<&'static Parameters> {
        // For each name, once.
        static OF_DEVICES: Mutex<BTreeMap<String, &'static Parameters>> =
            Mutex::new(BTreeMap::new());
        let known = || OF_DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(device) {
            return Ok(found);
        }
        let fitted = Self::of_gpus();
        let found = match Calibration::of_device(device)? {
            Some(calibration) => Box::leak(Box::new(fitted.calibrated(&calibration))),
            None => fitted,
        };
        Ok(known().entry(device.into()).or_insert(found))
    }

    /// These on a device where work takes other times.
    pub fn calibrated(&self, calibration: &Calibration) -> Self {
        let mut calibrated = self.clone();
        calibrated.device = format!("{}, calibrated on {}", self.device, calibration.device);
        let Parameters { spmm, spmm_narrow, spmm_partial, spmv, .. } = &mut calibrated;
        let of_columns = [spmm, spmm_narrow, spmm_partial];
        let products = of_columns.into_iter().flat_map(BTreeMap::values_mut).chain([spmv]);
        for product in products {
            let of_classes = product.classes.values_mut().flat_map(BTreeMap::values_mut);
            for (bound, parameter) in of_classes.chain(product.common.values_mut()).flatten() {
                *parameter *= calibration.time(*bound);
            }
        }
        calibrated
    }

    /// Those of SpMM with `columns` columns of B in values of `bytes` bytes: between two numbers of columns that were
    /// measured with such values, the mean by the logarithms.
    pub fn of_spmm(&self, columns: usize, bytes: usize) -> Fitted<'_> {
        let row = columns * bytes;
        let fitted = match row.is_multiple_of(VECTOR_BYTES) {
            true if (row / VECTOR_BYTES).is_power_of_two() => &self.spmm,
            true => &self.spmm_partial,
            false => &self.spmm_narrow,
        };
        let has = |(_, product): &(&usize, &OfProduct)| product.classes.contains_key(&bytes);
        let unmeasured = !fitted.iter().any(|of| has(&of));
        let below = fitted.range(..=columns).rfind(|of| unmeasured || has(of));
        let above = fitted.range(columns..).find(|of| unmeasured || has(of));
        let ((less, below), (more, above)) =
            below.or(above).zip(above.or(below)).expect("a number of columns was measured");
        let weight = match more > less {
            true => (columns as f64 / *less as f64).ln() / (*more as f64 / *less as f64).ln(),
            false => 0.0,
        };
        Fitted { below, above, weight }
    }
}

impl<'p> Fitted<'p> {
    /// Those of a class for values of `bytes` bytes. A size that was not measured has the parameters of the nearest that
    /// was.
    pub fn of_class(&self, bytes: usize, class: Class) -> OfClass<'p> {
        let products = [self.below, self.above];
        OfClass {
            measured: products.iter().all(|product| product.has(bytes, class)),
            tables: products.map(|product| product.tables(bytes, class)),
            weight: self.weight,
        }
    }
}

impl OfClass<'_> {
    /// The parameter of a bound; 0 if the bound is hidden behind others.
    pub fn of(&self, bound: Bound) -> f64 {
        let [below, above] = self.tables.map(|tables| {
            let table = if bound.is_common() { tables.common } else { tables.class };
            table.and_then(|table| table.get(&bound)).copied().unwrap_or(0.0)
        });
        below + self.weight * (above - below)
    }
}

impl OfProduct {
    /// These alone.
    pub fn fitted(&self) -> Fitted<'_> {
        Fitted { below: self, above: self, weight: 0.0 }
    }

    fn has(&self, bytes: usize, class: Class) -> bool {
        self.classes.get(&bytes).is_some_and(|classes| classes.contains_key(&class))
    }

    fn tables(&self, bytes: usize, class: Class) -> Tables<'_> {
        let sizes = self.classes.iter();
        let of_class = sizes.filter_map(|(size, classes)| Some((size, classes.get(&class)?)));
        Tables { common: nearest(bytes, self.common.iter()), class: nearest(bytes, of_class) }
    }
}

/// What the size nearest to `bytes` by their quotient has, the smaller of two that are as near.
fn nearest<'a, T>(bytes: usize, sizes: impl Iterator<Item = (&'a usize, T)>) -> Option<T> {
    sizes.min_by_key(|(size, _)| bytes.max(**size) / bytes.min(**size).max(1)).map(|(_, of)| of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_parameters_that_are_not_negative() {
        let (gpus, cpus) = (Parameters::of_gpus(), CpuParameters::of_cpus());
        let by_columns = [(&gpus.spmm, 8), (&gpus.spmm_narrow, 7), (&gpus.spmm_partial, 7)];
        let mut products = vec![(&gpus.spmv, 3), (&cpus.spmm, 4)];
        for product in [&gpus.spmv, &cpus.spmm] {
            assert!([4, 8].iter().all(|bytes| product.classes.contains_key(bytes)));
        }
        for (widths, least) in by_columns {
            // No width need be measured with values of every size.
            for bytes in [2, 4, 8] {
                let has = |product: &&OfProduct| product.classes.contains_key(&bytes);
                assert!(widths.values().filter(has).count() > 1, "{bytes} bytes");
            }
            products.extend(widths.values().map(|product| (product, least)));
        }
        for (product, least) in products {
            for (bytes, classes) in &product.classes {
                assert!(classes.len() >= least, "{bytes} bytes: {} classes", classes.len());
                let all = classes.values().chain([&product.common[bytes]]);
                let mut all = all.flat_map(BTreeMap::values);
                assert!(all.all(|parameter| *parameter >= 0.0 && parameter.is_finite()));
            }
        }
    }

    #[test]
    fn parameters_of_other_numbers_of_columns_lie_between() {
        let gpus = Parameters::of_gpus();
        let memory = |fitted: Fitted<'_>| fitted.of_class(4, Class::ManyLoads).of(Bound::Memory);
        let of = |columns| memory(gpus.of_spmm(columns, 16));
        let measured = |columns: usize| memory(gpus.spmm[&columns].fitted());
        let widths: Vec<usize> = gpus.spmm.keys().copied().collect();
        for pair in widths.windows(2) {
            let [less, more] = [pair[0], pair[1]];
            assert_eq!((of(less), of(more)), (measured(less), measured(more)));
            // Half-way by the logarithms, where the numbers' product is a square.
            let between = (less * more).isqrt();
            if between * between == less * more {
                let mean = (measured(less) + measured(more)) / 2.0;
                assert!((of(between) - mean).abs() <= 1e-12 * mean, "{between} columns");
            }
        }
        let (least, most) = (widths[0], widths[widths.len() - 1]);
        for (columns, nearest) in [(1, least), (8 * most, most)] {
            assert_eq!(of(columns), measured(nearest), "{columns} columns");
        }
        assert!(widths.len() > 1);
    }

    #[test]
    fn sizes_that_were_not_measured_have_all_parameters_of_the_nearest() {
        let parameters = CpuParameters::of_cpus().spmm.fitted();
        let [half, single, double, more] =
            [2, 4, 8, 16].map(|bytes| parameters.of_class(bytes, Class::CpuRowSplit));
        assert!(!half.measured && single.measured && double.measured && !more.measured);
        for bound in [Bound::Memory, Bound::Misses, Bound::Arithmetic, Bound::Copies] {
            assert_eq!(half.of(bound), single.of(bound), "{bound:?}");
            assert_eq!(more.of(bound), double.of(bound), "{bound:?}");
        }
    }
}
