//! The header is that of the source.

use std::path::Path;

/// Compares `include/gustav.h` with what cbindgen makes of the crate; with the variable
/// `GUSTAV_UPDATE_SNAPSHOT` set, it is written first.
#[test]
fn the_header_is_made_of_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut made = Vec::new();
    cbindgen::generate(folder).expect("the header of this crate").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let path = folder.join("include/gustav.h");
    if std::env::var_os("GUSTAV_UPDATE_SNAPSHOT").is_some() {
        std::fs::write(&path, &made).expect("a folder that can be written");
    }
    let found = std::fs::read_to_string(&path).expect("the header");
    assert!(
        found == made,
        "{} is old: run this test with GUSTAV_UPDATE_SNAPSHOT=1",
        path.display()
    );
}
