//! A file from an address, going on where an earlier attempt stopped (RFC 9110, section 14).

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gustav_core::{Error, Result};
use ureq::http::{HeaderMap, StatusCode, header};

use crate::files::Progress;

const PATIENCE: Duration = Duration::from_secs(30);
const BLOCK: usize = 1 << 16;

/// What came of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Downloaded {
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes that were there before.
    pub resumed: u64,
}

/// Downloads `address` to `part`, which holds the beginning of it or nothing.
///
/// # Errors
/// As [`super::Fetch::to`]; what has come stays in `part`.
pub(super) fn download(
    address: &str,
    part: &Path,
    progress: Option<&dyn Progress>,
) -> Result<Downloaded> {
    let refuse = |source| Error::Io { path: part.into(), action: "write", source };
    let held = std::fs::metadata(part).map_or(0, |m| m.len());
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .build()
        .new_agent();
    let ask = |from: u64| {
        let request = agent.get(address);
        let request = match from {
            0 => request,
            _ => request.header(header::RANGE, format!("bytes={from}-")),
        };
        request.call().map_err(|e| unreachable(address, &e))
    };

    let mut response = ask(held)?;
    let mut resumed = held;
    if held > 0 {
        let begins_here = range(response.headers()).is_some_and(|r| r.first == Some(held));
        match response.status() {
            StatusCode::PARTIAL_CONTENT if begins_here => {}
            StatusCode::RANGE_NOT_SATISFIABLE
                if range(response.headers()).is_some_and(|r| r.total == Some(held)) =>
            {
                return Ok(Downloaded { bytes: held, resumed: held });
            }
            // A server that knows no ranges sends everything.
            StatusCode::OK => resumed = 0,
            _ => {
                resumed = 0;
                response = ask(0)?;
            }
        }
    }
    let status = response.status();
    if status != StatusCode::OK && status != StatusCode::PARTIAL_CONTENT {
        return Err(refused(address, status));
    }
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).open(part).map_err(refuse)?;
    file.set_len(resumed).map_err(refuse)?;
    file.seek(SeekFrom::Start(resumed)).map_err(refuse)?;
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length: Option<u64> = length.and_then(|v| v.to_str().ok()?.parse().ok());
    if let (Some(progress), Some(length)) = (progress, length) {
        progress.start(resumed + length);
        progress.advance(resumed);
    }
    let mut bytes = resumed;
    let mut body = response.body_mut().as_reader();
    let mut block = vec![0; BLOCK];
    loop {
        let count = body.read(&mut block).map_err(|source| broken(address, source))?;
        if count == 0 {
            break;
        }
        file.write_all(&block[..count]).map_err(refuse)?;
        bytes += count as u64;
        if let Some(progress) = progress {
            progress.advance(count as u64);
        }
    }
    match length {
        Some(length) if bytes != resumed + length => {
            let words = format!("{bytes} of {} bytes came", resumed + length);
            Err(broken(address, io::Error::new(io::ErrorKind::UnexpectedEof, words)))
        }
        _ => Ok(Downloaded { bytes, resumed }),
    }
}

/// What `Content-Range` says: where the part begins, and how long the whole is.
struct Range {
    first: Option<u64>,
    total: Option<u64>,
}

fn range(headers: &HeaderMap) -> Option<Range> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (part, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let first = part.split_once('-').and_then(|(first, _)| first.parse().ok());
    Some(Range { first, total: total.parse().ok() })
}

fn fetching(address: &str, source: io::Error) -> Error {
    Error::Io { path: PathBuf::from(address), action: "fetch", source }
}

fn unreachable(address: &str, error: &ureq::Error) -> Error {
    let remedy = match error {
        ureq::Error::TlsRequired | ureq::Error::Tls(_) => {
            "this build knows no https: build with the feature tls, or use an http address"
        }
        ureq::Error::BadUri(_) => "expected an address such as https://host/path",
        _ => "is there a network? Another address of the collection can be set",
    };
    fetching(address, io::Error::other(format!("{error}; {remedy}")))
}

fn broken(address: &str, source: io::Error) -> Error {
    let words = format!("the connection broke ({source}); the same command goes on from there");
    fetching(address, io::Error::new(source.kind(), words))
}

fn refused(address: &str, status: StatusCode) -> Error {
    if status == StatusCode::NOT_FOUND {
        return Error::Argument {
            name: "name",
            found: address.into(),
            expected: "a matrix that the collection has, as GROUP/NAME in its spelling".into(),
        };
    }
    fetching(address, io::Error::other(format!("the server answers {status}")))
}
