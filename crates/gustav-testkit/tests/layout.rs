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
    ("gustav-train", &["gustav-core", "gustav-plan"]),
    ("gustav-cpu", &["gustav-core", "gustav-plan"]),
    ("gustav-cuda", &["gustav-core", "gustav-plan"]),
    ("gustav", &["gustav-core", "gustav-io", "gustav-plan", "gustav-cpu", "gustav-cuda"]),
    ("gustav-mpi", &["gustav-core", "gustav-io", "gustav-plan", "gustav-cpu", "gustav-cuda"]),
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
            "gustav-train",
        ],
    ),
    ("gustav-python", &["gustav", "gustav-cli", "gustav-mpi"]),
    ("gustav-capi", &["gustav"]),
    (
        "gustav-cli",
        &["gustav", "gustav-bench", "gustav-core", "gustav-mpi", "gustav-report", "gustav-testkit"],
    ),
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
            // The façade is tested with its features for other crates.
            let for_tests = d.name == "gustav-testkit" || d.name == name;
            let test_support = d.kind == DependencyKind::Development && for_tests;
            if !test_support && !sees.contains(d.name.as_str()) {
                wrong.push(format!("{name} -> {}", d.name));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that point back: {wrong:#?}");
    assert!(metadata.packages.len() >= 10, "the workspace lost a crate");
}

/// A package that read a file of another folder of the repository would not compile elsewhere.
#[test]
fn published_crates_include_their_own_files_alone() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata");
    let published = metadata.packages.iter().filter(|p| p.publish.is_none());
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for package in published.clone() {
        let crate_ = package.manifest_path.parent().expect("a folder").as_std_path();
        for file in files(&crate_.join("src"), ".rs") {
            let text = std::fs::read_to_string(&file).expect("a module");
            for path in outside(&text, file.strip_prefix(crate_).expect("a file of the crate")) {
                wrong.push(format!("{}: {path}", file.display()));
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(published.count() >= 7 && seen > 100, "{seen} files");
}

/// Paths of included files in `text`, the module `file` of a crate, that lead out of the crate.
fn outside(text: &str, file: &Path) -> Vec<String> {
    let included = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];
    let included = included.iter().flat_map(|prefix| quoted(text, prefix));
    // Folders between the file and the root of the crate.
    let depth = file.components().count() - 1;
    let up = |path: &str| path.split('/').take_while(|part| *part == "..").count();
    included.filter(|path| up(path) > depth).map(str::to_owned).collect()
}

#[test]
fn files_outside_of_a_crate_are_found() {
    let of = |file: &str, path: &str| {
        outside(&format!("include_str!(\"{path}\")"), Path::new(file)).len()
    };
    assert_eq!(of("src/lib.rs", "../kernels/a.cu"), 0);
    assert_eq!(of("src/lib.rs", "../../bench/a.toml"), 1);
    assert_eq!(of("src/jit/mod.rs", "../../kernels/a.cu"), 0);
    assert_eq!(of("src/jit/mod.rs", "../../../bench/a.toml"), 1);
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
                    [
                        format!("{folder}/{stem}.rs"),
                        format!("{folder}/{stem}/mod.rs"),
                        format!("{source}/papers/{stem}.rs"),
                        format!("{source}/papers/{op}/{stem}.rs"),
                        format!("{source}/{stem}/{op}.rs"),
                    ]
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

/// The groups of gustav-cuda's modules. A group uses itself and those before it.
const GROUPS: &[&str] = &[
    "device",
    "jit",
    "launch",
    "matrix",
    "schedule",
    "product",
    "vendor",
    "papers",
    "spmm",
    "spmv",
    "spgemm",
    "sddmm",
    "softmax",
    "attention",
];

/// Paths in `text` that lead from the module `path` to a later group or to the root of the crate.
fn upward(path: &[&str], text: &str) -> Vec<String> {
    let group = |name: &str| GROUPS.iter().position(|g| *g == name);
    let own = group(path[0]);
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let from_root = code.match_indices("crate::").filter_map(|(at, _)| {
        let name = word(&code[at + "crate::".len()..]);
        (group(&name).is_none() || group(&name) > own).then(|| format!("crate::{name}"))
    });
    // `super::super` from `group::module` is the root.
    let chain = "super::".repeat(path.len());
    let from_within = code.contains(&chain).then(|| chain.clone());
    from_root.chain(from_within).collect()
}

/// Every file with this ending below `folder`.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path, ending)),
            false if path.to_string_lossy().ends_with(ending) => found.push(path),
            false => {}
        }
    }
    found
}

#[test]
fn groups_of_the_gpu_backend_use_only_those_before_them() {
    let source = root().join("crates/gustav-cuda/src");
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for file in files(&source, ".rs") {
        let path = file.strip_prefix(&source).expect("a file of the crate").with_extension("");
        let mut path: Vec<_> = path.iter().map(|part| part.to_str().expect("a name")).collect();
        path.pop_if(|last| *last == "mod");
        match path.as_slice() {
            ["lib"] | ["covering", ..] => continue,
            [group, ..] if GROUPS.contains(group) => seen.insert((*group).to_owned()),
            _ => panic!("{} is in no group", path.join("::")),
        };
        let text = std::fs::read_to_string(&file).expect("a module");
        wrong.extend(upward(&path, &text).iter().map(|to| format!("{} -> {to}", path.join("::"))));
    }
    assert!(wrong.is_empty(), "paths that lead up: {wrong:#?}");
    assert_eq!(seen.len(), GROUPS.len(), "{seen:?}");
}

#[test]
fn paths_that_lead_up_are_found() {
    let of = |path: &[&str], text: &str| upward(path, text).len();
    assert_eq!(of(&["matrix", "csr"], "use crate::device::Device;\nuse super::pattern;"), 0);
    assert_eq!(of(&["matrix", "csr"], "use crate::matrix::values;"), 0);
    assert_eq!(of(&["spmm", "segmented", "config"], "use super::super::plan;"), 0);
    assert_eq!(of(&["matrix", "csr"], "use crate::spmm::plan;"), 1);
    assert_eq!(of(&["matrix", "csr"], "fn f() { crate::spmm::plan::f() }"), 1);
    assert_eq!(of(&["device"], "use crate::{Device, jit::Jit};"), 1);
    assert_eq!(of(&["matrix", "csr"], "use crate::Device;"), 1);
    assert_eq!(of(&["matrix", "csr"], "use super::super::spmm;"), 1);
    assert_eq!(of(&["matrix"], "use super::spmm;"), 1);
}

#[test]
fn kernels_use_none_of_the_papers() {
    let kernels = root().join("crates/gustav-cuda/kernels");
    let all = [files(&kernels, ".cu"), files(&kernels, ".cuh")].concat();
    let outside = all.iter().filter(|file| !file.starts_with(kernels.join("papers")));
    for file in outside.clone() {
        let text = std::fs::read_to_string(file).expect("a kernel");
        assert!(!text.contains("#include \"papers/"), "{} includes a paper's", file.display());
    }
    assert!(outside.count() > 50, "{} files", all.len());
}
