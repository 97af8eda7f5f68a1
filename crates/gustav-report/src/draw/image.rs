//! A figure as SVG, for the page and as a file, and as PNG.

use gustav_core::{Error, Result};
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::drawing::IntoDrawingArea;
use plotters::style::WHITE;

use super::canvas::dark_rules;
use super::figure::Figure;
use super::plot::{WIDTH, draw, height};
use crate::text::escaped;

/// The style of a stand-alone file, light and dark.
fn style() -> String {
    format!(
        "<style>svg{{color:#1b1b1b;background:#fff}}\n@media (prefers-color-scheme:dark){{\
         svg{{color:#e4e4e4;background:#15181c}}\n{}}}</style>",
        dark_rules()
    )
}

/// Pixels of a PNG for each point, so that it is sharp in print.
const DENSITY: u32 = 3;

/// The figure as an SVG element in the text colour of the page.
///
/// # Errors
/// [`Error::Format`] with the backend's message.
pub(crate) fn svg(figure: &Figure) -> Result<String> {
    element(figure, "")
}

/// The figure as an SVG file, light or dark by the reader's preference.
///
/// # Errors
/// As [`svg`].
pub(crate) fn svg_file(figure: &Figure) -> Result<String> {
    element(figure, &style())
}

fn element(figure: &Figure, style: &str) -> Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height(figure))).into_drawing_area();
        draw(figure, &area, 1.0)?;
        area.present().map_err(|e| refused(&e))?;
    }
    let start = text.find('>').map_or(0, |k| k + 1);
    let (opening, rest) = text.split_at(start);
    let title = escaped(&figure.title);
    let opening = opening.replacen("<svg ", "<svg role=\"img\" ", 1);
    let rest = rest.replace("\"#000000\"", "\"currentColor\"");
    Ok(format!("{opening}<title>{title}</title>{style}{rest}"))
}

/// The figure as the bytes of a PNG file, on white.
///
/// # Errors
/// As [`svg`].
pub(crate) fn png(figure: &Figure) -> Result<Vec<u8>> {
    let (width, height) = (WIDTH * DENSITY, height(figure) * DENSITY);
    let mut pixels = vec![0; (width * height * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        area.fill(&WHITE).map_err(|e| refused(&e))?;
        draw(figure, &area, f64::from(DENSITY))?;
        area.present().map_err(|e| refused(&e))?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let written = encoder.write_header().and_then(|mut w| w.write_image_data(&pixels));
    written.map_err(|e| refused(&e))?;
    Ok(bytes)
}

fn refused(error: &dyn std::fmt::Display) -> Error {
    Error::Format { path: None, format: "figure", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::super::figure::{Mark, Series};
    use super::*;

    fn figure() -> Figure {
        let series = |name: &str, mark| Series { name: name.into(), mark };
        let series = vec![
            series("points", Mark::Points(vec![(1.0, 1.0), (100.0, 10.0), (0.0, 3.0)])),
            series("line", Mark::Line(vec![(1.0, 2.0), (100.0, 20.0)])),
            series("limit", Mark::Limit(vec![(1.0, 1.0), (100.0, 1.0)])),
        ];
        let axes = [Axis::log("rows"), Axis::log("time in ms")];
        Figure::new("f", "A & B", "", axes, series).rule(1.0, "level")
    }

    #[test]
    fn an_svg_has_its_words_and_takes_the_readers_colours() {
        let (inline, file) = (svg(&figure()).unwrap(), svg_file(&figure()).unwrap());
        for part in ["time in ms", "rows", "points", "level", "<title>A &amp; B</title>"] {
            assert!(inline.contains(part), "{part}: {inline}");
        }
        assert!(inline.contains("currentColor") && !inline.contains("#000000"));
        assert!(!inline.contains("<style>") && file.contains("prefers-color-scheme:dark"));
        // The colour of a series is replaced in dark mode.
        let of = |rule: &str| file.contains(&format!("svg [{rule}=\"#0072B2\"]{{{rule}:#2F93E0}}"));
        assert!(inline.contains("fill=\"#0072B2\"") && of("fill") && of("stroke"), "{file}");
        assert!(!inline.contains("NaN") && !inline.contains("inf"), "{inline}");
    }

    #[test]
    fn a_png_has_three_pixels_a_point() {
        let bytes = png(&figure()).unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let size = (reader.info().width, reader.info().height);
        assert_eq!(size, (3 * WIDTH, 3 * height(&figure())));
    }
}
