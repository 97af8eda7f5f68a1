//! `heavy-light`: heavy row segments share rows of B through shared memory, the remaining nonzeros
//! are light, as Hong et al. (2018) describe it. See `kernels/papers/spmm/heavy_light.cu`.

use gustav_core::buffer::try_vec;
use gustav_core::{DType, Problem, Result};
use gustav_plan::Algorithm;

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::matrix::gather::Slots;
use crate::papers;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::{check_config, unsupported};
use crate::schedule::pattern::Pattern;

const WARP: u32 = 32;
// Shared memory that a CTA has on all devices.
const SHARED_BYTES: u32 = 48 << 10;

/// The threshold of heavy segments, and the shape of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns of A in a panel: rows of B in shared memory.
    pub panel: u32,
    /// Nonzeros of a row in one panel from which they are heavy.
    pub heavy: u32,
    /// Most heavy segments of a CTA.
    pub segments: u32,
    /// Warps of a CTA.
    pub warps: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { panel: 128, heavy: 8, segments: 64, warps: 4 }
    }
}

/// Supports what the paper defines; not deterministic, because it adds atomically.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::HeavyLight, papers::ROW_MAJOR)?;
    if problem.deterministic {
        let reason = "heavy segments of a row add up in no promised order";
        return Err(unsupported(problem, "heavy-light on CUDA", reason, "segmented"));
    }
    Ok(())
}

pub(crate) const ANY_LAYOUT: bool = false;

/// Panels of 128 columns.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "named by the caller".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    [4, 8, 16].map(|heavy| Config { heavy, ..Config::default() }).into()
}

