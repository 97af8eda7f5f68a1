//! Lines, shapes and text on any backend of plotters, in points, which a scale converts to pixels.

use std::sync::Once;

use gustav_core::{Error, Result};
use plotters::coord::Shift;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform, register_font};

/// Colours that colour-blind readers can distinguish (Okabe and Ito, 2008), without those of low
/// contrast to white.
const PALETTE: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(148, 108, 60),
    RGBColor(128, 128, 128),
    INK,
];

/// Their counterparts for dark backgrounds, in the same order; `INK` has none.
const ON_DARK: [RGBColor; 8] = [
    RGBColor(47, 147, 224),
    RGBColor(255, 122, 26),
    RGBColor(28, 198, 149),
    RGBColor(231, 155, 198),
    RGBColor(255, 194, 61),
    RGBColor(154, 215, 247),
    RGBColor(192, 154, 98),
    RGBColor(168, 168, 168),
];

/// CSS rules that replace an SVG's colours on a dark background.
pub(crate) fn dark_rules() -> String {
    let code = |c: RGBColor| format!("#{:02X}{:02X}{:02X}", c.0, c.1, c.2);
    let rules = |(light, dark): (&RGBColor, &RGBColor)| {
        let (light, dark) = (code(*light), code(*dark));
        format!("svg [fill=\"{light}\"]{{fill:{dark}}}svg [stroke=\"{light}\"]{{stroke:{dark}}}\n")
    };
    PALETTE.iter().zip(&ON_DARK).map(rules).collect()
}

/// Lengths of strokes and gaps of lines without points, alternating.
const DASHES: [&[f64]; 4] = [&[], &[7.0, 3.0], &[2.0, 2.5], &[8.0, 2.5, 2.0, 2.5]];

/// Colour of text and axes; an SVG uses `currentColor` instead.
pub(crate) const INK: RGBColor = BLACK;

/// The colour of series `k`.
pub(crate) fn colour(k: usize) -> RGBColor {
    PALETTE[k % PALETTE.len()]
}

/// Alignment of text to its point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    /// The point is at the left, in the middle of the height.
    Left,
    /// The point is the middle.
    Middle,
    /// The point is at the right, in the middle of the height.
    Right,
    /// The point is the middle, and the text is rotated to run upwards.
    Upwards,
}

/// A style of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Words {
    /// Height in points.
    pub size: f64,
    /// Whether it is bold.
    pub bold: bool,
}

/// A drawing area.
pub(crate) struct Canvas<'a, B: DrawingBackend> {
    area: &'a DrawingArea<B, Shift>,
    scale: f64,
}

/// Registers the fonts that are compiled in.
fn letters() {
    static KNOWN: Once = Once::new();
    KNOWN.call_once(|| {
        for (style, bytes) in
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
        {
            // If a font cannot be read, drawing the first text fails.
            let _ = register_font("sans-serif", style, bytes);
        }
    });
}

impl<'a, B: DrawingBackend> Canvas<'a, B> {
    /// A canvas on `area`, of which a point is `scale` pixels.
    pub fn new(area: &'a DrawingArea<B, Shift>, scale: f64) -> Self {
        letters();
        Canvas { area, scale }
    }

    /// Width and height in points.
    pub fn size(&self) -> (f64, f64) {
        let (width, height) = self.area.dim_in_pixel();
        (f64::from(width) / self.scale, f64::from(height) / self.scale)
    }

    fn pixel(&self, (x, y): (f64, f64)) -> (i32, i32) {
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }

    fn draw<E>(&self, element: &E) -> Result<()>
    where
        for<'b> &'b E: PointCollection<'b, (i32, i32)>,
        E: Drawable<B>,
    {
        self.area.draw(element).map_err(refused)
    }

    fn stroke(&self, colour: RGBAColor, width: f64) -> ShapeStyle {
        let stroke_width = (width * self.scale).round().max(1.0) as u32;
        ShapeStyle { color: colour, filled: false, stroke_width }
    }

    /// A line through `points`.
    pub fn line(&self, points: &[(f64, f64)], colour: RGBAColor, width: f64) -> Result<()> {
        let pixels: Vec<_> = points.iter().map(|p| self.pixel(*p)).collect();
        self.draw(&PathElement::new(pixels, self.stroke(colour, width)))
    }

