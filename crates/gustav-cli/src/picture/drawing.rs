//! The picture of `gustav info` as rectangles and text, independent of the file format.

use super::{Density, RowLengths};

/// A filled rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Left edge in pixels.
    pub x: f64,
    /// Upper edge in pixels.
    pub y: f64,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// From 0 (white) to 1 (the full colour).
    pub shade: f64,
}

/// A line of text in characters of 8 × 8 pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Words {
    /// Left edge in pixels.
    pub x: f64,
    /// Upper edge in pixels.
    pub y: f64,
    /// The text.
    pub text: String,
}

/// Rectangles and text on white.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// The rectangles, in drawing order.
    pub rects: Vec<Rect>,
    /// The text on top of them.
    pub words: Vec<Words>,
}

/// Width and height of a character in pixels.
pub const CHARACTER: f64 = 8.0;
/// The colour for shade 1: red, green and blue.
pub const COLOUR: [u8; 3] = [22, 62, 110];

const MARGIN: f64 = 16.0;
const LINE: f64 = 16.0;
const PLOT: f64 = 512.0;
const BAR: f64 = 240.0;
// Number of shades of the spy plot.
const SHADES: f64 = 32.0;

impl Drawing {
    /// A title, the spy plot, optionally to its right that with rows in a named order, and the
    /// histogram of row lengths.
    pub fn new(
        title: &str,
        density: &Density,
        ordered: Option<(&str, &Density)>,
        lengths: &RowLengths,
    ) -> Self {
        let mut d = Drawing::default();
        d.write(MARGIN, MARGIN, title);
        let (mut top, mut left) = (MARGIN + 2.0 * LINE, MARGIN);
        if ordered.is_some() {
            d.write(left, top, "rows as stored");
            top += LINE;
        }
        let mut bottom = d.spy(density, left, top);
        left += PLOT + MARGIN;
        if let Some((order, density)) = ordered {
            d.write(left, top - LINE, format!("rows in the order {order}"));
            bottom = bottom.max(d.spy(density, left, top));
            left += PLOT + MARGIN;
        }
        bottom = bottom.max(d.histogram(lengths, left, top));
        let end = |words: &Words| words.x + CHARACTER * words.text.chars().count() as f64;
        let right = d.words.iter().map(end).fold(0.0, f64::max);
        d.width = (right + MARGIN).ceil() as usize;
        d.height = (bottom + MARGIN).ceil() as usize;
        d
    }

    fn write(&mut self, x: f64, y: f64, text: impl Into<String>) {
        self.words.push(Words { x, y, text: text.into() });
    }

    fn fill(&mut self, x: f64, y: f64, width: f64, height: f64, shade: f64) {
        self.rects.push(Rect { x, y, width, height, shade });
    }

    /// Draws the bins from `left` and `top` on and returns the lower edge.
    fn spy(&mut self, density: &Density, left: f64, top: f64) -> f64 {
        let side = PLOT / density.down.max(density.across).max(1) as f64;
        let (width, height) = (side * density.across as f64, side * density.down as f64);
        // Shades are quantised, and a run of equal shades is one rectangle.
        let level = |i, j| (density.shade(i, j) * SHADES).ceil();
        for i in 0..density.down {
            let mut j = 0;
            while j < density.across {
                let (first, shade) = (j, level(i, j));
                while j < density.across && level(i, j) == shade {
                    j += 1;
                }
                if shade > 0.0 {
                    let (x, y) = (left + side * first as f64, top + side * i as f64);
                    self.fill(x, y, side * (j - first) as f64, side, shade / SHADES);
                }
            }
        }
        for (x, y, w, h) in [
            (-1.0, -1.0, width + 2.0, 1.0),
            (-1.0, height, width + 2.0, 1.0),
            (-1.0, 0.0, 1.0, height),
            (width, 0.0, 1.0, height),
        ] {
            self.fill(left + x, top + y, w, h, 0.6);
        }
        top + height
    }

    /// Draws the bars from `left` and `top` on and returns the lower edge.
    fn histogram(&mut self, lengths: &RowLengths, left: f64, top: f64) -> f64 {
        self.write(left, top, "rows by number of nonzeros");
        let most = lengths.bins.iter().map(|b| b.2).max().unwrap_or(0).max(1) as f64;
        let label = |bin: &(usize, usize, u64)| RowLengths::label(bin.0, bin.1);
        let longest = lengths.bins.iter().map(|b| label(b).len()).max().unwrap_or(0);
        let labels = (longest + 1) as f64 * CHARACTER;
        let mut y = top;
        for &(first, last, rows) in &lengths.bins {
            y += LINE;
            self.write(left, y + 2.0, RowLengths::label(first, last));
            let bar = BAR * rows as f64 / most;
            self.fill(left + labels, y, bar, LINE - 4.0, 0.8);
            self.write(left + labels + bar + CHARACTER, y + 2.0, rows.to_string());
        }
        y + LINE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav::Csr;

    #[test]
    fn labels_end_before_bars_and_the_picture_after_its_words() {
        let bins = (14..20).map(|k| (1 << k, (2 << k) - 1, 1 << k)).collect();
        let a = Csr::<f64>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).expect("a matrix");
        let drawing =
            Drawing::new("a", &Density::new(&a.pattern().view(), 8, 1), None, &RowLengths { bins });
        let end = |w: &Words| w.x + CHARACTER * w.text.chars().count() as f64;
        for bar in drawing.rects.iter().filter(|r| r.height == LINE - 4.0) {
            let beside = |w: &&Words| (w.y - bar.y).abs() < LINE / 2.0;
            let words: Vec<&Words> = drawing.words.iter().filter(beside).collect();
            assert_eq!(words.len(), 2, "a label and a count");
            assert!(end(words[0]) < bar.x && bar.x + bar.width < words[1].x, "{words:?}");
        }
        assert!(drawing.words.iter().all(|w| end(w) < drawing.width as f64));
    }

    #[test]
    fn runs_of_one_shade_are_one_rectangle() {
        let n = 64u32;
        let offsets: Vec<u32> = (0..=n).map(|r| r * n).collect();
        let indices: Vec<u32> = (0..n * n).map(|k| k % n).collect();
        let a = Csr::<f64>::new(64, 64, offsets, indices, vec![1.0; 64 * 64]).expect("a matrix");
        let lengths = RowLengths { bins: Vec::new() };
        let density = Density::new(&a.pattern().view(), 64, 1);
        let drawing = Drawing::new("a", &density, None, &lengths);
        // One rectangle per row of bins, and the four sides of the frame.
        assert_eq!(drawing.rects.len(), 64 + 4);
        let both = Drawing::new("a", &density, Some(("lpt", &density)), &lengths);
        assert_eq!(both.rects.len(), 2 * (64 + 4));
        assert!(both.width > drawing.width && both.words.iter().any(|w| w.text.contains("lpt")));
    }
}
