//! Damaged and hostile files: every error says what, where, and what would work.

use gustav_core::{Csr, Error};
use gustav_io::{ReadOptions, parse_csr, parse_dense, parse_header, read_csr, read_header};

fn error(bytes: impl AsRef<[u8]>) -> Error {
    parse_csr::<f64, u32, u32>(bytes.as_ref(), &ReadOptions::default()).unwrap_err()
}

/// The whole message of reading `bytes`.
#[track_caller]
fn check(bytes: impl AsRef<[u8]>, message: &str) {
    assert_eq!(error(bytes).to_string(), message);
}

fn real(body: &str) -> String {
    format!("%%MatrixMarket matrix coordinate real general\n{body}")
}

#[test]
fn banner() {
    for (banner, message) in [
        ("%%Matrix", "line 1, column 1: expected %%MatrixMarket, found \"%%Matrix\""),
        ("%%MatrixMarket", "line 1, column 15: expected matrix, found the end of the line"),
        (
            "%%MatrixMarket vector coordinate real general",
            "line 1, column 16: expected matrix, found \"vector\"",
        ),
        (
            "%%MatrixMarket matrix sparse real general",
            "line 1, column 23: expected coordinate or array, found \"sparse\"",
        ),
        (
            "%%MatrixMarket matrix coordinate quaternion general",
            "line 1, column 34: expected real, double, integer or pattern, found \"quaternion\"",
        ),
        (
            "%%MatrixMarket matrix array pattern general",
            "line 1, column 29: expected real, double or integer in an array, found \"pattern\"",
        ),
        (
            "%%MatrixMarket matrix coordinate real upper",
            "line 1, column 39: expected general, symmetric or skew-symmetric, found \"upper\"",
        ),
        (
            "%%MatrixMarket matrix coordinate pattern skew-symmetric",
            "line 1, column 42: expected general or symmetric for a pattern, found \
             \"skew-symmetric\"",
        ),
        (
            "%%MatrixMarket matrix coordinate real general extra",
            "line 1, column 47: expected the end of the line, found \"extra\"",
        ),
    ] {
        check(format!("{banner}\n1 1 1\n1 1 1\n"), message);
    }
}

#[test]
fn complex_and_hermitian_are_refused_with_a_way_out() {
    for (kind, banner) in [("complex", "complex general"), ("hermitian", "real hermitian")] {
        let text = format!("%%MatrixMarket matrix coordinate {banner}\n1 1 1\n1 1 1 0\n");
        let message = format!(
            "Matrix Market: {kind} matrices are not supported; gustav multiplies real numbers: \
             write the real and the imaginary part to files of their own"
        );
        check(&text, &message);
        assert_eq!(parse_header(text.as_bytes()).unwrap_err().to_string(), message);
    }
}

#[test]
fn size_line() {
    let at = "line 2, column ";
    for (line, message) in [
        ("", "1: expected the size line, found the end of the file"),
        ("3 3", "4: expected the number of entries, found the end of the line"),
        ("3 x 3", "3: expected the number of columns, found \"x\""),
        ("-3 3 3", "1: expected the number of rows, found \"-3\""),
        ("3 3 3 3", "7: expected the end of the line, found \"3\""),
        (
            "3 3 18446744073709551616",
            "5: expected the number of entries below 2^64, found \"18446744073709551616\"",
        ),
    ] {
        check(real(line), &format!("{at}{message}"));
    }
    check(
        "%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n2 1 1\n",
        "line 2, column 1: expected as many rows as columns in a symmetric matrix, found 2 x 3",
    );
}