    /// A line of dashes through `points`.
    pub fn dashes(&self, points: &[(f64, f64)], colour: RGBAColor, width: f64) -> Result<()> {
        self.broken(&[6.0, 4.0], points, colour, width)
    }

    /// The line of series `k` through `points`. Dashes distinguish similar colours.
    pub fn path(&self, k: usize, points: &[(f64, f64)], width: f64) -> Result<()> {
        let pattern = DASHES[(k + k / PALETTE.len()) % DASHES.len()];
        self.broken(pattern, points, colour(k).to_rgba(), width)
    }

    /// A line through `points` with strokes and gaps of the lengths of `pattern` alternating; solid
    /// if `pattern` is empty.
    fn broken(
        &self,
        pattern: &[f64],
        points: &[(f64, f64)],
        colour: RGBAColor,
        width: f64,
    ) -> Result<()> {
        if pattern.is_empty() {
            return self.line(points, colour, width);
        }
        let (mut turn, mut left) = (0, pattern[0]);
        let mut stroke: Vec<_> = points.first().copied().into_iter().collect();
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let length = (x1 - x0).hypot(y1 - y0);
            let at = |d: f64| (x0 + (x1 - x0) * d / length, y0 + (y1 - y0) * d / length);
            let mut done = 0.0;
            while length - done > left {
                done += left;
                stroke.push(at(done));
                if turn % 2 == 0 {
                    self.line(&stroke, colour, width)?;
                }
                stroke = vec![at(done)];
                turn = (turn + 1) % pattern.len();
                left = pattern[turn];
            }
            left -= length - done;
            stroke.push((x1, y1));
        }
        if turn % 2 == 0 { self.line(&stroke, colour, width) } else { Ok(()) }
    }

    /// A filled rectangle between two corners.
    pub fn fill(&self, from: (f64, f64), to: (f64, f64), colour: RGBAColor) -> Result<()> {
        self.draw(&Rectangle::new([self.pixel(from), self.pixel(to)], colour.filled()))
    }

    /// The outline of a rectangle between two corners.
    pub fn outline(&self, from: (f64, f64), to: (f64, f64), colour: RGBAColor) -> Result<()> {
        self.draw(&Rectangle::new([self.pixel(from), self.pixel(to)], self.stroke(colour, 1.5)))
    }

    /// The point of series `k`. Shapes distinguish similar colours.
    pub fn point(&self, k: usize, (x, y): (f64, f64), opacity: f64) -> Result<()> {
        let colour = colour(k).mix(opacity);
        let r = 3.5;
        // When colours repeat, the shape changes.
        let corners: &[(f64, f64)] = match (k + k / PALETTE.len()) % 4 {
            0 => {
                let radius = (r * self.scale).round() as i32;
                return self.draw(&Circle::new(self.pixel((x, y)), radius, colour.filled()));
            }
            1 => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            2 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            _ => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        };
        let corners: Vec<_> =
            corners.iter().map(|(dx, dy)| self.pixel((x + dx * r, y + dy * r))).collect();
        self.draw(&Polygon::new(corners, colour.filled()))
    }

    fn style(&self, words: Words, anchor: Anchor) -> TextStyle<'static> {
        let style = if words.bold { FontStyle::Bold } else { FontStyle::Normal };
        let font = FontDesc::new(FontFamily::SansSerif, words.size * self.scale, style);
        let (font, horizontal) = match anchor {
            Anchor::Left => (font, HPos::Left),
            Anchor::Middle => (font, HPos::Center),
            Anchor::Right => (font, HPos::Right),
            Anchor::Upwards => (font.transform(FontTransform::Rotate270), HPos::Center),
        };
        font.color(&INK).pos(Pos::new(horizontal, VPos::Center))
    }

    /// Writes `text` at a point.
    pub fn write(&self, text: &str, at: (f64, f64), words: Words, anchor: Anchor) -> Result<()> {
        self.draw(&Text::new(text.to_owned(), self.pixel(at), self.style(words, anchor)))
    }

    /// Width of `text` in points.
    pub fn width(&self, text: &str, words: Words) -> Result<f64> {
        let style = self.style(words, Anchor::Left);
        let (width, _) = self.area.estimate_text_size(text, &style).map_err(refused)?;
        Ok(f64::from(width) / self.scale)
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Format { path: None, format: "figure", reason: error.to_string() }
}
