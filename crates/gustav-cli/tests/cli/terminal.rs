//! Progress bars, which are drawn only on terminals: the test opens a pseudo-terminal as standard
//! error.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};

use crate::support::Folder;

/// A new pseudo-terminal of 100 columns: its reading end, and the end for a program.
fn terminal() -> (File, File) {
    let (mut reader, mut writer) = (0, 0);
    let size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let none = std::ptr::null_mut();
    // SAFETY: writes two descriptors, which the files own from here on; the size is read; name and
    // settings may be null.
    unsafe {
        assert_eq!(libc::openpty(&mut reader, &mut writer, none, none.cast(), &size), 0);
        (File::from_raw_fd(reader), File::from_raw_fd(writer))
    }
}

/// The exit status of `command` and what it wrote to its terminal.
fn seen(mut command: Command) -> (Option<i32>, String) {
    let (mut reader, writer) = terminal();
    let mut child = command
        .env("TERM", "xterm")
        .stdout(Stdio::null())
        .stderr(writer)
        .spawn()
        .expect("gustav starts");
    // The command's ends would keep the terminal open.
    drop(command);
    let (mut text, mut chunk) = (Vec::new(), [0; 4096]);
    // Reading from a terminal without writers returns an error, not end of file.
    while let Ok(count) = reader.read(&mut chunk) {
        if count == 0 {
            break;
        }
        text.extend_from_slice(&chunk[..count]);
    }
    let status = child.wait().expect("an end");
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_benchmark_shows_what_it_measures_and_the_time_left() {
    let folder = Folder::new();
    let line = "bench gen:diagonal:9 gen:grid5:3x3 --peers= --record r.jsonl --only op=spmv";
    let (status, text) = seen(folder.command(line));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("0/2 diagonal:9, ") && text.contains(" left"), "{text:?}");
    // Cleared at the end.
    assert!(text.trim_end_matches("\u{1b}[?25h").ends_with("\u{1b}[2K"), "{text:?}");
    let (_, text) = seen(folder.command(&line.replace("r.jsonl", "q.jsonl --quiet")));
    assert_eq!(text, "");
}

#[test]
fn a_download_shows_the_received_bytes_and_the_time_left() {
    let mut tar =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none()));
    let matrix = format!("{}{}", crate::support::SMALL, "% so long\n".repeat(10_000));
    let mut header = tar::Header::new_gnu();
    header.set_size(matrix.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "small/small.mtx", matrix.as_bytes()).expect("an archive");
    let archive = tar.into_inner().and_then(|gzip| gzip.finish()).expect("an archive");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("a request") > 0 {
            request.push(byte[0]);
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", archive.len());
        stream.write_all(head.as_bytes()).expect("an answer");
        stream.write_all(&archive).expect("an answer");
    });
    let folder = Folder::new();
    let line = format!("fetch GROUP/small --base http://{address}");
    let (status, text) = seen(folder.command(&line));
    server.join().expect("a server");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("fetching ") && text.contains(" KiB/"), "{text:?}");
    assert!(text.contains(" left"), "{text:?}");
    assert_eq!(folder.names(), ["small.mtx"]);
}
