//! One name everywhere: catalog, source files and pages agree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gustav_plan::Order;

fn crate_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// What a name's file is called: the three bases of hybrid-1 share one, and those of graph-growing.
fn stem(order: Order) -> &'static str {
    let families = ["hybrid-1", "graph-growing"];
    let family = families.into_iter().find(|f| order.name().starts_with(f));
    family.unwrap_or(order.name())
}

#[test]
fn every_order_has_its_file_and_its_page() {
    for &order in Order::ALL {
        let file = format!("src/orders/{}.rs", stem(order).replace('-', "_"));
        let text = std::fs::read_to_string(crate_root().join(&file)).expect(&file);
        assert!(text.contains(&format!("`{order}`")), "{file} does not name {order}");
        let page = format!("../../docs/orders/{}.md", stem(order));
        let text = std::fs::read_to_string(crate_root().join(&page)).expect(&page);
        assert!(text.contains(order.name()), "{page} does not name {order}");
        assert_eq!(order.name().parse::<Order>().expect("its own name"), order);
    }
}

#[test]
fn every_page_describes_an_order() {
    let known: BTreeSet<&str> = Order::ALL.iter().map(|o| stem(*o)).collect();
    for page in std::fs::read_dir(crate_root().join("../../docs/orders")).expect("docs/orders") {
        let path = page.expect("a page").path();
        let stem = path.file_stem().and_then(|s| s.to_str()).expect("a name");
        assert!(known.contains(stem) || stem == "README", "{stem}.md describes no order");
    }
}
