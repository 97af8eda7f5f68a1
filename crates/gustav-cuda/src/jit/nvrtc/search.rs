//! The folders in which NVRTC is searched.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// An environment variable with a folder that has NVRTC, or with the library file; if set, nothing
/// else is searched.
pub const VARIABLE: &str = "GUSTAV_NVRTC";

/// Names of the library, newest first.
#[cfg(not(windows))]
pub const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
/// Names of the library, newest first.
#[cfg(windows)]
pub const NAMES: [&str; 2] = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];

/// Prefix of the names of the libraries with NVRTC's built-in functions.
const BUILTINS: &str = if cfg!(windows) { "nvrtc-builtins64_" } else { "libnvrtc-builtins.so" };

/// Library folders of a toolkit or a package.
const LIBRARIES: [&str; 4] = ["lib64", "lib", "bin/x86_64", "bin"];

/// Folders below `nvidia` in the wheels for CUDA 13 and 12.
const WHEELS: [&str; 2] = ["cu13", "cuda_nvrtc"];

/// Folders that the program named, see [`search_in`].
static NAMED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Looks for NVRTC in these folders, too, before toolkits and environments, where it is not loaded
/// yet.
pub fn search_in(folders: Vec<PathBuf>) {
    *NAMED.lock().unwrap_or_else(PoisonError::into_inner) = folders;
}

/// The folders of [`search_in`].
pub fn named() -> Vec<PathBuf> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The library in a folder.
pub fn in_folder(folder: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| folder.join(name)).find(|file| file.is_file())
}

/// NVRTC's built-in functions in a folder, of any version.
pub fn builtins(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |file: &PathBuf| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BUILTINS))
    };
    found.map(|entry| entry.path()).filter(is_one).collect()
}

/// Folders to search, in order: CUDA toolkits, then Python environments: the active ones, the one
/// that contains this code, and the one that contains the program. `variable` reads environment
/// variables.
pub fn folders(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = |name| variable(name).map(PathBuf::from);
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(named);
    let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]);
    let mut folders: Vec<_> = toolkits.flat_map(|root| libraries(&root)).collect();
    let program = std::env::current_exe().ok();
    let prefix = program.as_deref().and_then(|p| Some(p.parent()?.parent()?.to_path_buf()));
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(named).chain(prefix);
    for prefix in prefixes {
        // Conda installs the library in the environment's own library folder.
        folders.extend(libraries(&prefix));
        let pythons = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        for python in pythons.map(|entry| entry.path()).chain([prefix.join("Lib")]) {
            folders.extend(wheels(&python.join("site-packages")));
        }
    }
    let code = code();
    let ancestors = code.iter().flat_map(|file| file.ancestors());
    folders.extend(ancestors.filter(|a| a.ends_with("site-packages")).flat_map(wheels));
    folders
}

fn libraries(root: &Path) -> Vec<PathBuf> {
    LIBRARIES.iter().map(|name| root.join(name)).collect()
}

fn wheels(site_packages: &Path) -> Vec<PathBuf> {
    WHEELS.iter().flat_map(|name| libraries(&site_packages.join("nvidia").join(name))).collect()
}

/// The file that this code was loaded from: the program, or a Python extension module.
#[cfg(unix)]
fn code() -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: zeros are a value of this struct of pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be queried; the result is written to the struct.
    let status = unsafe { libc::dladdr(code as *const () as *const _, &mut found) };
    if status == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a string of the loader, which lives as long as this code is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

#[cfg(not(unix))]
fn code() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variable: &str, root: &Path, library: &str) -> Option<PathBuf> {
        let file = root.join(library);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, "").expect("a file");
        let value = |name: &str| (name == variable).then(|| root.into());
        let mut files = folders(&value).into_iter().filter_map(|folder| in_folder(&folder));
        files.find(|file| file.starts_with(root))
    }

    #[test]
    fn the_library_is_found_where_toolkits_and_wheels_put_it() {
        for (variable, folder) in [
            ("CUDA_HOME", "lib64"),
            ("CUDA_PATH", "bin"),
            ("CONDA_PREFIX", "lib"),
            ("VIRTUAL_ENV", "lib/python3.11/site-packages/nvidia/cu13/lib"),
            ("VIRTUAL_ENV", "lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib"),
            ("VIRTUAL_ENV", "Lib/site-packages/nvidia/cu13/bin/x86_64"),
        ] {
            for name in NAMES {
                let root = tempfile::tempdir().expect("a folder");
                let library = format!("{folder}/{name}");
                let expected = root.path().join(&library);
                assert_eq!(found(variable, root.path(), &library), Some(expected), "{library}");
            }
        }
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(found("VIRTUAL_ENV", root.path(), "lib/libnvrtc-builtins.so.13"), None);
    }

    #[test]
    fn the_newest_wheel_comes_first() {
        let root = tempfile::tempdir().expect("a folder");
        let packages = root.path().join("lib/python3.12/site-packages/nvidia");
        let file = |wheel: &str, name: &str| packages.join(wheel).join("lib").join(name);
        for (wheel, name) in [("cu13", NAMES[0]), ("cuda_nvrtc", NAMES[1])] {
            let file = file(wheel, name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
        let other = "lib/python3.12/site-packages/numpy/version.py";
        assert_eq!(found("VIRTUAL_ENV", root.path(), other), Some(file("cu13", NAMES[0])));
    }
}
