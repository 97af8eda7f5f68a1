//! Requests to the compiler.

use std::fmt::Display;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::parameter_block::{Header, ParameterBlock};

/// A kernel file with the values of its template parameters.
///
/// A parameter `NAME` is the macro `GUSTAV_NAME` in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// File below `kernels/`, for messages.
    pub name: &'static str,
    /// The file's text.
    pub source: &'static str,
    /// Template parameters in order.
    pub parameters: Vec<(&'static str, String)>,
    /// Headers of the parameter blocks that it includes.
    pub(super) blocks: Vec<Header>,
}

impl Request {
    /// A kernel file without parameters.
    pub fn new(name: &'static str, source: &'static str) -> Self {
        Request { name, source, parameters: Vec::new(), blocks: Vec::new() }
    }

    /// Sets a template parameter.
    #[must_use]
    pub fn with(mut self, parameter: &'static str, value: impl Display) -> Self {
        self.parameters.push((parameter, value.to_string()));
        self
    }

    /// Supplies the header of a parameter block, and of those in it.
    #[must_use]
    pub(crate) fn with_block<B: ParameterBlock>(mut self) -> Self {
        B::collect(&mut self.blocks);
        self
    }

    /// The names and the texts of the headers that the source may include.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        HEADERS.iter().copied().chain(self.blocks())
    }

    fn blocks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.blocks.iter().map(|block| (block.name, block.text.as_str()))
    }

    /// The compiler's options for `target`.
    pub fn options(&self, target: &str) -> Vec<String> {
        let mut options = vec![format!("-arch={target}"), "-std=c++17".into()];
        options
            .extend(self.parameters.iter().map(|(name, value)| format!("-DGUSTAV_{name}={value}")));
        options
    }

    /// The identity of this request's cubin: a hash of the compiler's version, the
    /// options, the source and the headers.
    pub fn key(&self, target: &str, compiler: &str) -> Key {
        static HEADERS_HASHED: OnceLock<Sha256> = OnceLock::new();
        let headers =
            HEADERS_HASHED.get_or_init(|| HEADERS.iter().copied().fold(Sha256::new(), header));
        let fields = [compiler, self.name, self.source].into_iter();
        let hash = fields.fold(headers.clone(), field);
        // Their number is hashed too, so that options and headers cannot be confused.
        let hash = field(hash, &self.blocks.len().to_string());
        let hash = self.blocks().fold(hash, header);
        Key(self.options(target).iter().fold(hash, |h, o| field(h, o)).finalize().into())
    }
}

/// The identity of a compiled kernel, a SHA-256 hash. Displayed in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Adds a text with its length, so that the boundary between two texts is part of the hash.
fn field(hash: Sha256, text: &str) -> Sha256 {
    hash.chain_update((text.len() as u64).to_le_bytes()).chain_update(text)
}

/// Adds a header.
fn header(hash: Sha256, (name, text): (&str, &str)) -> Sha256 {
    field(field(hash, name), text)
}

/// The file and its parameters, for messages.
impl Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        self.parameters.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// A request for the kernel file with this path below `kernels/`, without parameters.
macro_rules! request {
    ($path:literal) => {
        $crate::jit::Request::new(
            $path,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $path)),
        )
    };
}

macro_rules! headers {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../kernels/", $path)))),*]
    };
}

/// Headers that kernel files include, by path below `kernels/`.
const HEADERS: &[(&str, &str)] = headers![
    "attention/rows.cuh",
    "common/absent.cuh",
    "common/epilogue.cuh",
    "common/search.cuh",
    "common/semiring.cuh",
    "common/exponential.cuh",
    "common/types.cuh",
    "common/warp.cuh",
    "csr/descents.cuh",
    "ptx/barrier.cuh",
    "ptx/bulk.cuh",
    "ptx/convert.cuh",
    "ptx/dependents.cuh",
    "ptx/memory.cuh",
    "ptx/mma.cuh",
    "ptx/warp.cuh",
    "schedule/arrival.cuh",
    "schedule/even_shares.cuh",
    "schedule/fix_up.cuh",
    "schedule/lengths.cuh",
    "schedule/look_back.cuh",
    "schedule/row_blocks.cuh",
    "schedule/segments.cuh",
    "schedule/partitions.cuh",
    "spgemm/arguments.cuh",
    "spgemm/combine.cuh",
    "spgemm/counting.cuh",
    "spgemm/masked/arguments.cuh",
    "spgemm/masked/keep.cuh",
    "spgemm/masked/lists.cuh",
    "spgemm/masked/merge.cuh",
    "spgemm/masked/positions.cuh",
    "spgemm/masked/search.cuh",
    "spgemm/masked/tables.cuh",
    "spgemm/masked/tasks.cuh",
    "spgemm/merge.cuh",
    "spgemm/operands.cuh",
    "spgemm/packed.cuh",
    "spgemm/packing.cuh",
    "spgemm/split_rows.cuh",
    "spgemm/products.cuh",
    "spgemm/table.cuh",
    "papers/spmm/flattened.cuh",
    "papers/spmm/column.cuh",
    "papers/spmm/padded.cuh",
    "sddmm/nonzeros.cuh",
    "sddmm/sums.cuh",
    "spmm/group.cuh",
    "spmm/segments_at_once.cuh",
    "spmm/segments_per_group.cuh",
    "spmm/sums.cuh",
    "papers/spmm/stationary.cuh",
    "papers/spmv/flattened.cuh",
    "tile/pack.cuh",
    "tile/slices.cuh",
    "tile/span.cuh",
    "tile/totals.cuh",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels include no headers of the CUDA toolkit (such as that of f16), because these may be
    /// missing at run time.
    #[test]
    fn kernels_include_headers_of_their_own_only() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let mut folders = vec![folder];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder of kernels") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("a kernel");
                for line in text.lines().filter(|l| l.trim_start().starts_with("#include")) {
                    let name = line.split('"').nth(1).unwrap_or_default();
                    let exists =
                        HEADERS.iter().any(|(exists, _)| *exists == name) || declares(name);
                    assert!(exists, "{}: {line}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > HEADERS.len(), "{seen} includes were found");
        assert!(
            !declares("gustav_cuda::jit::request::Arguments"),
            "it declares no parameter block"
        );
    }

    parameter_block! {
        struct Block {
            count: u32,
        }
    }

    /// The header of a parameter block is part of the key, and not taken for an option.
    #[test]
    fn blocks_are_part_of_the_key() {
        let request = Request::new("a", "b");
        let mut with_block = request.clone().with_block::<Block>();
        let mut keys = vec![request.key("sm_90", "one"), with_block.key("sm_90", "one")];
        with_block.blocks[0].text.push(' ');
        keys.push(with_block.key("sm_90", "one"));
        with_block.blocks[0].name = "gustav_cuda::Other";
        keys.push(with_block.key("sm_90", "one"));
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{i}");
        }
    }

    /// Whether `block` is the path of a parameter block that a module of this crate declares.
    fn declares(block: &str) -> bool {
        let Some((module, name)) =
            block.strip_prefix("gustav_cuda::").and_then(|path| path.rsplit_once("::"))
        else {
            return false;
        };
        let file = format!("{}/src/{}", env!("CARGO_MANIFEST_DIR"), module.replace("::", "/"));
        let text = std::fs::read_to_string(format!("{file}.rs"))
            .or_else(|_| std::fs::read_to_string(format!("{file}/mod.rs")))
            .unwrap_or_default();
        text.split("parameter_block! {")
            .skip(1)
            .any(|rest| rest.contains(&format!("struct {name} {{")))
    }
}
