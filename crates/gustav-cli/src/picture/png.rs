//! A drawing as PNG, with a built-in font.

use font8x8::{BASIC_FONTS, GREEK_FONTS, LATIN_FONTS, UnicodeFonts};

use super::drawing::{COLOUR, Drawing, Rect, Words};

/// The drawing as the bytes of a PNG file, or the encoder's error.
pub fn encode(drawing: &Drawing) -> Result<Vec<u8>, png::EncodingError> {
    let mut canvas = Canvas {
        width: drawing.width,
        height: drawing.height,
        pixels: vec![255; drawing.width * drawing.height * 3],
    };
    drawing.rects.iter().for_each(|r| canvas.fill(r));
    drawing.words.iter().for_each(|w| canvas.write(w));

    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, canvas.width as u32, canvas.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&canvas.pixels)?;
    Ok(bytes)
}

/// A character's pixels; a question mark for characters that the fonts lack.
fn glyph(character: char) -> Option<[u8; 8]> {
    let known = BASIC_FONTS.get(character).or_else(|| LATIN_FONTS.get(character));
    known.or_else(|| GREEK_FONTS.get(character)).or_else(|| BASIC_FONTS.get('?'))
}

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// Blends `colour` over a pixel; pixels outside are dropped.
    fn blend(&mut self, x: usize, y: usize, colour: [u8; 3], shade: f64) {
        if x >= self.width || y >= self.height {
            return;
        }
        let at = (y * self.width + x) * 3;
        for (pixel, full) in self.pixels[at..at + 3].iter_mut().zip(colour) {
            *pixel = (f64::from(*pixel) * (1.0 - shade) + f64::from(full) * shade).round() as u8;
        }
    }

    /// Fills the pixels that the rectangle covers by at least half of their width.
    fn fill(&mut self, r: &Rect) {
        let span = |start: f64, length: f64| {
            let first = start.round() as usize;
            // At least a pixel, so that a single nonzero is visible.
            first..((start + length).round() as usize).max(first + 1)
        };
        for y in span(r.y, r.height) {
            for x in span(r.x, r.width) {
                self.blend(x, y, COLOUR, r.shade);
            }
        }
    }

    fn write(&mut self, words: &Words) {
        let (left, top) = (words.x as usize, words.y as usize);
        for (k, character) in words.text.chars().enumerate() {
            let Some(glyph) = glyph(character) else { continue };
            for (y, row) in glyph.iter().enumerate() {
                for x in (0..8).filter(|x| row >> x & 1 == 1) {
                    self.blend(left + 8 * k + x, top + y, [0; 3], 1.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_leaves_a_mark() {
        for character in ['a', 'ä', 'Ω', '矩'] {
            assert!(glyph(character).is_some_and(|g| g != [0; 8]), "{character}");
        }
        assert_ne!(glyph('ä'), glyph('?'));
    }
}