/// The source with its parameters.
pub(crate) fn request(dtype: DType, config: Config) -> Request {
    request!("papers/spmm/heavy_light.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("PANEL", config.panel)
        .with("WARPS", config.warps)
}

/// The entries of a matrix: light ones first, then heavy ones by panel.
#[derive(Debug, Default, PartialEq)]
struct Parts {
    columns: Vec<u32>,
    source: Vec<u32>,
    /// Row and first entry of each light segment, and one more for the end.
    light: Vec<[u32; 2]>,
    heavy: Vec<[u32; 2]>,
    /// Panel, first and last heavy segment of each CTA.
    groups: Vec<[u32; 3]>,
}

impl Parts {
    fn new(offsets: &[u64], indices: &[u32], config: Config) -> Result<Self> {
        let nnz = indices.len();
        let mut parts = Parts {
            columns: try_vec(nnz, "columns of light and heavy rows")?,
            source: try_vec(nnz, "sources of light and heavy rows")?,
            ..Parts::default()
        };
        // Panel, row, first and last entry of each heavy segment.
        let mut heavy: Vec<[u32; 4]> = Vec::new();
        for (row, range) in offsets.windows(2).enumerate() {
            let mut first = range[0] as usize;
            let begin = parts.columns.len();
            while first < range[1] as usize {
                let panel = indices[first] / config.panel;
                let same = indices[first..range[1] as usize].iter();
                let last = first + same.take_while(|c| **c / config.panel == panel).count();
                if last - first >= config.heavy as usize {
                    heavy.push([panel, row as u32, first as u32, last as u32]);
                } else {
                    parts.take(indices, first..last);
                }
                first = last;
            }
            if parts.columns.len() > begin {
                parts.light.push([row as u32, begin as u32]);
            }
        }
        parts.light.push([0, parts.columns.len() as u32]);
        heavy.sort_by_key(|segment| segment[0]);
        for [panel, row, first, last] in heavy {
            let next = parts.heavy.len() as u32;
            match parts.groups.last_mut() {
                Some(g) if g[0] == panel && next - g[1] < config.segments => g[2] = next + 1,
                _ => parts.groups.push([panel, next, next + 1]),
            }
            parts.heavy.push([row, parts.columns.len() as u32]);
            parts.take(indices, first as usize..last as usize);
        }
        parts.heavy.push([0, parts.columns.len() as u32]);
        Ok(parts)
    }

    fn take(&mut self, indices: &[u32], entries: std::ops::Range<usize>) {
        self.columns.extend(&indices[entries.clone()]);
        self.source.extend(entries.map(|k| k as u32));
    }
}

/// The compiled kernels and the pattern in its parts.
pub(crate) struct Prepared {
    config: Config,
    kernels: [Kernel<Arguments>; 3],
    columns: DeviceBuffer<u32>,
    slots: Slots,
    light: DeviceBuffer<[u32; 2]>,
    heavy: DeviceBuffer<[u32; 2]>,
    groups: DeviceBuffer<[u32; 3]>,
}

parameter_block! {
    struct Arguments {
        indices: *const u32,
        values: *const Value,
        /// With one more element at the end.
        light: *const Run,
        /// With one more element at the end.
        heavy: *const Run,
        groups: *const Group,
        b: *const Value,
        c: *mut Value,
        rows: u64,
        inner: u64,
        light_rows: u64,
        columns: u64,
        ldb: u64,
        ldc: u64,
        alpha: u64,
        beta: u64,
    }
}

impl Prepared {
    /// Divides the pattern on the host.
    pub(crate) fn new(p: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        check(config, problem.dtype)?;
        let device = p.device();
        let module = device.module(&request(problem.dtype, config))?;
        // SAFETY: the pattern's indices are `nnz` numbers of 32 bits, see `supports`, and live
        // while a plan is made.
        let indices = unsafe { DeviceBuffer::<u32>::borrowed(device, p.indices, p.nnz) };
        let parts = Parts::new(p.host_offsets()?, &indices.to_host()?, config)?;
        let source = DeviceBuffer::from_slice(device, &parts.source, "sources of parted rows")?;
        Ok(Prepared {
            config,
            kernels: [
                module.kernel(c"heavy_light_scale")?,
                module.kernel(c"heavy_light_light")?,
                module.kernel(c"heavy_light_heavy")?,
            ],
            columns: DeviceBuffer::from_slice(device, &parts.columns, "columns of parted rows")?,
            slots: Slots::new(device, problem.dtype, source)?,
            light: DeviceBuffer::from_slice(device, &parts.light, "light rows")?,
            heavy: DeviceBuffer::from_slice(device, &parts.heavy, "heavy segments")?,
            groups: DeviceBuffer::from_slice(device, &parts.groups, "groups of heavy segments")?,
        })
    }
}

fn check(config: Config, dtype: DType) -> Result<()> {
    let fits = (1..=32).contains(&config.warps)
        && config.segments > 0
        && config.heavy > 0
        && config.panel > 0
        && config.panel.saturating_mul(WARP * dtype.bytes() as u32) <= SHARED_BYTES;
    let expected = "1 to 32 warps, and a panel of 32 columns of B within 48 KiB";
    check_config("config of heavy-light", &config, fits, expected)
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let lists = self.light.bytes() + self.heavy.bytes() + self.groups.bytes();
        self.columns.bytes() + self.slots.bytes() + lists
    }

    fn converts(&self) -> bool {
        true
    }

    unsafe fn convert(&mut self, stream: &Stream, o: &Operands) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.slots.refresh(stream, o.values) }
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.columns.used_on(stream);
        self.light.used_on(stream);
        self.heavy.used_on(stream);
        self.groups.used_on(stream);
        let arguments = Arguments {
            indices: self.columns.address(),
            values: self.slots.values(),
            light: self.light.address(),
            heavy: self.heavy.address(),
            groups: self.groups.address(),
            b: o.b,
            c: o.c,
            rows: o.rows as u64,
            inner: o.inner as u64,
            light_rows: self.light.len() as u64 - 1,
            columns: o.columns as u64,
            ldb: o.ldb as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let warps = u64::from(self.config.warps);
        let (block, strips) = (self.config.warps * WARP, arguments.columns.div_ceil(32));
        let [scale, light, heavy] = &self.kernels;
        // SAFETY: the parts are those of the
        // pattern, and the operands are the caller's promise.
        unsafe {
            scale.launch(stream, (arguments.rows.div_ceil(warps), 1), block, &arguments)?;
            light.launch(
                stream,
                (arguments.light_rows.div_ceil(warps), strips),
                block,
                &arguments,
            )?;
            heavy.launch(stream, (self.groups.len() as u64, strips), block, &arguments)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_light_or_heavy_and_keeps_its_row() {
        // Rows: heavy in panel 0 and light in panel 1; empty; unsorted; heavy twice.
        let indices = [0, 1, 2, 3, 5, 6, 0, 5, 4, 5, 6, 7, 0, 1, 2, 3];
        let offsets = [0, 5, 5, 8, 16];
        let config = Config { panel: 4, heavy: 3, segments: 1, warps: 1 };
        let parts = Parts::new(&offsets, &indices, config).expect("parts");
        let mut seen = vec![0; indices.len()];
        for lists in [&parts.light, &parts.heavy] {
            for pair in lists.windows(2) {
                for k in pair[0][1]..pair[1][1] {
                    let source = parts.source[k as usize] as usize;
                    seen[source] += 1;
                    assert_eq!(parts.columns[k as usize], indices[source]);
                    let row = pair[0][0] as usize;
                    assert!((offsets[row]..offsets[row + 1]).contains(&(source as u64)));
                }
            }
        }
        assert_eq!(seen, vec![1; indices.len()]);
        assert_eq!(parts.groups, [[0, 0, 1], [0, 1, 2], [1, 2, 3]]);
        assert_eq!(parts.light.len(), 3, "two rows and the end");
    }
}
