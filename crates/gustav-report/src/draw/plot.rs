//! Draws a figure: title, legend, axes, marks.

use gustav_core::Result;
use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::style::{Color, RGBColor};

use super::axis::{Scale, Span, Tick};
use super::canvas::{Anchor, Canvas, INK, Words, colour};
use super::figure::{Figure, Mark};

/// Width of every figure in points. In a column of 9 cm, the smallest letters have 6.5 points.
pub(crate) const WIDTH: u32 = 440;

// plotters draws letters at about 0.8 of the given size.
const TITLE: Words = Words { size: 16.0, bold: true };
const LABEL: Words = Words { size: 15.0, bold: false };
const TEXT: Words = Words { size: 14.0, bold: false };
const LINE: f64 = 18.0;
const MARGIN: f64 = 8.0;

/// Height of a figure in points.
pub(crate) fn height(figure: &Figure) -> u32 {
    let below = match &figure.x.scale {
        Scale::Names(names) => {
            let widest =
                names.iter().map(|n| LETTER * n.chars().count() as f64).fold(0.0, f64::max);
            // 60 points are for the labels and the name of the other axis.
            let cell = (f64::from(WIDTH) - 60.0) / names.len().max(1) as f64;
            Names::of(widest, cell).height() - Names::Level.height()
        }
        _ => 0.0,
    };
    let heading = LINE * (title_lines(figure) + legend_lines(figure)) as f64;
    let lines = 20.0 * figure.lines().saturating_sub(8) as f64;
    (270.0 + heading + lines + below) as u32
}

/// Average width of a letter.
const LETTER: f64 = 6.6;

/// Lines of the title, estimated by average letters.
fn title_lines(figure: &Figure) -> usize {
    let letters = (f64::from(WIDTH) - 2.0 * MARGIN) / 8.2;
    (figure.title.chars().count() as f64 / letters).ceil() as usize
}

/// Lines of the legend, estimated by average letters.
fn legend_lines(figure: &Figure) -> usize {
    let series = figure.series.iter().map(|s| &s.name);
    let names = series.chain(figure.rules.iter().map(|r| &r.1)).filter(|name| !name.is_empty());
    let (mut lines, mut x) = (0, f64::INFINITY);
    for name in names {
        let entry = 36.0 + LETTER * name.chars().count() as f64;
        if x + entry > f64::from(WIDTH) - 2.0 * MARGIN {
            (lines, x) = (lines + 1, 0.0);
        }
        x += entry;
    }
    lines
}

/// Draws `figure` on all of `area`, of which a point is `scale` pixels.
///
/// # Errors
/// [`gustav_core::Error::Format`] with the backend's message.
pub(crate) fn draw<B: DrawingBackend>(
    figure: &Figure,
    area: &DrawingArea<B, Shift>,
    scale: f64,
) -> Result<()> {
    let canvas = Canvas::new(area, scale);
    let top = heading(&canvas, figure)?;
    let plot = Plot::new(&canvas, figure, top)?;
    plot.axes()?;
    for (k, series) in figure.series.iter().enumerate() {
        plot.mark(k, &series.mark)?;
    }
    plot.rules()
}

/// Title and legend; returns where the plot may begin.
fn heading<B: DrawingBackend>(canvas: &Canvas<'_, B>, figure: &Figure) -> Result<f64> {
    let (width, _) = canvas.size();
    let mut y = MARGIN + 8.0;
    for line in wrapped(canvas, &figure.title, width - 2.0 * MARGIN)? {
        canvas.write(&line, (MARGIN, y), TITLE, Anchor::Left)?;
        y += LINE;
    }
    let (mut x, mut y) = (MARGIN, y + 2.0);
    let series = figure.series.iter().enumerate().map(|(k, s)| (&s.name, Some((k, &s.mark))));
    let rules = figure.rules.iter().map(|(_, name)| (name, None));
    let mut named = false;
    for (name, mark) in series.chain(rules).filter(|(name, _)| !name.is_empty()) {
        let entry = 24.0 + canvas.width(name, TEXT)? + 12.0;
        if named && x + entry - 12.0 > width - MARGIN {
            (x, y) = (MARGIN, y + LINE);
        }
        sample(canvas, mark, (x, y))?;
        canvas.write(name, (x + 24.0, y), TEXT, Anchor::Left)?;
        x += entry;
        named = true;
    }
    Ok(if named { y + LINE } else { y })
}

