//! `gustav bench`: dry runs, runs in pieces, and what cannot be run.

use crate::support::Folder;

/// Two small matrices, with SpMM of two widths and SpMV each.
const TWO: &str = "bench gen:diagonal:9 gen:grid5:3x3 --peers= --quiet --json --only op=spmv|spmm";

#[test]
fn a_dry_run_measures_nothing_and_says_how_long() {
    let folder = Folder::new();
    let told = folder.json(&format!("{TWO} --dry-run --record r.jsonl"));
    assert_eq!((&told["cases"], &told["held"]), (&6.into(), &0.into()));
    assert!(told["least_s"].as_f64() < told["most_s"].as_f64(), "{told}");
    assert!(folder.names().is_empty());
    let run = folder.run("bench regression --dry-run");
    assert!(run.status == 0 && run.stdout.contains(" cases on 9 matrices"), "{run:?}");
    for suite in ["quick", "paper-a", "paper-b", "paper-c", "corpus", "regression", "programs"] {
        let told = folder.json(&format!("bench {suite} --dry-run --json"));
        let (least, most) = (told["least_s"].as_f64(), told["most_s"].as_f64());
        assert!(least.is_some() && least <= most, "{suite}: {told}");
    }
}

#[test]
fn a_run_goes_on_where_its_time_was_up() {
    let folder = Folder::new();
    let told = folder.json(&format!("{TWO} --record r.jsonl --minutes 0"));
    assert_eq!((&told["measured"], &told["left"]), (&0.into(), &6.into()));
    let first = TWO.replace("op=spmv|spmm", "op=spmv");
    let told = folder.json(&format!("{first} --record r.jsonl"));
    assert_eq!((&told["measured"], &told["left"]), (&2.into(), &0.into()));
    let told = folder.json(&format!("{TWO} --record r.jsonl"));
    assert_eq!((&told["measured"], &told["resumed"]), (&4.into(), &2.into()));
    let told = folder.json(&format!("{TWO} --record r.jsonl --dry-run"));
    assert_eq!((&told["held"], &told["most_s"]), (&6.into(), &0.0.into()));
}

#[test]
fn a_killed_run_goes_on() {
    let folder = Folder::new();
    let line = format!("{TWO} --record r.jsonl");
    assert_eq!(folder.json(&line)["measured"], 6);
    let whole = String::from_utf8(folder.read("r.jsonl")).expect("UTF-8");
    assert_eq!(whole.lines().count(), 6, "{whole}");
    // A kill leaves whole lines, and perhaps a part of the next.
    for held in [0, 1, 4, 5] {
        let kept = whole.split_inclusive('\n').take(held).collect::<String>();
        let next = &whole[kept.len()..];
        let half = next.find('\n').expect("a line") / 2;
        for part in [0, half] {
            folder.write("r.jsonl", format!("{kept}{}", &next[..part]));
            let told = folder.json(&line);
            let expected = (&(6 - held).into(), &held.into());
            assert_eq!((&told["measured"], &told["resumed"]), expected, "{told}");
            let text = String::from_utf8(folder.read("r.jsonl")).expect("UTF-8");
            assert!(text.starts_with(&kept) && text.ends_with('\n'), "{text}");
            assert_eq!(text.lines().count(), 6, "each case once: {text}");
            let told = folder.json(&line);
            assert_eq!((&told["measured"], &told["resumed"]), (&0.into(), &6.into()), "{told}");
        }
    }
}

#[test]
fn parts_make_up_the_whole() {
    let folder = Folder::new();
    for part in 1..=2 {
        let told = folder.json(&format!("{TWO} --record {part}.jsonl --part {part}/2"));
        assert_eq!(told["measured"], 3, "{told}");
    }
    let records = [folder.read("1.jsonl"), folder.read("2.jsonl")].concat();
    folder.write("all.jsonl", records);
    let told = folder.json(&format!("{TWO} --record all.jsonl"));
    assert_eq!((&told["measured"], &told["resumed"]), (&0.into(), &6.into()));
}

#[test]
fn a_peer_that_is_not_there_is_named() {
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
fn requests_that_make_no_sense_are_refused() {
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
