//! Sparse matrices as `scipy.sparse.save_npz` writes them: a zip archive of NumPy arrays, one
//! of which names the format.

use std::borrow::Cow;
use std::io::{self, Cursor, Write};

use gustav_core::{Buffer, CooView, Csc, Csr, CsrView, Error, Index, Result, Scalar, parallel};
use zip::read::ZipArchive;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::npy::{little_endian, write_array, write_header};
use super::npy_header::{Array, Kind};
use super::options::Storage;
use super::parts::{Section, Whole};
use super::source::{Stop, read_all};

fn damaged(reason: impl Into<String>) -> Error {
    Error::Format { path: None, format: "npz", reason: reason.into() }
}

/// An opened archive that holds a sparse matrix.
struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    storage: Storage,
    rows: usize,
    cols: usize,
}

// Enough for the header of any array; see `npy_header`.
const HEAD: u64 = 16 << 10;

impl<'a> Archive<'a> {
    fn open(file: &'a [u8]) -> Result<Self> {
        let zip = ZipArchive::new(Cursor::new(file)).map_err(|error| {
            damaged(format!("the zip archive is damaged or truncated ({error})"))
        })?;
        let (storage, rows, cols) = (Storage::Csr, 0, 0);
        let mut archive = Archive { zip, storage, rows, cols };
        if archive.zip.index_for_name("format.npy").is_none() {
            let mut names: Vec<_> = archive
                .zip
                .file_names()
                .take(8)
                .filter_map(|name| name.ok().map(|name| name.into_owned()))
                .collect();
            names.sort();
            return Err(damaged(format!(
                "no array named format, so this is no sparse matrix of SciPy (arrays: {}); write \
                 it with scipy.sparse.save_npz",
                names.join(", ")
            )));
        }
        archive.storage = archive.storage()?;
        let shape = archive.integers::<u64>("shape", u64::MAX)?;
        let [rows, cols] = shape[..] else {
            return Err(damaged(format!("a shape of {} dimensions is no matrix", shape.len())));
        };
        (archive.rows, archive.cols) = (rows as usize, cols as usize);
        Ok(archive)
    }

    /// The first `limit` bytes of an array's file.
    fn bytes(&mut self, name: &str, limit: u64) -> Result<Vec<u8>> {
        let wrong = |error: &dyn std::fmt::Display| damaged(format!("array {name}: {error}"));
        let mut entry = self.zip.by_name(&format!("{name}.npy")).map_err(|error| wrong(&error))?;
        let mut bytes = Vec::new();
        match read_all(&mut entry, &mut bytes, limit) {
            Ok(()) => Ok(bytes),
            Err(Stop::Io(error)) => Err(wrong(&error)),
            Err(Stop::Memory(error)) => Err(error),
        }
    }

    fn storage(&mut self) -> Result<Storage> {
        let file = self.bytes("format", HEAD)?;
        let array = named("format", Array::parse(&file))?;
        let text = &file[array.data.min(file.len())..];
        // Bytes or UTF-32; the names are ASCII, so zero bytes can be dropped.
        let name: Vec<u8> = text.iter().copied().filter(|b| *b != 0).collect();
        match &name[..] {
            _ if array.kind != Kind::Text => Err(damaged("the array named format holds no text")),
            b"csr" => Ok(Storage::Csr),
            b"csc" => Ok(Storage::Csc),
            b"coo" => Ok(Storage::Coo),
            _ => Err(damaged(format!(
                "sparse format \"{}\" is not supported; convert it first: \
                 scipy.sparse.save_npz(file, matrix.tocsr())",
                name[..name.len().min(16)].escape_ascii()
            ))),
        }
    }

    fn values<T: Scalar>(&mut self) -> Result<Buffer<T>> {
        let file = self.bytes("data", u64::MAX)?;
        let array = vector("data", &file)?;
        named("data", array.read(&file))
    }

    /// An array of indices below `bound`.
    fn integers<N: Index>(&mut self, name: &'static str, bound: u64) -> Result<Buffer<N>> {
        let file = self.bytes(name, u64::MAX)?;
        let array = vector(name, &file)?;
        if !matches!(array.kind, Kind::Signed | Kind::Unsigned) {
            return Err(damaged(format!(
                "array {name} holds elements of type {}, expected integers",
                array.descr
            )));
        }
        let wide = named(name, array.read::<i64>(&file))?;
        let largest = wide.iter().copied().max().unwrap_or(0);
        if let Some(position) = wide.iter().position(|n| *n < 0 || *n as u64 >= bound) {
            return Err(damaged(format!(
                "array {name}, element {position}: {} is out of range (must be at least 0 and \
                 below {bound})",
                wide[position]
            )));
        }
        N::try_from_usize(largest as usize, name)?;
        let mut narrow = Buffer::<N>::zeroed(wide.len(), name)?;
        parallel::each_mut(&mut narrow, 1 << 14, |k, n| *n = N::truncate(wide[k] as usize));
        Ok(narrow)
    }
}

