//! NVRTC, NVIDIA's run-time compiler.

mod library;
mod search;

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char};

use gustav_core::{Error, Result};

use super::{Compiler, Request};
use library::{Functions, RawProgram, Status, functions};
pub use search::search_in;

/// NVRTC 12 or newer, as found on this machine.
///
/// The folder or file that `GUSTAV_NVRTC` names is used if the variable is set. Otherwise the first
/// library that can be loaded is used:
///
/// 1. by name, on the library path and among what the process has loaded;
/// 2. in the folders of [`search_in`](super::search_in);
/// 3. in the CUDA toolkits `$CUDA_HOME`, `$CUDA_PATH` and `/usr/local/cuda`;
/// 4. in the Python environments `$VIRTUAL_ENV` and `$CONDA_PREFIX`, and in those that contain the
///    program and the file with this code, as installed by `pip install nvidia-cuda-nvrtc` or by
///    Conda.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nvrtc;

impl Nvrtc {
    /// The log of ptxas about the registers and spills of a kernel.
    #[cfg(test)]
    pub(crate) fn resources(&self, request: &Request, target: &str) -> Result<String> {
        let mut options = request.options(target);
        // Code from the driver's own cache has no log.
        options.extend(["--ptxas-options=-v".into(), "--no-cache".into()]);
        Ok(compile(request, target, options)?.log())
    }
}

impl Compiler for Nvrtc {
    fn version(&self) -> Result<String> {
        let nvrtc = functions()?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two integers.
        let status = unsafe { (nvrtc.version)(&mut major, &mut minor) };
        check(nvrtc, status, "asking NVRTC for its version")?;
        Ok(format!("NVRTC {major}.{minor}"))
    }

    fn compile(&self, request: &Request, target: &str) -> Result<Vec<u8>> {
        let target = supported(target)?;
        let program = compile(request, &target, request.options(&target))?;
        if target.starts_with(VIRTUAL) { program.ptx() } else { program.cubin() }
    }
}

// Prefix of the names of virtual architectures.
const VIRTUAL: &str = "compute_";

/// `target`, or if NVRTC does not support it, the newest older virtual architecture, whose PTX the
/// driver compiles.
fn supported(target: &str) -> Result<Cow<'_, str>> {
    let Some(Ok(requested)) = target.strip_prefix("sm_").map(str::parse::<i32>) else {
        return Ok(target.into());
    };
    let nvrtc = functions()?;
    let mut count = 0;
    // SAFETY: writes one integer.
    let status = unsafe { (nvrtc.num_supported_archs)(&mut count) };
    check(nvrtc, status, "asking NVRTC for its architectures")?;
    let mut all = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: the array has `count` integers.
    let status = unsafe { (nvrtc.supported_archs)(all.as_mut_ptr()) };
    check(nvrtc, status, "asking NVRTC for its architectures")?;
    Ok(match all.into_iter().filter(|supported| *supported <= requested).max() {
        Some(newest) if newest < requested => format!("{VIRTUAL}{newest}").into(),
        _ => target.into(),
    })
}

fn compile(request: &Request, target: &str, options: Vec<String>) -> Result<Program> {
    let program = Program::new(request)?;
    let options = c_strings(options)?;
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let compile = program.nvrtc.compile_program;
    // SAFETY: the options outlive the call.
    let status = unsafe { compile(program.raw, pointers.len() as i32, pointers.as_ptr()) };
    if status != Status::SUCCESS {
        let reason = format!("{request} for {target}: {}", program.log());
        return Err(Error::Device { action: "compiling a kernel", reason });
    }
    Ok(program)
}

struct Program {
    nvrtc: &'static Functions,
    raw: RawProgram,
}

