//! The header of a NumPy array: magic, version, and a Python dictionary with three keys.
//!
//! Format: NumPy documentation, `numpy.lib.format`.

use gustav_core::Result;

use super::npy::damaged;

// NumPy itself refuses longer headers.
const LONGEST_HEADER: usize = 10_000;

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Signed,
    Unsigned,
    Bool,
    /// Text, as in the format name of a SciPy archive.
    Text,
    /// Any other, refused when elements are read.
    Other,
}

/// The header of an array.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    /// NumPy's name for the element type.
    pub descr: String,
    pub kind: Kind,
    /// Bytes of one element.
    pub size: usize,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<u64>,
    /// Number of elements.
    pub len: u64,
    /// First byte of the elements.
    pub data: usize,
}

impl Array {
    /// Reads the header at the start of `file`, of which at least the header is given.
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        let cut = || damaged("the header ends too early; the file is truncated");
        let rest = file.strip_prefix(b"\x93NUMPY").ok_or_else(|| {
            damaged("the file does not begin with \\x93NUMPY; it is no NumPy array")
        })?;
        let (len, start) = match *rest {
            [1, _, a, b, ..] => (u16::from_le_bytes([a, b]) as usize, 10),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
            [version @ (0 | 4..), minor, ..] => {
                return Err(damaged(format!(
                    "version {version}.{minor} of the format is not supported; save again with \
                     numpy.save"
                )));
            }
            _ => return Err(cut()),
        };
        if len > LONGEST_HEADER {
            return Err(damaged(format!(
                "a header of {len} bytes is longer than any matrix needs"
            )));
        }
        let text = file.get(start..start + len).ok_or_else(cut)?;
        // A copy: a mapped file could change after the check for UTF-8.
        let text = String::from_utf8(text.to_vec());
        let text = text.map_err(|_| damaged("the header is not text"))?;
        Dictionary { rest: &text, whole: &text }.array(start + len)
    }
}

/// Parser of the dictionary of a header: not of general Python, so it cannot recurse.
struct Dictionary<'a> {
    rest: &'a str,
    whole: &'a str,
}

impl Dictionary<'_> {
    fn array(mut self, data: usize) -> Result<Array> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.token("{")?;
        while !self.take("}") {
            let key = self.string()?;
            self.token(":")?;
            match key.as_str() {
                "descr" if self.rest.starts_with('[') => {
                    return Err(damaged(
                        "a structured array is not a matrix; save one of its fields instead",
                    ));
                }
                "descr" => descr = Some(self.string()?),
                "fortran_order" => {
                    fortran = Some(self.take("True"));
                    if fortran == Some(false) {
                        self.token("False")?;
                    }
                }
                "shape" => shape = Some(self.shape()?),
                _ => return Err(self.wrong("descr, fortran_order or shape")),
            }
            if !self.take(",") && !self.rest.starts_with('}') {
                return Err(self.wrong("a comma"));
            }
            self.skip_spaces();
        }
        if !self.rest.is_empty() {
            return Err(self.wrong("the end of the header"));
        }
        let missing = |key| damaged(format!("the header has no {key}"));
        let descr = descr.ok_or_else(|| missing("descr"))?;
        let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
        let shape = shape.ok_or_else(|| missing("shape"))?;
        let (kind, size, big_endian) = element_type(&descr)?;
        let len = shape.iter().try_fold(1u64, |len, n| len.checked_mul(*n));
        let len = len.filter(|len| len.checked_mul(size.max(1) as u64).is_some());
        let len = len.ok_or_else(|| damaged(format!("shape {shape:?} is beyond any file")))?;
        Ok(Array { descr, kind, size, big_endian, fortran, shape, len, data })
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        self.token("(")?;
        let mut shape = Vec::new();
        while !self.take(")") {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = self.rest.split_at(digits);
            let number = number.parse().map_err(|_| self.wrong("a dimension"))?;
            self.rest = rest;
            self.skip_spaces();
            shape.push(number);
            if !self.take(",") && !self.rest.starts_with(')') {
                return Err(self.wrong("a comma"));
            }
        }
        Ok(shape)
    }

    fn string(&mut self) -> Result<String> {
        let quote = if self.rest.starts_with('"') { '"' } else { '\'' };
        let inside = self.rest.strip_prefix(quote).ok_or_else(|| self.wrong("a string"))?;
        let (text, rest) = inside.split_once(quote).ok_or_else(|| self.wrong("a closed string"))?;
        let text = text.to_string();
        self.rest = rest;
        self.skip_spaces();
        Ok(text)
    }

    fn token(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.wrong(token)) }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                self.skip_spaces();
                true
            }
            None => false,
        }
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn wrong(&self, expected: &str) -> gustav_core::Error {
        let at = self.whole.len() - self.rest.len();
        let found: String = self.rest.chars().take(16).collect();
        damaged(format!("header byte {at}: expected {expected}, found {found:?}"))
    }
}

fn element_type(descr: &str) -> Result<(Kind, usize, bool)> {
    let strange = || damaged(format!("element type {descr:?} is not NumPy's"));
    let (order, rest) = match descr.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), rest @ ..] => (*order, rest),
        rest => (b'=', rest),
    };
    let [kind, size @ ..] = rest else { return Err(strange()) };
    if *kind == b'O' {
        return Err(damaged(
            "the array holds pickled Python objects, which are not read as they can run code; \
             save numbers: numpy.save(..., array.astype(float), allow_pickle=False)",
        ));
    }
    let size = std::str::from_utf8(size).ok().and_then(|s| s.parse::<usize>().ok());
    let size = size.filter(|s| *s < 1 << 20).ok_or_else(strange)?;
    let (kind, size) = match kind {
        b'f' => (Kind::Float, size),
        b'i' => (Kind::Signed, size),
        b'u' => (Kind::Unsigned, size),
        b'b' => (Kind::Bool, size),
        b'S' => (Kind::Text, size),
        b'U' => (Kind::Text, 4 * size),
        b'c' => {
            return Err(damaged(
                "complex arrays are not supported; gustav multiplies real numbers: save the real \
                 and the imaginary part to files of their own",
            ));
        }
        _ => (Kind::Other, size),
    };
    Ok((kind, size, order == b'>'))
}
