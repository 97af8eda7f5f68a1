//! `gustav bench`: dry runs, partial runs, and invalid requests.

use crate::support::Folder;

/// Two small matrices, with SpMM of two widths and SpMV each.
const TWO: &str = "bench gen:diagonal:9 gen:grid5:3x3 --peers= --quiet --json --only op=spmv|spmm";

#[test]
fn a_dry_run_measures_nothing_and_estimates_the_time() {
    let folder = Folder::new();
    let output = folder.json(&format!("{TWO} --dry-run --record r.jsonl"));
    assert_eq!((&output["cases"], &output["held"]), (&6.into(), &0.into()));
    assert!(output["least_s"].as_f64() < output["most_s"].as_f64(), "{output}");
    assert!(folder.names().is_empty());
    let run = folder.run("bench regression --dry-run");
    assert!(run.status == 0 && run.stdout.contains(" cases on 9 matrices"), "{run:?}");
    for suite in ["quick", "paper-a", "paper-b", "paper-c", "corpus", "regression", "programs"] {
        let output = folder.json(&format!("bench {suite} --dry-run --json"));
        let (least, most) = (output["least_s"].as_f64(), output["most_s"].as_f64());
        assert!(least.is_some() && least <= most, "{suite}: {output}");
    }
}

#[test]
fn a_run_resumes_where_its_time_was_up() {
    let folder = Folder::new();
    let output = folder.json(&format!("{TWO} --record r.jsonl --minutes 0"));
    assert_eq!((&output["measured"], &output["left"]), (&0.into(), &6.into()));
    let first = TWO.replace("op=spmv|spmm", "op=spmv");
    let output = folder.json(&format!("{first} --record r.jsonl"));
    assert_eq!((&output["measured"], &output["left"]), (&2.into(), &0.into()));
    let output = folder.json(&format!("{TWO} --record r.jsonl"));
    assert_eq!((&output["measured"], &output["resumed"]), (&4.into(), &2.into()));
    let output = folder.json(&format!("{TWO} --record r.jsonl --dry-run"));
    assert_eq!((&output["held"], &output["most_s"]), (&6.into(), &0.0.into()));
}

#[test]
fn a_killed_run_resumes() {
    let folder = Folder::new();
    let line = format!("{TWO} --record r.jsonl");
    assert_eq!(folder.json(&line)["measured"], 6);
    let whole = String::from_utf8(folder.read("r.jsonl")).expect("UTF-8");
    assert_eq!(whole.lines().count(), 6, "{whole}");
    // A killed run leaves whole lines, and possibly a part of the next.
    for held in [0, 1, 4, 5] {
        let kept = whole.split_inclusive('\n').take(held).collect::<String>();
        let next = &whole[kept.len()..];
        let half = next.find('\n').expect("a line") / 2;
        for part in [0, half] {
            folder.write("r.jsonl", format!("{kept}{}", &next[..part]));
            let output = folder.json(&line);
            let expected = (&(6 - held).into(), &held.into());
            assert_eq!((&output["measured"], &output["resumed"]), expected, "{output}");
            let text = String::from_utf8(folder.read("r.jsonl")).expect("UTF-8");
            assert!(text.starts_with(&kept) && text.ends_with('\n'), "{text}");
            assert_eq!(text.lines().count(), 6, "each case once: {text}");
            let output = folder.json(&line);
            assert_eq!(
                (&output["measured"], &output["resumed"]),
                (&0.into(), &6.into()),
                "{output}"
            );
        }
    }
}

#[test]
fn parts_make_up_the_whole() {
    let folder = Folder::new();
    for part in 1..=2 {
        let output = folder.json(&format!("{TWO} --record {part}.jsonl --part {part}/2"));
        assert_eq!(output["measured"], 3, "{output}");
    }
    let records = [folder.read("1.jsonl"), folder.read("2.jsonl")].concat();
    folder.write("all.jsonl", records);
    let output = folder.json(&format!("{TWO} --record all.jsonl"));
    assert_eq!((&output["measured"], &output["resumed"]), (&0.into(), &6.into()));
}

#[test]
fn a_missing_peer_is_named() {
    let folder = Folder::new();
    let line = "bench gen:diagonal:9 --only op=spmv --peers mkl --python no-such-python \
                --record r.jsonl";
    let run = folder.run(line);
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.stderr.contains("mkl") && run.stderr.contains("no-such-python"), "{run:?}");
    let text = String::from_utf8(folder.read("r.jsonl")).expect("UTF-8");
    assert!(text.lines().all(|l| l.contains("\"engine\":\"gustav\"")), "{text}");
}

#[test]
fn invalid_requests_are_refused() {
    let folder = Folder::new();
    for (line, part) in [
        ("bench quick", "--record"),
        ("bench no-such-suite --record r.jsonl", "regression"),
        ("bench quick --record r.jsonl --part 3/2", "K/N"),
        ("bench quick --record r.jsonl --only colour=red", "colour=red"),
        ("bench quick --record r.jsonl --device gpu --peers=", "cuda:K"),
    ] {
        let message = folder.error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}
