//! Axes: the position of a value, and the values of the ticks.

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Equal steps, from zero when every value is positive.
    Linear,
    /// Equal ratios.
    Log,
    /// Equal ratios, with ticks at powers of two.
    Doubling,
    /// Categories: value k is at name k.
    Names(Vec<String>),
    /// Equal steps from zero to a size, to the right or upwards.
    Extent(f64),
    /// The same, downwards.
    Downwards(f64),
}

/// An axis of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// The scale.
    pub scale: Scale,
}

impl Axis {
    /// An axis of equal steps.
    pub fn linear(label: &str) -> Self {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    /// An axis of equal ratios.
    pub fn log(label: &str) -> Self {
        Axis { label: label.into(), scale: Scale::Log }
    }

    /// An axis of equal ratios for sizes that double.
    pub fn doubling(label: &str) -> Self {
        Axis { label: label.into(), scale: Scale::Doubling }
    }

    /// An axis of names.
    pub fn names<N: ToString>(label: &str, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(|name| name.to_string()).collect();
        Axis { label: label.into(), scale: Scale::Names(names) }
    }

    /// An axis from zero to `size`.
    pub fn extent(label: &str, size: usize) -> Self {
        Axis { label: label.into(), scale: Scale::Extent(size.max(1) as f64) }
    }

    /// The same from the top down.
    pub fn downwards(label: &str, size: usize) -> Self {
        Axis { label: label.into(), scale: Scale::Downwards(size.max(1) as f64) }
    }

    /// The range of the axis for `values`, without those that it cannot show.
    pub fn span(&self, values: impl Iterator<Item = f64>) -> Span {
        let ratios = matches!(self.scale, Scale::Log | Scale::Doubling);
        let shown = |v: &f64| v.is_finite() && (!ratios || *v > 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.filter(shown) {
            (low, high) = (low.min(v), high.max(v));
        }
        let (low, high) = match &self.scale {
            Scale::Names(names) => (-0.5, names.len() as f64 - 0.5),
            Scale::Extent(size) | Scale::Downwards(size) => (0.0, *size),
            _ if low > high => (0.1, 1.0),
            Scale::Log | Scale::Doubling => {
                let pad = (high / low).powf(0.04).max(1.1);
                (low / pad, high * pad)
            }
            Scale::Linear => {
                let low = if low >= 0.0 { 0.0 } else { low * 1.05 };
                (low, if high > low { high + 0.05 * (high - low) } else { low + 1.0 })
            }
        };
        Span { scale: self.scale.clone(), low, high }
    }
}

/// The range of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    scale: Scale,
    /// The value at the beginning.
    pub low: f64,
    /// The value at the end.
    pub high: f64,
}

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The value.
    pub value: f64,
    /// Its label.
    pub label: String,
}

impl Span {
    /// The position of `value`, from 0 at the beginning to 1 at the end.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Log | Scale::Doubling => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Downwards(_) => (self.high - value) / (self.high - self.low),
            _ => (value - self.low) / (self.high - self.low),
        }
    }

    /// The ticks: few, at round values.
    pub fn ticks(&self) -> Vec<Tick> {
        let values: Vec<f64> = match &self.scale {
            Scale::Names(names) => {
                let named =
                    |(k, name): (usize, &String)| Tick { value: k as f64, label: name.clone() };
                return names.iter().enumerate().map(named).collect();
            }
            // Powers are too far apart for a range of less than a factor of two.
            Scale::Log if self.high < 2.0 * self.low => self.steps(),
            Scale::Log => self.powers(),
            Scale::Doubling => self.doublings(),
            Scale::Linear | Scale::Extent(_) | Scale::Downwards(_) => self.steps(),
        };
        values.into_iter().map(|value| Tick { value, label: number(value) }).collect()
    }

    /// Multiples of a round number.
    fn steps(&self) -> Vec<f64> {
        let step = round_step((self.high - self.low) / 5.0);
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        (first as i64..=last as i64).map(|k| k as f64 * step).collect()
    }

    /// Powers of two; every other one, or fewer, when there are many.
    fn doublings(&self) -> Vec<f64> {
        let (first, last) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
        let every = ((last - first) / 8 + 1).max(1);
        (first..=last).filter(|k| k.rem_euclid(every) == 0).map(|k| 2f64.powi(k)).collect()
    }

    /// Powers of ten; if they are few, also their multiples by 2 and 5.
    fn powers(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let every = ((decades / 7.0).ceil() as i32).max(1);
        let factors: &[f64] = match decades {
            d if d < 0.75 => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            d if d < 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let power = |k: i32| factors.iter().map(move |f| f * 10f64.powi(k));
        let all = (first..=last).filter(|k| k.rem_euclid(every) == 0).flat_map(power);
        all.filter(|v| (self.low..=self.high).contains(v)).collect()
    }
}

/// The smallest round number that is at least `step`: 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= step * 0.999).unwrap_or(10.0);
    factor * power
}

/// A number in few characters: `0.05`, `12`, `300k`, `2.5M`.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        s if s >= 1e9 => (value / 1e9, "G"),
        s if s >= 1e6 => (value / 1e6, "M"),
        s if s >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    if size > 0.0 && size < 1e-3 {
        return format!("{value:.0e}");
    }
    let digits = (3 - scaled.abs().max(1e-3).log10().floor() as i32).clamp(0, 5) as usize;
    let text = format!("{scaled:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (1.2, "1.2"),
            (1000.0, "1000"),
            (300_000.0, "300k"),
            (2.5e6, "2.5M"),
            (1e-4, "1e-4"),
            (-3.0, "-3"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let values = |span: Span| span.ticks().into_iter().map(|t| t.value).collect::<Vec<_>>();
        let linear = Axis::linear("").span([0.0, 9.0].into_iter());
        assert_eq!(values(linear), [0.0, 2.0, 4.0, 6.0, 8.0]);
        let log = Axis::log("").span([0.3, 4.0].into_iter());
        assert_eq!(values(log), [0.5, 1.0, 2.0]);
        let wide = Axis::log("").span([1.0, 1e6].into_iter());
        assert_eq!(values(wide).len(), 7);
        let narrow = Axis::log("").span([1.0, 1.2].into_iter());
        assert!(values(narrow).len() > 3);
        let threads = Axis::doubling("").span([4.0, 32.0].into_iter());
        assert_eq!(values(threads), [4.0, 8.0, 16.0, 32.0]);
    }

    #[test]
    fn values_an_axis_cannot_show_do_not_stretch_it() {
        let span = Axis::log("").span([0.0, -1.0, f64::NAN, 10.0, 1000.0].into_iter());
        assert!(span.low > 5.0 && span.high < 2000.0, "{span:?}");
        assert!((span.place(100.0) - 0.5).abs() < 1e-12);
        assert!(Axis::log("").span(std::iter::empty()).ticks().len() > 1);
    }
}
