//! Generators: the streams never change, whatever the number of threads; descriptions go to
//! text and back; sizes are as promised; bad requests are refused with the way out.

use gustav_core::{Csr, Error, Scalar, bf16, f16};
use gustav_io::generate::Generator;

const SMALL: [&str; 16] = [
    "grid5:7x5",
    "grid27:4x3x5",
    "fem:3x3x2,3",
    "rmat:8,8",
    "rmat:7,4,0.4,0.3,0.2,0.1",
    "uniform:600x90,7",
    "uniform:20x16,9",
    "sparse:1100x70,0.9",
    "sparse:9x2000,0.999",
    "block:30,8",
    "road:30x20",
    "power-law:700x300,2,2.1",
    "banded:40,3",
    "diagonal:25",
    "hubs:100x500,3,4,200",
    "pruned:64x256,0.8",
];
const EMPTY: &str = "empty:300x200,6,0.9";

fn generator(text: &str) -> Generator {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn build<T: Scalar>(text: &str, seed: u64) -> Csr<T> {
    generator(text).build(seed).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// FNV-1a over the bytes of the three arrays.
fn hash<T: Scalar>(a: &Csr<T>) -> u64 {
    let bytes = [
        bytemuck::cast_slice(a.offsets()),
        bytemuck::cast_slice(a.indices()),
        bytemuck::cast_slice(a.values().as_slice()),
    ];
    let all = bytes.into_iter().flat_map(|b: &[u8]| b.iter());
    all.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

fn with_threads<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a pool").install(f)
}

#[test]
fn streams_are_what_they_were() {
    let mut found = String::new();
    for text in SMALL.into_iter().chain([EMPTY]) {
        let [one, three] =
            [1, 3].map(|threads| with_threads(threads, || hash(&build::<f32>(text, 42))));
        assert_eq!(one, three, "{text} depends on the number of threads");
        found += &format!("{text} {one:016x}\n");
    }
    assert_eq!(found, include_str!("generate.hashes"), "a change of stream changes every record");
}

#[test]
fn values_are_what_they_were_in_every_type() {
    let text = "uniform:30x30,3";
    let found = [
        hash(&build::<f16>(text, 1)),
        hash(&build::<bf16>(text, 1)),
        hash(&build::<f64>(text, 1)),
        hash(&build::<i32>(text, 1)),
        hash(&build::<i64>(text, 1)),
    ]
    .map(|h| format!("{h:016x}\n"))
    .concat();
    assert_eq!(found, include_str!("generate.types.hashes"));
    assert_eq!(build::<f16>(text, 1).indices(), build::<i64>(text, 1).indices());
}

#[test]
fn threads_do_not_matter_past_one_chunk() {
    for text in ["rmat:13,9", "uniform:5000x5000,11", "road:80x70", "power-law:4000x900,1,1.8"] {
        let [one, four] = [1, 4].map(|threads| with_threads(threads, || build::<f64>(text, 3)));
        assert_eq!(one, four, "{text}");
    }
}

#[test]
fn every_matrix_is_canonical_and_keeps_its_promises() {
    for text in SMALL.into_iter().chain([EMPTY]) {
        let a = build::<f64>(text, 9);
        let promised = generator(text);
        assert_eq!(promised.shape().ok(), Some((a.nrows(), a.ncols())), "{text}");
        assert!(a.view().is_canonical(), "{text}");
        assert!(a.nnz() > 0, "{text}");
        assert!(a.values().iter().all(|v| (0.5..1.5).contains(&v.abs())), "{text}");
        let negative = a.values().iter().filter(|v| **v < 0.0).count();
        assert!(negative > a.nnz() / 4 && negative < a.nnz() - a.nnz() / 4, "{text}");
        assert_ne!(a.values(), build::<f64>(text, 10).values(), "{text} ignores the seed");
        let seeds_matter = a.indices() != build::<f64>(text, 10).indices();
        let fixed = ["grid5", "grid27", "fem", "block", "banded", "diagonal"];
        let is_fixed = fixed.iter().any(|f| text.starts_with(f));
        assert_ne!(seeds_matter, is_fixed, "{text}");
        match promised.entries() {
            Some(n) if is_fixed || text.starts_with("uniform") || text.starts_with("hubs") => {
                assert_eq!(n, a.nnz() as u128, "{text}");
            }
            Some(n) => {
                let (n, nnz) = (n as f64, a.nnz() as f64);
                assert!(
                    (nnz / n - 1.0).abs() < 0.3,
                    "{text}: {nnz} entries where {n} are expected"
                );
            }
            None => {}
        }
    }
}

#[test]
fn families_look_like_their_names() {
    let lengths = |text: &str| {
        let a = build::<f32>(text, 5);
        (0..a.nrows()).map(|r| a.view().row_len(r)).collect::<Vec<_>>()
    };
    let mean = |l: &[usize]| l.iter().sum::<usize>() as f64 / l.len() as f64;

    let roads = build::<f32>("road:200x200", 5);
    let degree = roads.nnz() as f64 / roads.nrows() as f64;
    assert!((degree - 2.8).abs() < 0.05, "{degree}");
    let back = roads.view().transpose().expect("a transpose");
    assert_eq!((back.offsets(), back.indices()), (roads.offsets(), roads.indices()));

    let hubs = lengths("hubs:1000x800,8,10,500");
    assert_eq!(hubs.iter().filter(|l| **l == 500).count(), 10);
    assert_eq!(hubs.iter().filter(|l| **l == 8).count(), 990);

    let empty = lengths("empty:20000x100,20,0.9");
    let share = empty.iter().filter(|l| **l == 0).count() as f64 / 20_000.0;
    assert!((share - 0.9).abs() < 0.01, "{share}");
    assert!(empty.iter().all(|l| [0, 20].contains(l)));

    let sparse = lengths("sparse:2000x1000,0.95");
    assert!((mean(&sparse) - 50.0).abs() < 1.0, "{}", mean(&sparse));

    let pruned = lengths("pruned:2000x1000,0.9");
    assert!((mean(&pruned) - 100.0).abs() < 3.0, "{}", mean(&pruned));
    assert!(pruned.iter().any(|l| *l < 40) && pruned.iter().any(|l| *l > 160));

    // P(length ≥ 10·shortest) = 10^(1 − exponent).
    let law = lengths("power-law:20000x100000,3,2.5");
    let tail = law.iter().filter(|l| **l >= 30).count() as f64 / 20_000.0;
    assert!(law.iter().all(|l| *l >= 3) && (tail / 10f64.powf(-1.5) - 1.0).abs() < 0.1, "{tail}");

    let rmat = lengths("rmat:12,16");
    let longest = rmat.iter().max().copied().unwrap_or(0) as f64;
    assert!(longest > 20.0 * mean(&rmat), "{longest}");
}

#[test]
fn descriptions_survive_the_round_trip() {
    for text in SMALL.into_iter().chain([EMPTY]) {
        assert_eq!(generator(text).to_string(), text);
    }
    assert_eq!(generator("rmat:5,2,0.57,0.19,0.19,0.05").to_string(), "rmat:5,2");
    for kind in Generator::KINDS {
        assert!(kind.usage.starts_with(&format!("{}:", kind.name)));
        let named = |text: &&str| text.split(':').next() == Some(kind.name);
        assert!(SMALL.iter().chain([&EMPTY]).any(named), "{} has no test", kind.name);
    }
}

#[test]
fn empty_sizes_work() {
    for text in [
        "grid5:0x0",
        "grid5:0x4",
        "grid27:0x3x3",
        "fem:0x2x2,3",
        "uniform:0x5,5",
        "uniform:5x0,0",
        "sparse:0x0,0.5",
        "block:0,4",
        "road:0x7",
        "banded:0,0",
        "diagonal:0",
        "hubs:0x0,0,0,0",
        "empty:0x9,1,0.5",
        "pruned:3x0,0.5",
        "rmat:0,0",
    ] {
        assert_eq!(build::<f32>(text, 1).nnz(), 0, "{text}");
    }
    assert_eq!(build::<f32>("sparse:50x50,1", 1).nnz(), 0);
    assert_eq!(build::<f32>("sparse:50x50,0", 1).nnz(), 2500);
    assert_eq!(build::<f32>("banded:4,3", 1).nnz(), 16);
}

#[test]
fn bad_descriptions_say_what_is_wrong() {
    for (text, message) in [
        ("grid6:3x3", "one of grid5, grid27"),
        ("", "one of grid5"),
        ("grid5", "grid5:NXxNY: the grid is missing"),
        ("grid5:3", "the grid cannot be \"3\""),
        ("grid5:3x3x3", "the grid cannot be \"3x3x3\""),
        ("grid5:3x-1", "the grid cannot be \"-1\""),
        ("grid5:3x3,5", "\"5\" is too much"),
        ("uniform:3x3", "PER_ROW is missing"),
        ("uniform:3x3,a", "PER_ROW cannot be \"a\""),
        ("sparse:3x3,1.5", "SPARSITY must lie between 0 and 1, not at 1.5"),
        ("sparse:3x3,NaN", "SPARSITY must lie between 0 and 1, not at NaN"),
        ("block:3,0", "SIZE must be above 0"),
        ("power-law:3x3,0,2", "SHORTEST must be above 0"),
        ("power-law:3x3,1,1", "EXPONENT must lie between 1.01 and 100, not at 1"),
        ("uniform:10x5,6", "PER_ROW must be at most the number of columns, 5, not 6"),
        ("uniform:3x0,1", "PER_ROW must be at most the number of columns, 0, not 1"),
        ("empty:3x4,5,0.5", "PER_ROW must be at most the number of columns, 4, not 5"),
        ("power-law:4x3,4,2", "SHORTEST must be at most the number of columns, 3, not 4"),
        ("hubs:10x10,11,1,5", "PER_ROW must be at most the number of columns, 10, not 11"),
        ("hubs:10x10,2,11,5", "HUBS must be at most the number of rows, 10, not 11"),
        ("hubs:10x10,2,1,30", "HUB_LENGTH must be at most the number of columns, 10, not 30"),
        ("banded:5,9", "HALF must be at most the number of diagonals on a side, 4, not 9"),
        ("banded:4,18446744073709551615", "diagonals on a side, 3, not 18446744073709551615"),
        ("fem:1x1x1,0", "DOF must be above 0"),
        ("rmat:40,1", "SCALE must be at most 32"),
        ("rmat:4,1,0.5", "B is missing"),
        ("rmat:4,1,0.5,0.5,0.5,0.5", "must add up to 1"),
    ] {
        let error = text.parse::<Generator>().expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn sizes_past_the_index_types_are_refused() {
    let refuse = |text: &str| generator(text).build::<f32, u32, u32>(1).expect_err(text);
    for text in [
        "uniform:1000000x1000000,5000",
        "grid5:100000x100000",
        "rmat:30,16",
        "diagonal:5000000000",
        "grid5:10000000000x10000000000",
    ] {
        let error = refuse(text);
        assert!(matches!(error, Error::Overflow { .. }), "{text}: {error}");
    }
    let error = refuse("diagonal:5000000000").to_string();
    assert!(error.contains("use u64"), "{error}");
    let error = generator("diagonal:100000000000000").build::<f32, u64, u64>(1);
    assert!(matches!(error, Err(Error::OutOfMemory { .. })), "{error:?}");
}

#[test]
fn rows_by_themselves_are_those_of_the_whole() {
    let texts = SMALL.into_iter().chain([EMPTY, "rmat:9,7", "uniform:2000x50,4"]);
    for text in texts {
        let (generator, whole) = (generator(text), build::<f32>(text, 3));
        let (mut indices, mut values, mut row) = (Vec::new(), Vec::new(), 0);
        while row < whole.nrows() {
            let end = whole.nrows().min(row + whole.nrows().div_ceil(5));
            let part = generator.pattern_of_rows::<u32, u32>(row..end, 3).unwrap();
            assert_eq!((part.nrows(), part.ncols()), (end - row, whole.ncols()), "{text}");
            for (k, row) in (row..end).enumerate() {
                assert_eq!(part.view().row(k), whole.view().pattern().row(row), "{text}");
            }
            values.extend(
                generator.values_of_entries::<f32>(indices.len(), part.nnz(), 3).unwrap().iter(),
            );
            indices.extend_from_slice(part.indices());
            row = end;
        }
        assert_eq!((&indices[..], &values[..]), (whole.indices(), whole.values().as_slice()));
    }
    let past = generator("diagonal:5").pattern_of_rows::<u32, u32>(3..6, 1);
    assert!(matches!(past, Err(Error::Argument { .. })));
}
