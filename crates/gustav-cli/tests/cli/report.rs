//! `gustav report`: a page with its files, from records of `gustav bench`.

use crate::support::Folder;

#[test]
fn records_become_a_page_with_its_files() {
    let folder = Folder::new();
    let run = folder.run("bench gen:grid5:9x9 --record r.jsonl --peers= --quiet");
    assert_eq!(run.status, 0, "{run:?}");
    let output = folder.json("report r.jsonl r.jsonl -o page.html --json");
    assert_eq!(folder.names(), ["page-files", "page.html", "r.jsonl"]);
    let page = String::from_utf8(folder.read("page.html")).expect("UTF-8");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    // Without peers there is no ratio, and the page says so.
    assert!(page.contains("Not drawn") && page.contains("Speed-up against mean row length"));
    let files = std::fs::read_dir(folder.path("page-files")).expect("the folder").count() as u64;
    let number = |key: &str| output[key].as_u64().expect("a number");
    assert_eq!(files, number("tables") + 2 * number("figures"));
    assert!(number("figures") > 0, "{output}");
    // One option takes several files, as a shell expands patterns.
    folder.write("t.json", "{}");
    let message = folder.error("report r.jsonl --tuning t.json none.json");
    assert!(message.contains("t.json"), "{message}");
}

#[test]
fn what_cannot_be_reported_is_an_error() {
    let folder = Folder::new();
    folder.write("bad.jsonl", "{\"suite\": 3}\n");
    let message = folder.error("report bad.jsonl");
    assert!(message.contains("bad.jsonl: line 1") && message.contains("remove the line"));
    folder.write("empty.jsonl", "");
    assert!(folder.error("report empty.jsonl").contains("gustav bench"));
    assert!(folder.error("report none.jsonl").contains("none.jsonl"));
    assert_eq!(folder.names(), ["bad.jsonl", "empty.jsonl"]);
}