/// A title wrapped to `width`.
fn wrapped<B: DrawingBackend>(
    canvas: &Canvas<'_, B>,
    title: &str,
    width: f64,
) -> Result<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for word in title.split(' ') {
        if let Some(line) = lines.last_mut() {
            let longer = format!("{line} {word}");
            if canvas.width(&longer, TITLE)? <= width {
                *line = longer;
                continue;
            }
        }
        lines.push(word.into());
    }
    Ok(lines)
}

/// The sample before a name in the legend: the mark of series k, or a rule.
fn sample<B: DrawingBackend>(
    canvas: &Canvas<'_, B>,
    mark: Option<(usize, &Mark)>,
    (x, y): (f64, f64),
) -> Result<()> {
    let ends = [(x, y), (x + 18.0, y)];
    let Some((k, mark)) = mark else { return canvas.dashes(&ends, INK.mix(0.8), 1.0) };
    match mark {
        Mark::Points(_) => canvas.point(k, (x + 9.0, y), 1.0),
        Mark::Line(_) => {
            canvas.line(&ends, colour(k).to_rgba(), 2.0)?;
            canvas.point(k, (x + 9.0, y), 1.0)
        }
        Mark::Steps(_) => canvas.path(k, &ends, 2.0),
        Mark::Limit(_) => canvas.dashes(&ends, colour(k).to_rgba(), 2.0),
        _ => canvas.fill((x, y - 6.0), (x + 18.0, y + 6.0), colour(k).mix(0.7)),
    }
}

/// Whether two points of a figure are too close to distinguish.
fn near(a: (f64, f64), b: (f64, f64)) -> bool {
    (a.0 - b.0).abs() < 0.5 && (a.1 - b.1).abs() < 0.5
}

/// The rectangle between the axes.
struct Plot<'a, 'c, B: DrawingBackend> {
    canvas: &'a Canvas<'c, B>,
    figure: &'a Figure,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Span,
    y: Span,
    names: Names,
}

/// Layout of names below the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Names {
    /// In one line.
    Level,
    /// Alternating between two lines, if they do not fit in one.
    Staggered,
    /// Upwards, with the length of the longest, if they do not fit in two lines.
    Upright(f64),
}

impl Names {
    /// The layout of names of at most `widest` with `cell` points each.
    fn of(widest: f64, cell: f64) -> Self {
        match widest + 6.0 {
            needed if needed <= cell => Names::Level,
            // Names at the ends may extend past the axis.
            needed if needed <= (2.0 * cell).min(cell + 2.0 * MARGIN) => Names::Staggered,
            _ => Names::Upright(widest),
        }
    }

    /// Their height and that of the name of the axis.
    fn height(self) -> f64 {
        match self {
            Names::Level => 2.0 * LINE,
            Names::Staggered => 3.0 * LINE,
            Names::Upright(longest) => LINE + longest + 8.0,
        }
    }
}

