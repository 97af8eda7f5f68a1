//! Downloads a file and resumes an interrupted download (RFC 9110, section 14).

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use gustav_core::{Error, Result};
use ureq::Body;
use ureq::http::{HeaderMap, HeaderName, Response, StatusCode, header};

use super::part::{Origin, Part};
use crate::files::Progress;

const PATIENCE: Duration = Duration::from_secs(30);
const BLOCK: usize = 1 << 16;

/// The result of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Downloaded {
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes from an earlier attempt.
    pub resumed: u64,
}

/// Downloads `address` to `part`; resumes if `part` holds the beginning of the same version of the
/// file.
///
/// # Errors
/// As [`super::Fetch::to`]; received bytes stay in `part`.
pub(super) fn download(
    address: &str,
    part: &Part,
    progress: Option<&dyn Progress>,
) -> Result<Downloaded> {
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .build()
        .new_agent();
    let ask = |held: Option<&(u64, Origin)>| {
        let mut request = agent.get(address);
        if let Some((from, origin)) = held {
            // Requests the rest if the server still has the version of the part, otherwise the
            // whole file.
            request = request.header(header::RANGE, format!("bytes={from}-"));
            request = request.header(header::IF_RANGE, &origin.version);
        }
        request.call().map_err(|e| unreachable(address, &e))
    };

    let mut held = part.held(address);
    if let Some((bytes, origin)) = &held
        && *bytes == origin.length
    {
        return Ok(Downloaded { bytes: *bytes, resumed: *bytes });
    }
    let mut response = ask(held.as_ref())?;
    if let Some(begun) = &held
        && !goes_on(&response, begun)
    {
        held = None;
        // A server without range support, or with another version of the file, sends the whole
        // file.
        if response.status() != StatusCode::OK {
            response = ask(None)?;
        }
    }
    let status = response.status();
    if status != StatusCode::OK && (held.is_none() || status != StatusCode::PARTIAL_CONTENT) {
        return Err(refused(address, status));
    }
    let (resumed, origin) = match held {
        Some((bytes, origin)) => (bytes, Some(origin)),
        None => (0, origin(address, response.headers())),
    };
    let mut file = part.open(resumed, origin.as_ref())?;
    let refuse = |source| Error::Io { path: part.path().into(), action: "write", source };
    let length = length(response.headers());
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
            let words = format!("received {bytes} of {} bytes", resumed + length);
            Err(broken(address, io::Error::new(io::ErrorKind::UnexpectedEof, words)))
        }
        _ => Ok(Downloaded { bytes, resumed }),
    }
}

/// Whether `response` is the rest of the part.
fn goes_on(response: &Response<Body>, (bytes, origin): &(u64, Origin)) -> bool {
    let headers = response.headers();
    let wanted = format!("bytes {bytes}-{}/{}", origin.length - 1, origin.length);
    let another = match tag(headers) {
        Some(tag) => origin.version.starts_with('"') && tag != origin.version,
        None => false,
    };
    response.status() == StatusCode::PARTIAL_CONTENT
        && text(headers, &header::CONTENT_RANGE) == Some(&wanted)
        && !another
}

/// The version of the file at `address`, if the server's headers suffice to resume it (RFC 9110,
/// section 13.1.5: a weak tag does not).
fn origin(address: &str, headers: &HeaderMap) -> Option<Origin> {
    let version = tag(headers).or_else(|| text(headers, &header::LAST_MODIFIED))?;
    Some(Origin { address: address.into(), length: length(headers)?, version: version.into() })
}

/// The strong entity tag.
fn tag(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::ETAG).filter(|tag| tag.starts_with('"'))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    text(headers, &header::CONTENT_LENGTH)?.parse().ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
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
        _ => {
            "is there a network? Another address of the collection can be given: --base or \
             GUSTAV_COLLECTION, in the library Fetch::base"
        }
    };
    fetching(address, io::Error::other(format!("{error}; {remedy}")))
}

fn broken(address: &str, source: io::Error) -> Error {
    let words = format!("the connection broke ({source}); run the same command again to resume");
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