#[test]
fn entries() {
    for (body, message) in [
        (
            "2 2 1\n0 1 1\n",
            "line 3, column 1: expected a row index from 1 (Matrix Market counts from 1), found \
             \"0\"",
        ),
        (
            "2 2 1\n1 0 1\n",
            "line 3, column 3: expected a column index from 1 (Matrix Market counts from 1), \
             found \"0\"",
        ),
        ("2 2 1\n3 1 1\n", "line 3, column 1: expected a row index of at most 2, found \"3\""),
        (
            "2 2 1\n1 99999999999999999999 1\n",
            "line 3, column 3: expected a column index of at most 2, found \
             \"99999999999999999999\"",
        ),
        ("2 2 1\n-1 1 1\n", "line 3, column 1: expected a row index, found \"-1\""),
        ("2 2 1\n1.0 1 1\n", "line 3, column 1: expected a row index, found \"1.0\""),
        ("2 2 1\n1\n", "line 3, column 2: expected a column index, found the end of the line"),
        ("2 2 1\n1 1\n", "line 3, column 4: expected a real value, found the end of the line"),
        ("2 2 1\n1 1 one\n", "line 3, column 5: expected a real value, found \"one\""),
        ("2 2 1\n1 1 1e\n", "line 3, column 5: expected a real value, found \"1e\""),
        ("2 2 1\n1 1 +-1\n", "line 3, column 5: expected a real value, found \"+-1\""),
        (
            "2 2 1\n1 1 1 0\n",
            "line 3, column 7: expected the end of the line after the value, found \"0\"",
        ),
        ("2 2 1\n1 1\0 1\n", "line 3, column 3: expected a column index, found \"1\\x00\""),
        ("2 2 1\n\0\n", "line 3, column 1: expected a row index, found \"\\x00\""),
    ] {
        // With text behind them, numbers are read eight bytes at a time.
        check(real(body), message);
        check(real(body) + "% a comment long enough to read ahead in\n", message);
    }
    check(
        "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1 1\n",
        "line 3, column 5: expected the end of the line after the column index of a pattern, \
         found \"1\"",
    );
    check(
        "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 0\n",
        "line 3, column 1: expected no diagonal in a skew-symmetric matrix, found entry (2, 2)",
    );
    for (symmetry, value) in [("symmetric", "1"), ("skew-symmetric", "-1")] {
        let file = format!(
            "%%MatrixMarket matrix coordinate real {symmetry}\n2 2 2\n2 1 1\n1 2 {value}\n"
        );
        let message = format!(
            "line 4, column 1: expected the lower triangle only in a {symmetry} matrix (a file \
             that holds both is general), found entry (1, 2)"
        );
        check(&file, &message);
        check(file + "% a comment long enough to read ahead in\n", &message);
    }
}

#[test]
fn counts() {
    let said = |n: u64| format!("expected {n} entries as the size line says");
    check(
        real("2 2 2\n1 1 1\n"),
        &format!("line 4, column 1: {}, found 1 at the end of the file", said(2)),
    );
    check(
        real("2 2 2\n1 1 1\n%c\n1 2 1\n\n2 2 1\n"),
        &format!("line 7, column 1: {}, found one more", said(2)),
    );
    let absurd = 1_000_000_000_000_000_000;
    check(
        real(&format!("2 2 {absurd}\n1 1 1\n")),
        &format!("line 4, column 1: {}, found 1 at the end of the file", said(absurd)),
    );
}

#[test]
fn the_first_fault_of_a_long_file_is_named() {
    let lines = 60_000;
    let mut text = real(&format!("{lines} 1 {lines}\n"));
    for k in 1..=lines {
        match k {
            41_234 | 50_000 => text += "1 2 0.5\n",
            _ => text += &format!("{k} 1 0.5\n"),
        }
    }
    check(&text, "line 41236, column 3: expected a column index of at most 1, found \"2\"");
    // An entry too many before a fault comes first.
    let text = text.replacen(&format!("{lines} 1 {lines}"), &format!("{lines} 1 40000"), 1);
    check(
        &text,
        "line 40003, column 1: expected 40000 entries as the size line says, found one more",
    );
}

#[test]
fn long_lines() {
    let spaces = " ".repeat(2000);
    check(
        real(&format!("1 1 1\n1{spaces}1 1\n")),
        "line 3, column 1025: expected a line of at most 1024 bytes, found one of 2004",
    );
    check(
        real(&format!("1 1 1\n1{spaces}1 1\n% a comment long enough to read ahead in\n")),
        "line 3, column 1025: expected a line of at most 1024 bytes, found one of 2004",
    );
    check(
        real(&format!("1{spaces}1 1\n1 1 1\n")),
        "line 2, column 1025: expected a line of at most 1024 bytes, found a longer one",
    );
    // Comments may be as long as they like.
    let text = real(&format!("%{spaces}\n1 1 1\n%{spaces}\n1 1 1\n"));
    assert!(parse_csr::<f64, u32, u32>(text.as_bytes(), &ReadOptions::default()).is_ok());
}