fn named<R>(name: &str, result: Result<R>) -> Result<R> {
    result.map_err(|error| match error {
        Error::Format { reason, .. } => damaged(format!("array {name}: {reason}")),
        Error::Value { what, value, dtype } => {
            Error::Value { what: format!("array {name}, {what}"), value, dtype }
        }
        other => other,
    })
}

fn vector(name: &str, file: &[u8]) -> Result<Array> {
    let array = named(name, Array::parse(file))?;
    if array.shape.len() != 1 {
        return Err(damaged(format!(
            "array {name} has {} dimensions, expected one",
            array.shape.len()
        )));
    }
    Ok(array)
}

/// The matrix in an archive, as CSR; entries are unchanged, including unsorted and repeated ones.
pub(crate) fn read<T: Scalar, I: Index, O: Index>(file: &[u8]) -> Result<Csr<T, I, O>> {
    let mut archive = Archive::open(file)?;
    let (rows, cols) = (archive.rows, archive.cols);
    let any = u64::MAX;
    let read = match archive.storage {
        Storage::Csr => {
            let (offsets, indices) =
                (archive.integers("indptr", any)?, archive.integers("indices", any)?);
            Csr::new(rows, cols, offsets, indices, archive.values()?)
        }
        Storage::Csc => {
            let (offsets, indices) =
                (archive.integers("indptr", any)?, archive.integers("indices", any)?);
            Csc::new(rows, cols, offsets, indices, archive.values()?)
                .and_then(|csc| csc.view().to_csr())
        }
        Storage::Coo => {
            let i = archive.integers::<I>("row", rows as u64)?;
            let j = archive.integers::<I>("col", cols as u64)?;
            let values = archive.values::<T>()?;
            // The offsets need memory for every row: fails early if there is too little.
            Buffer::<O>::zeroed(rows.saturating_add(1), "row offsets")?;
            CooView::new(rows, cols, &i, &j, &values).and_then(Csr::from_coo)
        }
    };
    read.map_err(|error| match error {
        Error::Length { .. } | Error::Offsets { .. } | Error::Index { .. } => {
            damaged(format!("the arrays do not describe a matrix: {error}"))
        }
        other => other,
    })
}

/// The arrays of a CSR matrix that are stored uncompressed, and where.
pub(crate) struct Arrays {
    pub rows: usize,
    pub cols: usize,
    offsets: Stored,
    indices: Stored,
    values: Stored,
}

/// An array that is stored uncompressed.
struct Stored {
    name: &'static str,
    array: Array,
    /// The first byte of its elements in the file.
    first: usize,
}

impl Arrays {
    /// The arrays in `file`; `None` if it holds another format, or compresses one of them.
    pub fn open(file: &[u8]) -> Result<Option<Self>> {
        let mut archive = Archive::open(file)?;
        let (rows, cols) = (archive.rows, archive.cols);
        if archive.storage != Storage::Csr {
            return Ok(None);
        }
        let mut stored = |name| archive.stored(file, name);
        let (Some(offsets), Some(indices), Some(values)) =
            (stored("indptr")?, stored("indices")?, stored("data")?)
        else {
            return Ok(None);
        };
        let expected = [rows as u64 + 1, values.array.len];
        if [offsets.array.len, indices.array.len] != expected {
            return Err(damaged(format!(
                "{} row offsets and {} indices for {rows} rows and {} values",
                offsets.array.len, indices.array.len, values.array.len
            )));
        }
        for integers in [&offsets, &indices] {
            integers.check_integers()?;
        }
        Ok(Some(Arrays { rows, cols, offsets, indices, values }))
    }

    pub fn entries(&self) -> u64 {
        self.values.array.len
    }