impl<'a, 'c, B: DrawingBackend> Plot<'a, 'c, B> {
    fn new(canvas: &'a Canvas<'c, B>, figure: &'a Figure, top: f64) -> Result<Self> {
        let (width, height) = canvas.size();
        let x = figure.x.span(figure.xs().into_iter());
        let y = figure.y.span(figure.ys().into_iter());
        let widest = |ticks: Vec<Tick>| {
            ticks.iter().try_fold(0.0, |most: f64, t| Ok(most.max(canvas.width(&t.label, TEXT)?)))
        };
        let left = MARGIN + LINE + widest(y.ticks())? + 8.0;
        let right = width - MARGIN - 8.0;
        let named = matches!(figure.x.scale, Scale::Names(_));
        let cell = (right - left) / x.ticks().len().max(1) as f64;
        let widest = widest(x.ticks())?;
        let names = if named { Names::of(widest, cell) } else { Names::Level };
        let bottom = height - names.height() - MARGIN;
        let (right, bottom) = match (&figure.x.scale, &figure.y.scale) {
            (Scale::Extent(cols), Scale::Downwards(rows)) => {
                let point = ((right - left) / cols).min((bottom - top) / rows);
                let least = |size: f64, most: f64| (size * point).max(12.0).min(most);
                (left + least(*cols, right - left), top + least(*rows, bottom - top))
            }
            _ => (right, bottom),
        };
        Ok(Plot { canvas, figure, left, right, top, bottom, x, y, names })
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (across, up) = (self.x.place(x), self.y.place(y));
        (self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top))
    }

    fn axes(&self) -> Result<()> {
        let (faint, strong) = (INK.mix(0.12), INK.mix(0.7));
        let (middle, centre) = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        for (k, tick) in self.x.ticks().into_iter().enumerate() {
            let (x, _) = self.at(tick.value, self.y.low);
            if !matches!(self.figure.x.scale, Scale::Names(_)) {
                self.canvas.line(&[(x, self.top), (x, self.bottom)], faint, 1.0)?;
            }
            let (below, anchor) = match self.names {
                Names::Upright(_) => {
                    let half = self.canvas.width(&tick.label, TEXT)? / 2.0;
                    (8.0 + half, Anchor::Upwards)
                }
                Names::Staggered if k % 2 == 1 => (12.0 + LINE, Anchor::Middle),
                _ => (12.0, Anchor::Middle),
            };
            self.canvas.write(&tick.label, (x, self.bottom + below), TEXT, anchor)?;
        }
        let mut last = f64::INFINITY;
        for tick in self.y.ticks() {
            let (_, y) = self.at(self.x.low, tick.value);
            // Skip labels that would overlap.
            if (last - y).abs() < LINE - 4.0 {
                continue;
            }
            last = y;
            if !matches!(self.figure.y.scale, Scale::Names(_)) {
                self.canvas.line(&[(self.left, y), (self.right, y)], faint, 1.0)?;
            }
            self.canvas.write(&tick.label, (self.left - 8.0, y), TEXT, Anchor::Right)?;
        }
        let corner = [(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)];
        self.canvas.line(&corner, strong, 1.0)?;
        let below = (middle, self.bottom + self.names.height() - 2.0);
        self.canvas.write(&self.figure.x.label, below, LABEL, Anchor::Middle)?;
        self.canvas.write(&self.figure.y.label, (MARGIN + 4.0, centre), LABEL, Anchor::Upwards)
    }

    fn rules(&self) -> Result<()> {
        self.figure.rules.iter().try_for_each(|(value, _)| {
            let (_, y) = self.at(self.x.low, *value);
            self.canvas.dashes(&[(self.left, y), (self.right, y)], INK.mix(0.8), 1.0)
        })
    }

    fn mark(&self, k: usize, mark: &Mark) -> Result<()> {
        let canvas = self.canvas;
        let (full, half) = (colour(k).to_rgba(), colour(k).mix(0.55));
        let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            let all = points.iter().map(|(x, y)| self.at(*x, *y));
            all.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
        };
        match mark {
            Mark::Points(points) => {
                place(points).into_iter().try_for_each(|p| canvas.point(k, p, 0.7))
            }
            Mark::Line(points) => {
                let points = place(points);
                canvas.line(&points, full, 2.0)?;
                points.into_iter().try_for_each(|p| canvas.point(k, p, 1.0))
            }
            Mark::Limit(points) => canvas.dashes(&place(points), full, 2.0),
            Mark::Steps(points) => {
                let mut corners = Vec::new();
                let mut level = self.bottom;
                for (x, y) in place(points) {
                    // Merge steps that are too small to see.
                    if let Some(last) = corners.last_mut().filter(|last| near(**last, (x, y))) {
                        *last = (last.0, y);
                    } else {
                        corners.extend([(x, level), (x, y)]);
                    }
                    level = y;
                }
                corners.push((self.right, level));
                canvas.path(k, &corners, 2.0)
            }
            Mark::Bars(bars) => bars.iter().try_for_each(|(x, y)| {
                let (from, to) = (self.at(x - 0.35, 0.0), self.at(x + 0.35, *y));
                canvas.fill((from.0, to.1), (to.0, from.1), colour(k).mix(0.8))
            }),
            Mark::Boxes(boxes) => boxes.iter().try_for_each(|(x, [low, q1, mid, q3, high])| {
                let ((left, top), (right, bottom)) = (self.at(x - 0.3, *q3), self.at(x + 0.3, *q1));
                canvas.fill((left, top), (right, bottom), colour(k).mix(0.35))?;
                canvas.outline((left, top), (right, bottom), full)?;
                let median = [self.at(x - 0.3, *mid), self.at(x + 0.3, *mid)];
                canvas.line(&median, INK.to_rgba(), 2.0)?;
                for (from, to) in [(q1, low), (q3, high)] {
                    canvas.line(&[self.at(*x, *from), self.at(*x, *to)], full, 1.5)?;
                    canvas.line(&[self.at(x - 0.12, *to), self.at(x + 0.12, *to)], full, 1.5)?;
                }
                Ok(())
            }),
            Mark::Stretches(stretches) => stretches.iter().try_for_each(|(y, from, to)| {
                let ((left, top), (right, bottom)) =
                    (self.at(*from, y + 0.35), self.at(*to, y - 0.35));
                canvas.fill((left, top), (right.max(left + 1.0), bottom), half)
            }),
            Mark::Cells(cells) => cells.iter().try_for_each(|(x, y, shade, text)| {
                let ((left, top), (right, bottom)) =
                    (self.at(x - 0.5, y + 0.5), self.at(x + 0.5, y - 0.5));
                // Limited so that text is legible on the darkest shade.
                let shade = colour(k).mix(shade * 0.6);
                canvas.fill((left + 1.0, top + 1.0), (right - 1.0, bottom - 1.0), shade)?;
                canvas.outline((left, top), (right, bottom), INK.mix(0.12))?;
                // As many words as fit in the cell.
                let fits = |text: &str| Ok(canvas.width(text, TEXT)? < right - left);
                let first = text.split(' ').next().unwrap_or_default();
                for words in [text.as_str(), first] {
                    if fits(words)? {
                        return canvas.write(words, self.at(*x, *y), TEXT, Anchor::Middle);
                    }
                }
                Ok(())
            }),
            Mark::Bins(bins) => self.bins(bins, colour(k)),
        }
    }

    fn bins(&self, bins: &[Vec<f64>], colour: RGBColor) -> Result<()> {
        let down = (self.bottom - self.top) / bins.len().max(1) as f64;
        for (i, line) in bins.iter().enumerate() {
            let across = (self.right - self.left) / line.len().max(1) as f64;
            let (top, mut j) = (self.top + down * i as f64, 0);
            // Neighbouring bins of one shade are one rectangle.
            for same in line.chunk_by(|a, b| a == b) {
                let left = self.left + across * j as f64;
                j += same.len();
                if same[0] > 0.0 {
                    let to = (self.left + across * j as f64, top + down);
                    self.canvas.fill((left, top), to, colour.mix(same[0]))?;
                }
            }
        }
        Ok(())
    }
}
