//! A drawing as SVG.

use std::fmt::Write;

use super::drawing::{CHARACTER, COLOUR, Drawing};

/// The drawing as the text of an SVG file.
pub fn write(drawing: &Drawing) -> String {
    let [r, g, b] = COLOUR;
    let (width, height) = (drawing.width, drawing.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <g fill=\"rgb({r},{g},{b})\">\n"
    );
    // Writing to a String cannot fail.
    for rect in &drawing.rects {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" \
             fill-opacity=\"{:.2}\"/>",
            rect.x, rect.y, rect.width, rect.height, rect.shade,
        );
    }
    svg += "</g>\n<g font-family=\"monospace\" font-size=\"13\">\n";
    for words in &drawing.words {
        let (x, y) = (words.x, words.y + CHARACTER + 2.0);
        let text = words.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(svg, "<text x=\"{x:.2}\" y=\"{y:.2}\">{text}</text>");
    }
    svg + "</g>\n</svg>\n"
}
