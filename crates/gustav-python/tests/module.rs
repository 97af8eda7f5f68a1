//! What cargo builds is a module that Python can import; its own tests are `python/tests`.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

#[test]
fn the_library_has_the_entry_that_python_looks_for() {
    let this = std::env::current_exe().expect("the path of this program");
    let library = this.with_file_name(format!("{DLL_PREFIX}gustav_python{DLL_SUFFIX}"));
    let bytes = std::fs::read(&library).expect("the library beside this program");
    let entry = b"PyInit__gustav";
    assert!(bytes.windows(entry.len()).any(|name| name == entry), "{}", library.display());
}
