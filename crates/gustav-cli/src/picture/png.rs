//! A drawing as PNG, with letters that come with the program.

use font8x8::UnicodeFonts;

use super::drawing::{COLOUR, Drawing, Rect, Words};

/// The drawing as the bytes of a PNG file, or the encoder's complaint.
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

    /// Fills the pixels that the rectangle touches with at least half of their width.
    fn fill(&mut self, r: &Rect) {
        let span = |start: f64, length: f64| {
            let first = start.round() as usize;
            // Never thinner than a pixel: a lone nonzero must show.
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
            let Some(glyph) = font8x8::BASIC_FONTS.get(character) else { continue };
            for (y, row) in glyph.iter().enumerate() {
                for x in (0..8).filter(|x| row >> x & 1 == 1) {
                    self.blend(left + 8 * k + x, top + y, [0; 3], 1.0);
                }
            }
        }
    }
}
