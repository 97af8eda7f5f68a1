//! The picture of `gustav info` as rectangles and words, in whatever format it is written.

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

/// Rectangles and words on white.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// What is drawn, in order.
    pub rects: Vec<Rect>,
    /// What is written on top.
    pub words: Vec<Words>,
}

/// Width and height of a character in pixels.
pub const CHARACTER: f64 = 8.0;
/// The full colour, red, green and blue.
pub const COLOUR: [u8; 3] = [22, 62, 110];

const MARGIN: f64 = 16.0;
const LINE: f64 = 16.0;
const PLOT: f64 = 512.0;
const BAR: f64 = 240.0;

impl Drawing {
    /// The spy plot with the histogram of row lengths on its right, under a title.
    pub fn new(title: &str, density: &Density, lengths: &RowLengths) -> Self {
        let mut d = Drawing::default();
        d.write(MARGIN, MARGIN, title);
        let top = MARGIN + 2.0 * LINE;
        let bottom = d.spy(density, top).max(d.histogram(lengths, top));
        let title_end = 2.0 * MARGIN + CHARACTER * title.chars().count() as f64;
        let plots_end = 3.0 * MARGIN + PLOT + BAR + 22.0 * CHARACTER;
        d.width = title_end.max(plots_end).ceil() as usize;
        d.height = (bottom + MARGIN).ceil() as usize;
        d
    }

    fn write(&mut self, x: f64, y: f64, text: impl Into<String>) {
        self.words.push(Words { x, y, text: text.into() });
    }

    fn fill(&mut self, x: f64, y: f64, width: f64, height: f64, shade: f64) {
        self.rects.push(Rect { x, y, width, height, shade });
    }

    /// Draws the bins from `top` on and returns the lower edge.
    fn spy(&mut self, density: &Density, top: f64) -> f64 {
        let side = PLOT / density.down.max(density.across).max(1) as f64;
        let (width, height) = (side * density.across as f64, side * density.down as f64);
        for i in 0..density.down {
            for j in 0..density.across {
                let shade = density.shade(i, j);
                if shade > 0.0 {
                    let (x, y) = (MARGIN + side * j as f64, top + side * i as f64);
                    self.fill(x, y, side, side, shade);
                }
            }
        }
        for (x, y, w, h) in [
            (-1.0, -1.0, width + 2.0, 1.0),
            (-1.0, height, width + 2.0, 1.0),
            (-1.0, 0.0, 1.0, height),
            (width, 0.0, 1.0, height),
        ] {
            self.fill(MARGIN + x, top + y, w, h, 0.6);
        }
        top + height
    }

    /// Draws the bars from `top` on and returns the lower edge.
    fn histogram(&mut self, lengths: &RowLengths, top: f64) -> f64 {
        let left = 2.0 * MARGIN + PLOT;
        self.write(left, top, "rows by number of nonzeros");
        let most = lengths.bins.iter().map(|b| b.2).max().unwrap_or(0).max(1) as f64;
        let labels = 10.0 * CHARACTER;
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
