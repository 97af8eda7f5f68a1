//! A drawing as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::drawing::{CHARACTER, COLOUR, Drawing, Rect};

/// A number with at most two decimals.
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

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
    // One path per shade keeps the file small.
    let mut shades: BTreeMap<u8, String> = BTreeMap::new();
    for Rect { x, y, width, height, shade } in &drawing.rects {
        let path = shades.entry((shade * 100.0).round() as u8).or_default();
        let [x, y, w, h] = [x, y, width, height].map(|v| short(*v));
        // Writing to a String cannot fail.
        let _ = write!(path, "M{x} {y}h{w}v{h}h-{w}z");
    }
    for (percent, path) in &shades {
        let opacity = short(f64::from(*percent) / 100.0);
        let _ = writeln!(svg, "<path fill-opacity=\"{opacity}\" d=\"{path}\"/>");
    }
    svg += "</g>\n<g font-family=\"monospace\" font-size=\"13\">\n";
    for words in &drawing.words {
        let (x, y) = (words.x, words.y + CHARACTER + 2.0);
        let text = words.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(svg, "<text x=\"{x:.2}\" y=\"{y:.2}\">{text}</text>");
    }
    svg + "</g>\n</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_of_one_shade_are_one_short_path() {
        let rect = |x, shade| Rect { x, y: 2.0, width: 4.5, height: 1.0, shade };
        let rects = vec![rect(0.0, 0.5), rect(10.0, 1.0), rect(20.25, 0.5)];
        let drawing = Drawing { width: 30, height: 5, rects, words: Vec::new() };
        let svg = write(&drawing);
        let half = "<path fill-opacity=\"0.5\" d=\"M0 2h4.5v1h-4.5zM20.25 2h4.5v1h-4.5z\"/>\n";
        assert!(svg.contains(half), "{svg}");
        assert_eq!(svg.matches("<path").count(), 2, "{svg}");
        assert_eq!([short(100.0), short(0.0)], ["100", "0"]);
    }
}