impl Program {
    fn new(request: &Request) -> Result<Self> {
        let nvrtc = functions()?;
        let texts = c_strings([request.source, request.name])?;
        let headers = c_strings(request.headers().map(|(_, text)| text))?;
        let names = c_strings(request.headers().map(|(name, _)| name))?;
        let pointers = |strings: &[CString]| -> Vec<*const c_char> {
            strings.iter().map(|s| s.as_ptr()).collect()
        };
        let (header_texts, header_names) = (pointers(&headers), pointers(&names));
        let mut raw = std::ptr::null_mut();
        // SAFETY: all strings end in a zero and outlive the call, which copies them.
        let status = unsafe {
            (nvrtc.create_program)(
                &mut raw,
                texts[0].as_ptr(),
                texts[1].as_ptr(),
                headers.len() as i32,
                header_texts.as_ptr(),
                header_names.as_ptr(),
            )
        };
        check(nvrtc, status, "preparing a kernel for NVRTC")?;
        Ok(Program { nvrtc, raw })
    }

    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: writes one integer.
        if unsafe { (self.nvrtc.program_log_size)(self.raw, &mut size) } != Status::SUCCESS {
            return String::new();
        }
        let mut log = vec![0u8; size];
        // SAFETY: the log has the size just queried.
        unsafe { (self.nvrtc.program_log)(self.raw, log.as_mut_ptr().cast()) };
        String::from_utf8_lossy(&log).trim_end_matches('\0').trim().into()
    }

    /// The PTX, zero-terminated.
    fn ptx(&self) -> Result<Vec<u8>> {
        self.output(self.nvrtc.ptx_size, self.nvrtc.ptx, "reading PTX")
    }

    fn cubin(&self) -> Result<Vec<u8>> {
        self.output(self.nvrtc.cubin_size, self.nvrtc.cubin, "reading a cubin")
    }

    fn output(
        &self,
        size: unsafe extern "C" fn(RawProgram, *mut usize) -> Status,
        copy: unsafe extern "C" fn(RawProgram, *mut c_char) -> Status,
        action: &'static str,
    ) -> Result<Vec<u8>> {
        let mut len = 0;
        // SAFETY: writes one integer.
        check(self.nvrtc, unsafe { size(self.raw, &mut len) }, action)?;
        let mut bytes = vec![0u8; len];
        // SAFETY: the buffer has the size that was read.
        check(self.nvrtc, unsafe { copy(self.raw, bytes.as_mut_ptr().cast()) }, action)?;
        Ok(bytes)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.nvrtc.destroy_program)(&mut self.raw) };
    }
}

fn c_strings<S: Into<Vec<u8>>>(texts: impl IntoIterator<Item = S>) -> Result<Vec<CString>> {
    let strings: std::result::Result<_, _> = texts.into_iter().map(CString::new).collect();
    strings.map_err(|e| Error::Device {
        action: "preparing a kernel for NVRTC",
        reason: e.to_string(),
    })
}

fn check(nvrtc: &Functions, status: Status, action: &'static str) -> Result<()> {
    if status == Status::SUCCESS {
        return Ok(());
    }
    // SAFETY: NVRTC returns a constant string for every status.
    let reason = unsafe { CStr::from_ptr((nvrtc.error_string)(status)) };
    Err(Error::Device { action, reason: reason.to_string_lossy().into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::probe;

    /// For a device that NVRTC does not support yet, the driver compiles PTX of an older one.
    #[test]
    #[ignore = "needs NVRTC"]
    fn a_device_that_the_compiler_does_not_support_gets_ptx() {
        let ptx = |target| {
            let text = Nvrtc.compile(&probe::request(), target).expect("PTX");
            assert_eq!(text.last(), Some(&0), "{target}");
            String::from_utf8(text).expect("text")
        };
        assert!(ptx("compute_80").contains(".target sm_80"));
        assert!(ptx("sm_91").contains(".target sm_90"));
        let newest = ptx("sm_9999");
        assert!(newest.contains(".target sm_") && !newest.contains("sm_9999"));
        let old = Nvrtc.compile(&probe::request(), "sm_20").expect_err("too old").to_string();
        assert!(old.contains("memory/read.cu") && old.contains("sm_20"), "{old}");
    }
}
