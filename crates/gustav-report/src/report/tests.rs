//! Reports of synthetic records.

use std::collections::BTreeMap;

use gustav_plan::predictor::Evaluation;

use super::*;
use crate::feature_times::tests::feature_times;
use crate::ranks::tests::rank_records;
use crate::record::tests::record;
use crate::{Gpu, Stage, Status};

/// Records that fill every figure.
fn everything() -> Vec<Record> {
    let mut records = Vec::new();
    let mut add = |r: Record| records.push(r);
    let timed = |matrix: &str, engine: &str, algorithm: &str, ms: f64| Record {
        execute_ms: Some(ms),
        floor_ms: Some(0.5),
        gather_ms: Some(0.2),
        break_even_calls: (engine == "gustav").then_some(3.0 * ms),
        ..record(matrix, engine, algorithm)
    };
    let gpu = |r: Record| Record {
        gpu: Some(Gpu { name: "a GPU".into(), copy_bandwidth: 4e12, ..Gpu::default() }),
        ..r
    };
    for (k, name) in ["a", "b", "c"].into_iter().enumerate() {
        let ms = 1.0 + k as f64;
        let length = |r: Record| Record { mean_row_length: 4.0 * ms, ..r };
        add(gpu(length(timed(name, "gustav", "auto", ms))));
        add(gpu(length(timed(name, "gustav", "row-split", ms))));
        add(gpu(length(timed(name, "gustav", "segmented", 4.0 - ms))));
        add(gpu(length(timed(name, "cusparse-alg2", "default", 2.0))));
        add(gpu(length(timed(name, "gustav", "segmented@lpt", 1.5))));
        add(gpu(length(timed(name, "gustav", "segmented@plain", 2.5))));
        for threads in [1, 2] {
            let ms = ms / threads as f64;
            add(Record { threads, ..timed(name, "gustav", "auto", ms) });
            add(Record { threads, ..timed(name, "mkl", "default", 2.0 * ms) });
        }
        let size = 1000 << k;
        let random = |r: Record, nnz: usize| Record { kind: "sparse".into(), nnz, ..r };
        let square = Record { rows: size, cols: size, ..timed(name, "gustav", "auto", ms) };
        let mut spgemm = random(square, size * size / 20);
        spgemm.case.operation = "spgemm".into();
        spgemm.case.matrix = format!("square{k}");
        add(spgemm.clone());
        add(Record { engine: "mkl".into(), algorithm: "default".into(), ..spgemm });
        let mut fill = random(timed(name, "gustav", "auto", ms), 10 << k);
        (fill.rows, fill.cols, fill.case.matrix) = (100, 100, format!("fill{k}"));
        add(fill);
        let mut full = timed(name, "gustav", "auto", ms);
        (full.rows, full.cols, full.nnz) = (10 << k, 4000 >> k, 40_000);
        full.case.matrix = format!("full{k}");
        add(full);
    }
    let beside = [("gustav", "row-split"), ("gustav", "nonzero-split"), ("mkl", "default")];
    for (engine, algorithm) in beside {
        let mut groups = timed("groups", engine, algorithm, 1.0);
        (groups.case.columns, groups.nnz) = (64, 100_000);
        add(groups);
    }
    let mut program = Record { product_ms: Some(1.0), ..timed("p", "gustav", "auto", 2.0) };
    program.case.operation = "cg".into();
    add(program);
    for (algorithm, on_gpu) in
        [("shared-row+csr", true), ("shared-row", true), ("hash-rows", false)]
    {
        let mut study = Record { group: 99, ..timed("sparse:9x9,0.9", "gustav", algorithm, 1.0) };
        study.case.operation = "spgemm".into();
        add(if on_gpu { gpu(Record { threads: 0, ..study }) } else { study });
    }
    let stage = |lane: &str, name: &str, start_ms: f64| Stage {
        lane: lane.into(),
        name: name.into(),
        start_ms,
        end_ms: start_ms + 1.0,
    };
    let timeline = vec![stage("CPU", "convert", 0.0), stage("GPU", "multiply", 1.0)];
    for threads in [4, 8] {
        let timeline = timeline.clone();
        add(gpu(Record { timeline, threads, ..timed("t", "gustav", "pipeline", 2.0) }));
    }
    add(Record { spy: vec!["90".into(), "01".into()], ..timed("t", "gustav", "auto", 2.0) });
    add(Record {
        status: Status::Wrong,
        message: Some("row 3 <is> off".into()),
        execute_ms: None,
        ..record("a", "graphblas", "default")
    });
    records
}