#[test]
fn integers_are_exact_or_refused() {
    let file = |value: &str| {
        format!(
            "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 {value}\n%{:60}\n",
            ""
        )
    };
    for (value, remedy) in [
        ("9007199254740993", "use i64"),
        ("-9007199254740993", "use i64"),
        ("123456789012345678901", "no type here does"),
    ] {
        let words = format!("{value} cannot be held in f64 without loss; {remedy}");
        check(file(value), &format!("line 3, column 5: {words}"));
    }
    for text in ["nan", "inf", "1.0", "1e3", "0x10", "-"] {
        let expected = format!("line 3, column 5: expected an integer value, found \"{text}\"");
        check(file(text), &expected);
    }
    let as_i32 = |v: &str| {
        let read = parse_csr::<i32, u32, u32>(file(v).as_bytes(), &ReadOptions::default());
        read.map(|a| a.values()[0]).map_err(|e| e.to_string())
    };
    assert_eq!(as_i32("2147483647"), Ok(i32::MAX));
    assert_eq!(
        as_i32("2147483648").unwrap_err(),
        "line 3, column 5: 2147483648 cannot be held in i32 without loss; use i64"
    );
    let as_i64 = parse_csr::<i64, u32, u32>(
        file("123456789012345678901").as_bytes(),
        &ReadOptions::default(),
    );
    assert!(as_i64.unwrap_err().to_string().ends_with("no type here does"));
    let as_f32 = parse_csr::<f32, u32, u32>(file("16777217").as_bytes(), &ReadOptions::default());
    assert_eq!(
        as_f32.unwrap_err().to_string(),
        "line 3, column 5: 16777217 cannot be held in f32 without loss; use f64"
    );
    let skew = "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 -2147483648\n";
    let skew = parse_csr::<i32, u32, u32>(skew.as_bytes(), &ReadOptions::default());
    assert!(skew.unwrap_err().to_string().starts_with("line 3, column 5: -2147483648 cannot"));
}

#[test]
fn reals_never_become_infinite() {
    check(
        real("1 1 1\n1 1 1e400\n"),
        "line 3, column 5: 1e400 cannot be held in f64 without loss; no type here does",
    );
    let f32s =
        parse_csr::<f32, u32, u32>(real("1 1 1\n1 1 1e39\n").as_bytes(), &ReadOptions::default());
    assert!(f32s.unwrap_err().to_string().contains("1e39 cannot be held in f32"));
    for text in ["0.5", "nan", "1e30", "-inf"] {
        let file = real(&format!("1 1 1\n1 1 {text}\n"));
        let i64s = parse_csr::<i64, u32, u32>(file.as_bytes(), &ReadOptions::default());
        let words = format!("{text} cannot be held in i64 without loss; use f64");
        assert!(i64s.unwrap_err().to_string().ends_with(&words), "{text}");
    }
}

