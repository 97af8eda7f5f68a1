//! Real matrices, from the corpus next to the checkout.

use std::path::Path;

use crate::support::Folder;

#[test]
#[ignore = "needs the corpus ../shared/corpus"]
fn small_real_matrices_verify() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folder = Folder::new();
    let mut ran = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let size = path.metadata().expect("a size").len();
        // Large ones are left to bench/verify_corpus.sh with an optimised build.
        if path.extension().is_none_or(|e| e != "zst") || size > 60_000 {
            continue;
        }
        let file = path.display();
        for verb in ["spmm --columns 3", "spmv"] {
            let (verb, options) = verb.split_once(' ').unwrap_or((verb, ""));
            let line = format!("{verb} {file} {options} --repeat 1 --verify --json");
            assert_eq!(folder.json(&line)["verified"], true, "{line}");
        }
        ran += 1;
    }
    assert!(ran > 3, "{ran} matrices");
}