/// The reports of a tuning with the classes of the row orders study, and of larger ones with others.
pub(crate) fn tunings() -> Vec<TuneReport> {
    let study = tuning(&["output-stationary", "dcsr"]);
    let study = TuneReport { taken: "tree".into(), ..study };
    let others = tuning(&["segmented", "segmented@lpt", "auto"]);
    vec![study, TuneReport { columns: 128, ..others.clone() }, others]
}

/// The report of a tuning.
fn tuning(candidates: &[&str]) -> TuneReport {
    let evaluation = Evaluation {
        cases: 3,
        candidates: candidates.iter().map(|&name| name.to_owned()).collect(),
        right: 2.0 / 3.0,
        commonest: 2.0 / 3.0,
        oracle_share: 0.9,
        gain: 1.1,
        oracle_gain: 1.2,
        gain_ratio: 0.5,
        mean_loss: 0.1,
        worst_loss: 0.3,
        confusion: vec![vec![1, 1], vec![0, 1]],
        confusion_loss: vec![vec![0.0, 0.3], vec![0.0, 0.0]],
        losses: [2, 0, 0, 0, 0, 1, 0],
        by_source: BTreeMap::new(),
    };
    TuneReport {
        device: "a GPU".into(),
        columns: 64,
        matrices: (12, 3),
        tested_sources: vec!["a".into()],
        left_out: Vec::new(),
        rivals: ["regression", "tree"].map(|name| (name.into(), evaluation.clone())).into(),
        errors: BTreeMap::from([("regression".into(), vec![1.0, 20.0, 5.0])]),
        classes: vec![7, 5],
        topologies: vec![("64, 32".into(), 0.1), ("16".into(), 0.2)],
        validation: BTreeMap::new(),
        folds: BTreeMap::new(),
        taken: "regression".into(),
    }
}

/// Counters of a kernel on matrices of one number of nonzeros.
fn counters() -> [Counters; 3] {
    [1.0, 2.0, 4.0].map(|rows| Counters {
        operation: "spmm".into(),
        algorithm: "row-split".into(),
        rows,
        row_length: 8.0 / rows,
        occupancy: Some(0.5),
        warp_efficiency: Some(0.5),
        ipc: Some(0.5),
        ..Counters::default()
    })
}

/// What is drawn beside records.
fn beside() -> Beside {
    let regret = Regret {
        product: "spmv".into(),
        dtype: "f32".into(),
        columns: 1,
        matrix: "a".into(),
        matrices: "unseen".into(),
        chooser: "model".into(),
        regret: 0.1,
    };
    Beside {
        tunings: tunings(),
        counters: counters().into(),
        ranks: rank_records(),
        regrets: vec![regret.clone(), Regret { product: "spmm".into(), ..regret }],
        features: feature_times(),
    }
}

#[test]
fn records_that_hold_everything_leave_no_figure_out() {
    let report = Report::of(&everything(), &beside()).unwrap();
    assert_eq!(report.absent, []);
    let mut ids: Vec<_> = report.figures().map(|f| &f.id).collect();
    ids.sort();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "two figures have one name: {ids:?}");
    // A longer name would not fit its axis: 9 cm hold 30 letters of readable size upright.
    for label in report.figures().map(|f| &f.y.label) {
        assert!(label.chars().count() <= 30, "{label}");
    }
    let timelines: Vec<_> = ids.iter().filter(|id| id.starts_with("timeline")).collect();
    assert!(timelines.len() == 1 && timelines[0].contains("8-threads"), "{timelines:?}");
    let rivals = report.figures().find(|f| f.id.starts_with("predictor-rivals")).unwrap();
    assert!(rivals.caption.ends_with("first always takes segmented."), "{}", rivals.caption);
    assert!(report.tables().count() > 12);
    let limits = report.tables().find(|t| t.id == "limits").unwrap();
    let gpu = limits.rows.iter().find(|r| r[0].contains("GPU") && r[1] == "SpMM").unwrap();
    // Floors of 0.5 ms and gather limits of 0.2 ms, with times of 1, 2 and 3 ms.
    assert_eq!(gpu[4..], ["3", "27.5", "-", "-", "27.5", "100.0", "-"]);
    let programs = report.tables().find(|t| t.id == "programs").unwrap();
    assert_eq!(programs.rows[0][7], "50", "the share of the products in percent");
    let lost = report.tables().find(|t| t.id == "ranks-losses").unwrap();
    assert_eq!(lost.rows, [["unseen", "spmv", "slow", "0.50", "1.00"]]);
    let over_ranks: Vec<_> = report.figures().filter(|f| f.id.starts_with("ranks")).collect();
    assert_eq!(over_ranks.len(), 3, "bytes, efficiency, and times beside PETSc");
}