#[test]
fn sizes_beyond_u32_name_the_way_out() {
    for (sizes, what) in [("2 5000000000", "columns"), ("5000000000 2", "rows")] {
        check(
            real(&format!("{sizes} 1\n1 1 1\n")),
            &format!("line 2, column 1: {what}: 5000000000 does not fit in u32; use u64"),
        );
    }
    check(
        "2, 5000000000, 0\n0 0 0\n",
        "line 1, column 1: columns: 5000000000 does not fit in u32; use u64",
    );
    check(
        "2, 2, 5000000000\n0 0 0\n",
        "line 1, column 1: entries: 5000000000 does not fit in u32; use u64",
    );
    let text = real("2 5000000000 1\n1 4999999999 1\n");
    let a: Csr<f64, u64, u32> = parse_csr(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(a.indices(), [4_999_999_998]);
}

#[test]
fn absurd_sizes_take_no_memory() {
    let read = |text: &str| {
        parse_csr::<f64, u64, u64>(text.as_bytes(), &ReadOptions::default()).unwrap_err()
    };
    let rows = read(&real("1000000000000000000 1 1\n1 1 1\n"));
    assert!(matches!(rows, Error::OutOfMemory { .. }), "{rows}");
    let rows = read(&real("18446744073709551615 1 0\n"));
    assert!(matches!(rows, Error::OutOfMemory { .. }), "{rows}");
    let array = "%%MatrixMarket matrix array real general\n1000000000 1000000000\n1\n";
    assert_eq!(
        read(array).to_string(),
        "line 2, column 1: expected 1000000000000000000 elements as the size line says, found 2 \
         bytes until the end of the file"
    );
    let smtx = read("1000000000000, 5, 1\n0 1\n0\n");
    assert!(smtx.to_string().contains("expected 1000000000000 + 1 row offsets"), "{smtx}");
}

#[test]
fn arrays() {
    let array = |body: &str| {
        let text = format!("%%MatrixMarket matrix array real general\n{body}");
        parse_dense::<f64>(text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string()
    };
    assert_eq!(
        array("2 2\n1.25\n2\n3\n"),
        "line 6, column 1: expected 4 elements as the size line says, found 3 at the end of the \
         file"
    );
    assert_eq!(
        array("1 2\n1\n2\n3\n"),
        "line 5, column 1: expected 2 elements as the size line says, found one more"
    );
    assert_eq!(
        array("1 2\n1 2\n"),
        "line 3, column 3: expected one element per line, found another one"
    );
    assert_eq!(array("1 1\nx\n"), "line 3, column 1: expected a real value, found \"x\"");
}

#[test]
fn smtx() {
    for (text, message) in [
        ("2, 2, x", "matrix file: not recognised"),
        ("2, 2,\n", "line 1, column 6: expected the number of nonzeros, found the end of the line"),
        (
            "2, 2, 2\n0 1\n",
            "line 3, column 1: expected 2 + 1 row offsets and 2 column indices, found 5 bytes \
             until the end of the file",
        ),
        (
            "2, 2, 1\n1 1 1\n0\n",
            "line 2, column 1: expected 0 as the first row offset, found \"1\"",
        ),
        (
            "2, 2, 2\n0 2 1\n0 1\n",
            "line 2, column 5: expected a row offset of at least 2, found \"1\"",
        ),
        (
            "2, 2, 2\n0 3 2\n0 1\n",
            "line 2, column 3: expected a row offset of at most 2, found \"3\"",
        ),
        ("2, 2, 2\n0 1 1\n0 1\n", "line 2, column 5: expected 2 as the last offset, found \"1\""),
        (
            "2, 2, 2\n0 1 2\n0 2\n",
            "line 3, column 3: expected a column index below 2 (smtx counts from 0), found \"2\"",
        ),
        (
            "2, 2, 2\n0 1 2\n0    \n",
            "line 4, column 1: expected a column index, found the end of the file",
        ),
        (
            "2, 2, 1\n0 1 1\n0 1\n",
            "line 3, column 3: expected the end of the file after 1 column indices, found \"1\"",
        ),
        ("2, 2, 1\n0 1 -1\n0\n", "line 2, column 5: expected a row offset, found \"-1\""),
    ] {
        let found = error(text).to_string();
        assert!(found.starts_with(message), "{text:?}: {found}");
    }
    check(
        "1, 5000000000, 0\n0 0\n\n",
        "line 1, column 1: columns: 5000000000 does not fit in u32; use u64",
    );
}

#[test]
fn unknown_content_lists_what_is_read() {
    let known = "expected Matrix Market (%%MatrixMarket), SciPy npz, NumPy npy or smtx (rows, \
                 cols, nnz), plain, gzip or zstd";
    for (bytes, found) in [
        (&b""[..], "the file is empty"),
        (b"hello", "it begins with \"hello\""),
        (b"\0\xff", "it begins with \"\\x00\\xff\""),
        (b"\x89PNG\r\n\x1a\n", "it begins with \"\\x89PNG\\r\\n\\x1a\\n\""),
    ] {
        check(bytes, &format!("matrix file: not recognised, {found}; {known}"));
        let header = parse_header(bytes).unwrap_err().to_string();
        assert!(header.contains(found), "{header}");
    }
}

/// A device may have no end.
#[cfg(target_os = "linux")]
#[test]
fn what_is_not_recognised_is_not_read_to_its_end() {
    let message = read_header("/dev/zero").unwrap_err().to_string();
    assert!(message.starts_with("/dev/zero: matrix file: not recognised"), "{message}");
}

#[test]
fn files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.mtx");
    let message = read_header(&missing).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot read {}: ", missing.display())), "{message}");
    let is_folder = read_header(folder.path()).unwrap_err().to_string();
    assert!(is_folder.starts_with("cannot read"), "{is_folder}");
    let path = folder.path().join("a.mtx");
    for (text, message) in [
        (
            real("1 1 1\n2 1 1\n"),
            "line 3, column 1: expected a row index of at most 1, found \"2\"",
        ),
        (
            real("1 1 1\n1 1 1e999\n"),
            "line 3, column 5: 1e999 cannot be held in f64 without loss; no type here does",
        ),
        (String::new(), "matrix file: not recognised, the file is empty"),
    ] {
        std::fs::write(&path, text).unwrap();
        let read = read_csr::<f64, u32, u32>(&path, &ReadOptions::default());
        let found = read.unwrap_err().to_string();
        assert!(found.starts_with(&format!("{}: {message}", path.display())), "{found}");
    }
}
