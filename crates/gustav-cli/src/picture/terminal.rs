//! Pictures as text.

use super::{Density, RowLengths};

const SHADES: [char; 5] = [' ', '·', '░', '▒', '█'];
const BAR: usize = 40;

/// The spy plot in a frame, one character a bin.
pub fn spy(density: &Density) -> String {
    let line: String = "─".repeat(density.across);
    let mut text = format!("┌{line}┐\n");
    for i in 0..density.down {
        text.push('│');
        for j in 0..density.across {
            let shade = density.shade(i, j);
            let level = (shade * (SHADES.len() - 1) as f64).ceil() as usize;
            text.push(SHADES[level.min(SHADES.len() - 1)]);
        }
        text += "│\n";
    }
    text + &format!("└{line}┘\n")
}

/// The row lengths as bars, a line a bin.
pub fn histogram(lengths: &RowLengths) -> String {
    let most = lengths.bins.iter().map(|b| b.2).max().unwrap_or(0).max(1);
    let labels: Vec<_> = lengths.bins.iter().map(|b| RowLengths::label(b.0, b.1)).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (label, (.., rows)) in labels.iter().zip(&lengths.bins) {
        // A bin with rows has at least an eighth of a character.
        let eighths = (*rows as u128 * 8 * BAR as u128).div_ceil(most as u128) as usize;
        let mut bar = "█".repeat(eighths / 8);
        if !eighths.is_multiple_of(8) {
            bar.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8 - 1]);
        }
        text += format!("{label:>width$} {bar} {rows}").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav::Csr;

    #[test]
    fn a_diagonal_looks_like_one() {
        let a = Csr::<f32>::new(3, 3, vec![0, 1, 2, 3], vec![0, 1, 2], vec![1.0; 3])
            .expect("a valid matrix");
        let picture = spy(&Density::new(&a.pattern().view(), 64, 1));
        assert_eq!(picture, "┌───┐\n│█  │\n│ █ │\n│  █│\n└───┘\n");
        assert_eq!(
            histogram(&RowLengths::new(&a.view())),
            "0  0\n1 ████████████████████████████████████████ 3\n"
        );
    }
}