#[test]
fn the_studys_classes_are_drawn_whatever_else_was_tuned() {
    let report = Report::of(&everything(), &beside()).unwrap();
    for kind in ["classes", "errors", "confusion", "losses", "rivals", "topologies"] {
        for family in ["study-predictor", "predictor"] {
            let id = format!("{family}-{kind}");
            assert!(report.figures().any(|f| f.id.starts_with(&id)), "{id}");
        }
    }
    let own = report.figures().find(|f| f.id.contains("regression-confusion")).unwrap();
    assert!(own.caption.contains("that regression was not trained on"), "{}", own.caption);
    let study = report.figures().find(|f| f.id.starts_with("study-predictor-confusion")).unwrap();
    assert_eq!(study.x, draw::Axis::names("chosen", ["output-stationary", "dcsr"]));
}

/// Every table and every family has its place, and the page answers first.
#[test]
fn nothing_is_left_out_of_the_parts() {
    let records = everything();
    let platforms = Platform::all(&records);
    let report = Report::of(&records, &beside()).unwrap();
    let features = tables::of_features(&feature_times()).into_iter().collect();
    let beside_records =
        [tables::of_ranks(&rank_records()), tables::of_tunings(&tunings()), features];
    let tables = tables::all(&platforms);
    let tables: Vec<_> =
        tables.iter().chain(beside_records.iter().flatten()).map(|table| table.id).collect();
    let placed: Vec<_> = report.tables().map(|table| table.id).collect();
    assert!(tables.iter().all(|id| placed.contains(id)), "{tables:?} {placed:?}");
    let (chapters, _) = figures::all(&platforms, &beside());
    let figures = chapters.iter().map(|chapter| chapter.figures.len()).sum::<usize>();
    assert_eq!(report.figures().count(), figures);
    let first: Vec<_> = report.figures().take(3).map(|figure| figure.id.as_str()).collect();
    assert_eq!(first, ["glance-speed", "glance-limits", "glance-choice"]);
}

#[test]
fn the_page_is_whole_and_its_files_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("r.html");
    let written = Report::of(&everything(), &beside()).unwrap().write(&page).unwrap();
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.ends_with("</html>\n") && html.contains("prefers-color-scheme:dark"));
    assert!(html.contains("<h2>Over many machines</h2>"));
    assert!(!html.contains("<script") && !html.contains("http://www.w3.org/1999/xhtml"));
    assert!(html.contains("row 3 &lt;is&gt; off"), "a message is text, not HTML");
    let links = html.split("href=\"r-files/").skip(1).map(|l| l.split('"').next().unwrap());
    let links: Vec<_> = links.collect();
    assert_eq!(links.len(), written.tables + 2 * written.figures);
    for link in links {
        assert!(written.folder.join(link).metadata().unwrap().len() > 0, "{link}");
    }
    let entries = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 2, "the page, its folder, and nothing temporary");
}

#[test]
fn figures_without_records_are_named() {
    let report = Report::of(&[record("m", "gustav", "auto")], &Beside::default()).unwrap();
    assert!(report.absent.iter().any(|(name, _)| *name == "Density sweep"));
    assert!(report.glance.is_none() && report.figures().count() == 0);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("r.html");
    report.write(&page).unwrap();
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Density sweep: needs random matrices"), "{html}");
    assert!(Report::of(&[], &Beside::default()).unwrap_err().to_string().contains("gustav bench"));
}

#[test]
fn every_place_has_its_picture() {
    let pictures = pictures(&everything()).unwrap();
    assert_eq!(pictures.len(), 3);
    assert!(pictures[2].starts_with("<svg") && pictures[2].contains("a GPU"), "{pictures:?}");
}