    /// Rows `rows` of the matrix in `file`.
    pub fn read<T: Scalar, I: Index, O: Index>(
        &self,
        file: &[u8],
        rows: std::ops::Range<usize>,
    ) -> Result<Csr<T, I, O>> {
        let nrows = rows.len();
        let ends: Buffer<i64> = self.offsets.read(file, rows.start..rows.end + 1)?;
        let entries = self.values.array.len as i64;
        if !ends.is_sorted() || ends[0] < 0 || ends[nrows] > entries {
            return Err(damaged(format!(
                "the row offsets of rows {rows:?} do not increase to {entries}"
            )));
        }
        if rows.start == 0 && ends[0] != 0 || rows.end == self.rows && ends[nrows] != entries {
            return Err(damaged(format!("the row offsets are not from 0 to {entries}")));
        }
        let range = ends[0] as usize..ends[nrows] as usize;
        let wide: Buffer<i64> = self.indices.read(file, range.clone())?;
        if let Some(k) = wide.iter().position(|c| *c < 0 || *c as u64 >= self.cols as u64) {
            return Err(damaged(format!(
                "array indices, element {}: {} is out of range (must be at least 0 and below {})",
                range.start + k,
                wide[k],
                self.cols
            )));
        }
        I::try_from_usize(self.cols.saturating_sub(1), "column index")?;
        O::try_from_usize(range.len(), "row offset")?;
        let mut indices = Buffer::<I>::zeroed(wide.len(), "column indices")?;
        indices.iter_mut().zip(wide.iter()).for_each(|(to, c)| *to = I::truncate(*c as usize));
        let offsets: Vec<O> = ends.iter().map(|e| O::truncate((e - ends[0]) as usize)).collect();
        Csr::new(nrows, self.cols, offsets, indices, self.values.read::<T>(file, range)?)
    }
}

impl Stored {
    fn check_integers(&self) -> Result<()> {
        if matches!(self.array.kind, Kind::Signed | Kind::Unsigned) {
            return Ok(());
        }
        Err(damaged(format!(
            "array {} holds elements of type {}, expected integers",
            self.name, self.array.descr
        )))
    }

    /// Elements `range`.
    fn read<T: Scalar>(&self, file: &[u8], range: std::ops::Range<usize>) -> Result<Buffer<T>> {
        let size = self.array.size;
        let bytes = self.first + range.start * size..self.first + range.end * size;
        let part = Array { len: range.len() as u64, data: 0, ..self.array.clone() };
        let cut = || damaged(format!("array {}: the file is truncated", self.name));
        named(self.name, part.read(file.get(bytes).ok_or_else(cut)?))
    }
}

impl Archive<'_> {
    /// Where an array is, if it is not compressed.
    fn stored(&mut self, file: &[u8], name: &'static str) -> Result<Option<Stored>> {
        let wrong = |error: &dyn std::fmt::Display| damaged(format!("array {name}: {error}"));
        let entry = self.zip.by_name(&format!("{name}.npy")).map_err(|error| wrong(&error))?;
        let start = entry.data_start().and_then(|start| usize::try_from(start).ok());
        let size = usize::try_from(entry.size()).ok();
        let (Some(start), Some(size), zip::CompressionMethod::Stored) =
            (start, size, entry.compression())
        else {
            return Ok(None);
        };
        let bytes = start.checked_add(size).and_then(|end| file.get(start..end));
        let bytes = bytes.ok_or_else(|| wrong(&"the file is truncated"))?;
        let array = vector(name, bytes)?;
        if array.len as u128 * array.size as u128 != (size - array.data.min(size)) as u128 {
            return Err(wrong(&format!(
                "{} elements of {} bytes do not fit",
                array.len, array.size
            )));
        }
        Ok(Some(Stored { name, first: start + array.data, array }))
    }
}

/// Rows, columns, entries and the array of values.
pub(crate) fn header(file: &[u8]) -> Result<(u64, u64, Array)> {
    let mut archive = Archive::open(file)?;
    let head = archive.bytes("data", HEAD)?;
    let data = vector("data", &head)?;
    Ok((archive.rows as u64, archive.cols as u64, data))
}

/// Whether indices of a matrix take eight bytes. SciPy requires both index arrays to have the same
/// signed type.
pub(crate) fn is_wide(whole: Whole) -> bool {
    let narrow = i32::MAX as usize;
    [whole.rows, whole.columns, whole.entries].iter().any(|n| *n > narrow)
}

/// Appends `indices`, each with `base` added, as little-endian bytes.
pub(crate) fn append_indices<N: Index>(
    to: &mut Vec<u8>,
    indices: &[N],
    base: usize,
    wide: bool,
) -> io::Result<()> {
    let width = if wide { 8 } else { 4 };
    to.try_reserve_exact(indices.len() * width).map_err(|_| io::ErrorKind::OutOfMemory)?;
    for n in indices {
        to.extend(&((n.to_usize() + base) as u64).to_le_bytes()[..width]);
    }
    Ok(())
}

