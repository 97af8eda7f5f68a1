//! The workspace keeps the shape that docs/architecture.md promises.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// What each crate may depend on. Arrows that are not here point back or sideways.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("gustav-core", &[]),
    ("gustav-io", &["gustav-core"]),
    ("gustav-testkit", &["gustav-core"]),
    ("gustav-plan", &["gustav-core"]),
    ("gustav-cpu", &["gustav-core", "gustav-plan"]),
    ("gustav-cuda", &["gustav-core", "gustav-plan"]),
    ("gustav", &["gustav-core", "gustav-io", "gustav-plan", "gustav-cpu", "gustav-cuda"]),
    ("gustav-report", &["gustav-core", "gustav-io", "gustav-plan"]),
    (
        "gustav-bench",
        &[
            "gustav",
            "gustav-core",
            "gustav-io",
            "gustav-plan",
            "gustav-cpu",
            "gustav-cuda",
            "gustav-report",
            "gustav-testkit",
        ],
    ),
    ("gustav-cli", &["gustav", "gustav-bench", "gustav-core", "gustav-report", "gustav-testkit"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn dependencies_go_one_way() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata");
    let allowed: BTreeMap<_, BTreeSet<_>> =
        MAY_SEE.iter().map(|(k, v)| (*k, v.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some(sees) = allowed.get(name) else {
            wrong.push(format!("{name} is not in the layout"));
            continue;
        };
        for d in package.dependencies.iter().filter(|d| d.name.starts_with("gustav")) {
            let test_support = d.kind == DependencyKind::Development && d.name == "gustav-testkit";
            if !test_support && !sees.contains(d.name.as_str()) {
                wrong.push(format!("{name} -> {}", d.name));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that point back: {wrong:#?}");
    assert!(metadata.packages.len() >= 10, "the workspace lost a crate");
}

/// Names in `text` between `prefix` and a double quote.
fn quoted<'a>(text: &'a str, prefix: &str) -> BTreeSet<&'a str> {
    text.split(prefix).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn every_algorithm_has_its_file_its_test_and_its_page() {
    let root = root();
    let catalog = std::fs::read_to_string(root.join("crates/gustav-plan/src/algorithm.rs"))
        .expect("the catalog");
    let mut missing = Vec::new();
    let mut seen = 0;
    for line in catalog.lines().map(str::trim) {
        // `Variant = "name", "source", [Operations];`
        let Some((_, rest)) = line.split_once(" = \"") else { continue };
        let Some((name, rest)) = rest.split_once('"') else { continue };
        let Some((_, operations)) = rest.rsplit_once('[') else { continue };
        seen += 1;
        let stem = name.replace('-', "_");
        if !root.join(format!("docs/algorithms/{name}.md")).exists() {
            missing.push(format!("docs/algorithms/{name}.md"));
        }
        for operation in operations.trim_end_matches("];").split(", ") {
            let op = operation.to_lowercase();
            let sources: Vec<_> = ["cpu", "cuda"]
                .iter()
                .flat_map(|b| {
                    let source = format!("crates/gustav-{b}/src");
                    let folder = format!("{source}/{op}");
                    let paper = format!("{source}/papers/{stem}.rs");
                    [format!("{folder}/{stem}.rs"), format!("{folder}/{stem}/mod.rs"), paper]
                })
                .collect();
            if !sources.iter().any(|s| root.join(s).exists()) {
                missing.push(sources.join(" or "));
            }
            let tests: Vec<_> = ["cpu", "cuda"]
                .iter()
                .flat_map(|b| {
                    let folder = format!("crates/gustav-{b}/tests/{op}");
                    [format!("{folder}/{stem}.rs"), format!("{folder}_{stem}.rs")]
                })
                .collect();
            if !tests.iter().any(|t| root.join(t).exists()) {
                missing.push(tests.join(" or "));
            }
        }
    }
    assert!(seen >= 10, "the catalog was not understood: {seen} algorithms");
    assert!(missing.is_empty(), "missing: {missing:#?}");
}

#[test]
fn every_page_describes_an_algorithm() {
    let root = root();
    let catalog = std::fs::read_to_string(root.join("crates/gustav-plan/src/algorithm.rs"))
        .expect("the catalog");
    let names = quoted(&catalog, " = \"");
    for page in std::fs::read_dir(root.join("docs/algorithms")).expect("docs/algorithms") {
        let path = page.expect("a page").path();
        let stem = path.file_stem().and_then(|s| s.to_str()).expect("a name");
        assert!(names.contains(stem) || stem == "README", "{stem}.md describes no algorithm");
    }
}
