//! The table of `--algorithm all`.

use crate::product::{Product, Trial};

// Columns after the algorithm's name; empty ones are left out.
const HEADS: [&str; 8] =
    ["plan ms", "execute ms", "GFLOP/s", "of floor", "of gather", "to vendor", "error", "bound"];
const WIDTH: usize = 11;
const NAME: usize = 18;

type Cells = [Option<String>; HEADS.len()];

/// One line per algorithm that ran, then the reasons of the others; empty without attempts.
pub fn of(product: &Product<'_>) -> String {
    if product.attempts.is_empty() {
        return String::new();
    }
    let (mut ran, mut refusals) = (Vec::new(), String::new());
    for (algorithm, outcome) in product.attempts {
        match outcome {
            Ok(trial) => ran.push((algorithm.name(), cells(product, trial), trial.is_right())),
            Err(reason) => refusals += &format!("{algorithm:<NAME$} {reason}\n"),
        }
    }
    let filled: Vec<usize> =
        (0..HEADS.len()).filter(|&k| ran.iter().any(|(_, cells, _)| cells[k].is_some())).collect();
    let line = |name: &str, cell: &dyn Fn(usize) -> String| {
        let cells = filled.iter().map(|&k| format!("{:>WIDTH$}", cell(k)));
        format!("{name:<NAME$}{}", cells.collect::<String>())
    };
    let mut text = format!("\n{}\n", line("algorithm", &|k| HEADS[k].into()));
    for (name, cells, right) in &ran {
        text += &line(name, &|k| cells[k].clone().unwrap_or_else(|| "-".into()));
        text += if *right { "\n" } else { "  WRONG\n" };
    }
    text + &refusals
}

/// A rate with three digits or more, whatever its size.
pub fn rate(gflops: f64) -> String {
    let digits = if gflops > 0.0 { (2.0 - gflops.log10().floor()).clamp(0.0, 6.0) } else { 2.0 };
    format!("{gflops:.*}", digits as usize)
}

fn cells(product: &Product<'_>, trial: &Trial) -> Cells {
    let verdict = trial.verdict.as_ref();
    [
        Some(format!("{:.3}", trial.plan_ms)),
        Some(format!("{:.3}", trial.timing.median_ms)),
        product.gflops(trial).map(rate),
        product.floor_fraction(trial).map(|f| format!("{f:.2}")),
        product.gather_fraction(trial).map(|f| format!("{f:.2}")),
        product.vendor_ratio(trial).map(|r| format!("{r:.2}")),
        verdict.map(|v| format!("{:.1e}", v.max_error())),
        verdict.map(|v| format!("{:.1e}", v.error_bound())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        let written = [1234.5, 99.94, 7.384, 0.9312, 0.004_31, 0.0].map(rate);
        assert_eq!(written, ["1234", "99.9", "7.38", "0.931", "0.00431", "0.00"]);
    }
}