/// Appends `values` as little-endian bytes.
pub(crate) fn append_values<T: Scalar>(to: &mut Vec<u8>, values: &[T]) -> io::Result<()> {
    let bytes = little_endian(values);
    to.try_reserve_exact(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    to.extend_from_slice(&bytes);
    Ok(())
}

/// Writes a matrix section by section, uncompressed, so that parts can be read by themselves; see
/// [`write_sections`](super::parts::write_sections).
pub(crate) fn write_sections(
    to: &mut (impl Write + ?Sized),
    descr: &str,
    whole: Whole,
    mut write: impl FnMut(Section, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut zip = ZipWriter::new_stream(to);
    let index = if is_wide(whole) { "<i8" } else { "<i4" };
    let width = if is_wide(whole) { 8 } else { 4 };
    let mut array = |name: &str,
                     descr: &str,
                     shape: &[usize],
                     bytes: usize,
                     data: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>| {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(bytes >= 1 << 31);
        zip.start_file(format!("{name}.npy"), options)?;
        write_header(&mut zip, descr, false, shape)?;
        data(&mut zip)
    };
    let Whole { rows, columns, entries } = whole;
    array("indices", index, &[entries], entries * width, &mut |to| write(Section::Indices, to))?;
    array("indptr", index, &[rows + 1], (rows + 1) * width, &mut |to| {
        to.write_all(&[0; 8][..width])?;
        write(Section::Offsets, to)
    })?;
    array("format", "|S3", &[], 3, &mut |to| to.write_all(b"csr"))?;
    let shape = [rows as i64, columns as i64];
    array("shape", "<i8", &[2], 16, &mut |to| to.write_all(&little_endian(&shape)))?;
    array("data", descr, &[entries], entries * 8, &mut |to| write(Section::Values, to))?;
    zip.finish()?;
    Ok(())
}

/// Writes a matrix as `scipy.sparse.save_npz` does.
pub(crate) fn write<T: Scalar, I: Index, O: Index>(
    to: &mut (impl Write + ?Sized),
    descr: &str,
    matrix: CsrView<'_, T, I, O>,
    storage: Storage,
) -> io::Result<()> {
    let (rows, cols, nnz) = (matrix.nrows(), matrix.ncols(), matrix.nnz());
    // SciPy requires both index arrays to have the same signed type.
    let narrow = i32::MAX as usize;
    let wide = nnz > narrow || cols > narrow || rows > narrow;
    let mut zip = ZipWriter::new_stream(to);
    let mut array = |name: &str, descr: &str, shape: &[usize], data: &[u8]| {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .large_file(data.len() >= 1 << 31);
        zip.start_file(format!("{name}.npy"), options)?;
        write_array(&mut zip, descr, false, shape, data)
    };
    let index = if wide { "<i8" } else { "<i4" };
    match storage {
        // For CSC the caller passes the transpose.
        Storage::Csr | Storage::Csc => {
            array("indices", index, &[nnz], &index_bytes(matrix.indices(), wide)?)?;
            array("indptr", index, &[rows + 1], &index_bytes(matrix.offsets(), wide)?)?;
        }
        Storage::Coo => {
            array("row", index, &[nnz], &row_bytes(matrix.offsets(), nnz, wide)?)?;
            array("col", index, &[nnz], &index_bytes(matrix.indices(), wide)?)?;
        }
    }
    let shape = if storage == Storage::Csc { [cols, rows] } else { [rows, cols] };
    array("format", "|S3", &[], storage.name().as_bytes())?;
    array("shape", "<i8", &[2], &little_endian(&shape.map(|n| n as i64)))?;
    array("data", descr, &[nnz], &little_endian(&matrix.values()))?;
    zip.finish()?;
    Ok(())
}

/// The row of every entry, as [`index_bytes`].
fn row_bytes<O: Index>(offsets: &[O], nnz: usize, wide: bool) -> io::Result<Vec<u8>> {
    let width = if wide { 8 } else { 4 };
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(nnz * width).map_err(|_| io::ErrorKind::OutOfMemory)?;
    for (row, ends) in offsets.windows(2).enumerate() {
        let one = (row as u64).to_le_bytes();
        (ends[0].to_usize()..ends[1].to_usize()).for_each(|_| bytes.extend(&one[..width]));
    }
    Ok(bytes)
}

/// Indices as little-endian bytes, four or eight each.
fn index_bytes<N: Index>(indices: &[N], wide: bool) -> io::Result<Cow<'_, [u8]>> {
    let width = if wide { 8 } else { 4 };
    if N::TYPE.bytes() == width {
        return Ok(little_endian(indices));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(indices.len() * width).map_err(|_| io::ErrorKind::OutOfMemory)?;
    for n in indices {
        bytes.extend(&(n.to_usize() as u64).to_le_bytes()[..width]);
    }
    Ok(Cow::Owned(bytes))
}
