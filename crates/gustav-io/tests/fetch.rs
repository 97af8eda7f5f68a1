//! The collection as a server in the test plays it: whole and broken downloads, resumption, and
//! what is said when something is wrong.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use gustav_io::fetch::{Checksum, Fetch};

const MATRIX: &str = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3.5\n";

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// As a good server does, ranges included.
    Well,
    /// Without ranges.
    Whole,
    /// The connection ends half way.
    Broken,
    /// It has nothing.
    Missing,
}

struct Server {
    address: String,
    /// First line and range of every request.
    asked: Arc<Mutex<Vec<String>>>,
}

/// Serves `archive` in the manners given, one request each.
fn serve(archive: Vec<u8>, manners: &[Manner]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/MM", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (manners, log) = (manners.to_vec(), asked.clone());
    std::thread::spawn(move || {
        for manner in manners {
            let (stream, _) = listener.accept().expect("a connection");
            answer(stream, &archive, manner, &log);
        }
    });
    Server { address, asked }
}

fn answer(mut stream: TcpStream, archive: &[u8], manner: Manner, log: &Mutex<Vec<String>>) {
    let (mut request, mut block) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        let count = stream.read(&mut block).expect("a request");
        request.extend_from_slice(&block[..count]);
    }
    let text = String::from_utf8_lossy(&request).to_lowercase();
    let from = text.lines().find_map(|l| l.strip_prefix("range: bytes=")?.strip_suffix('-'));
    let from: Option<usize> = from.map(|f| f.parse().expect("a number"));
    let first = text.lines().next().unwrap_or_default();
    log.lock().expect("the log").push(format!("{first} from {from:?}"));
    let total = archive.len();
    let (head, body) = match (manner, from) {
        (Manner::Missing, _) => ("404 Not Found\r\n".into(), &b""[..]),
        (Manner::Well, Some(from)) if from >= total => {
            (format!("416 Range Not Satisfiable\r\ncontent-range: bytes */{total}\r\n"), &b""[..])
        }
        (Manner::Well, Some(from)) => {
            let range = format!("content-range: bytes {from}-{}/{total}\r\n", total - 1);
            (format!("206 Partial Content\r\n{range}"), &archive[from..])
        }
        _ => ("200 OK\r\n".into(), archive),
    };
    let sent = if manner == Manner::Broken { &body[..body.len() / 2] } else { body };
    let length = body.len();
    let head = format!("HTTP/1.1 {head}content-length: {length}\r\nconnection: close\r\n\r\n");
    // The client may have gone away.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent));
}

/// The archive of HB/small, with a right-hand side in front.
fn archive() -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let noise: Vec<u8> =
        (0..40_000u32).map(|k| (k.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (name, content) in
        [("small/small_b.mtx", &noise[..]), ("small/small.mtx", MATRIX.as_bytes())]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, content).expect("an archive");
    }
    tar.into_inner().and_then(|gzip| gzip.finish()).expect("an archive")
}

struct Place {
    folder: tempfile::TempDir,
    server: Server,
}

impl Place {
    fn new(archive: Vec<u8>, manners: &[Manner]) -> Self {
        Place { folder: tempfile::tempdir().expect("a folder"), server: serve(archive, manners) }
    }

    fn fetch(&self) -> Fetch<'static> {
        Fetch::new("HB/small".parse().expect("a name")).base(&self.server.address)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder");
        let name = |e: std::io::Result<std::fs::DirEntry>| e.expect("an entry").file_name();
        entries.map(|e| name(e).to_string_lossy().into_owned()).collect()
    }

    fn asked(&self) -> Vec<String> {
        self.server.asked.lock().expect("the log").clone()
    }
}

#[test]
fn a_matrix_comes_whole_and_leaves_nothing_else() {
    let place = Place::new(archive(), &[Manner::Well]);
    let fetched = place.fetch().to(&place.path("small.mtx")).expect("a matrix");
    assert_eq!(std::fs::read_to_string(fetched.path).expect("a file"), MATRIX);
    assert_eq!((fetched.resumed, fetched.bytes), (0, archive().len() as u64));
    assert_eq!(fetched.others, ["small/small_b.mtx"]);
    assert_eq!(place.names(), ["small.mtx"]);
    assert_eq!(place.asked(), ["get /mm/hb/small.tar.gz http/1.1 from None"]);
}

#[test]
fn a_broken_download_goes_on_where_it_stopped() {
    for (second, resumes) in [(Manner::Well, true), (Manner::Whole, false)] {
        let place = Place::new(archive(), &[Manner::Broken, second]);
        let path = place.path("small.mtx.gz");
        let error = place.fetch().to(&path).expect_err("half").to_string();
        assert!(error.contains("goes on from there"), "{error}");
        assert_eq!(place.names(), ["small.tar.gz.part"]);
        let fetched = place.fetch().to(&path).expect("a matrix");
        assert_eq!(fetched.resumed > 0, resumes, "{second:?}");
        assert_eq!(gustav_io::read_matrix_market::<f64>(&path).expect("a matrix").nnz(), 1);
        assert_eq!(place.names(), ["small.mtx.gz"]);
        assert!(place.asked()[1].contains("from Some("), "{:?}", place.asked());
    }
}

#[test]
fn a_part_that_is_whole_is_not_fetched_again() {
    let place = Place::new(archive(), &[Manner::Well]);
    std::fs::write(place.path("small.tar.gz.part"), archive()).expect("a part");
    let fetched = place.fetch().to(&place.path("small.mtx")).expect("a matrix");
    assert_eq!(fetched.resumed, fetched.bytes);
}

#[test]
fn a_part_of_something_longer_is_given_up() {
    let place = Place::new(archive(), &[Manner::Well, Manner::Well]);
    std::fs::write(place.path("small.tar.gz.part"), vec![0; 1 << 20]).expect("a part");
    let fetched = place.fetch().to(&place.path("small.mtx")).expect("a matrix");
    assert_eq!(fetched.resumed, 0);
}

#[test]
fn checksums_are_compared_and_damage_is_removed() {
    let place = Place::new(archive(), &[Manner::Well]);
    let checksum: Checksum = format!("md5:{}", "0".repeat(32)).parse().expect("a checksum");
    let error = place.fetch().checksum(checksum).to(&place.path("small.mtx")).expect_err("other");
    assert!(error.to_string().contains("expected 000"), "{error}");
    assert!(place.names().is_empty());

    let whole = archive();
    let place = Place::new(whole[..whole.len() / 2].to_vec(), &[Manner::Well]);
    let error = place.fetch().to(&place.path("small.mtx")).expect_err("damaged").to_string();
    assert!(error.contains("fetch it again"), "{error}");
    assert!(place.names().is_empty());
}

#[test]
fn what_is_not_there_is_said_in_words() {
    let place = Place::new(archive(), &[Manner::Missing]);
    let error = place.fetch().to(&place.path("small.mtx")).expect_err("nothing").to_string();
    assert!(error.contains("GROUP/NAME"), "{error}");
    assert!(place.names().is_empty());

    let other = Fetch::new("HB/other".parse().expect("a name"));
    // Port 9 (discard) on this machine listens to nobody.
    let error = other.base("http://127.0.0.1:9").to(&place.path("x.mtx")).expect_err("nobody");
    assert!(error.to_string().contains("is there a network?"), "{error}");
    let error = place.fetch().to(&place.path("small.npz")).expect_err("a format").to_string();
    assert!(error.contains("gustav convert"), "{error}");
}
