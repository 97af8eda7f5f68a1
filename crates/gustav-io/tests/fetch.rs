//! The collection as a server in the test plays it: whole and broken downloads, resumption, and
//! what is said when something is wrong.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gustav_io::fetch::{Checksum, Fetch};

const MATRIX: &str = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3.5\n";

/// The archive's entity tag.
const VERSION: &str = "\"v1\"";

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// As a good server does, ranges included.
    Well,
    /// As a good server does, once the file has been replaced.
    Newer,
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
    let version = if manner == Manner::Newer { "\"v2\"" } else { VERSION };
    let wanted = text.lines().find_map(|l| l.strip_prefix("if-range: "));
    let first = text.lines().next().unwrap_or_default();
    log.lock().expect("the log").push(format!("{first} from {from:?}"));
    let total = archive.len();
    let (head, body) = match (manner, from) {
        (Manner::Missing, _) => ("404 Not Found\r\n".into(), &b""[..]),
        (Manner::Well | Manner::Newer, Some(from)) if from >= total => {
            (format!("416 Range Not Satisfiable\r\ncontent-range: bytes */{total}\r\n"), &b""[..])
        }
        (Manner::Well | Manner::Newer, Some(from)) if wanted.is_none_or(|w| w == version) => {
            let range = format!("content-range: bytes {from}-{}/{total}\r\n", total - 1);
            (format!("206 Partial Content\r\n{range}"), &archive[from..])
        }
        _ => ("200 OK\r\n".into(), archive),
    };
    let sent = if manner == Manner::Broken { &body[..body.len() / 2] } else { body };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {head}etag: {version}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // The client may have gone away.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent));
}

/// The archive of HB/small, with a right-hand side in front.
fn archive() -> Vec<u8> {
    archive_of(MATRIX)
}

fn archive_of(matrix: &str) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let noise: Vec<u8> =
        (0..40_000u32).map(|k| (k.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (name, content) in
        [("small/small_b.mtx", &noise[..]), ("small/small.mtx", matrix.as_bytes())]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, content).expect("an archive");
    }
    tar.into_inner().and_then(|gzip| gzip.finish()).expect("an archive")
}

const PART: &str = "HB.small.tar.gz.part";
const ORIGIN: &str = "HB.small.tar.gz.part.origin";

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
        let mut names: Vec<_> = entries.map(|e| name(e).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Fetches half of the archive.
    fn break_off(&self, path: &Path) {
        let error = self.fetch().to(path).expect_err("half").to_string();
        assert!(error.contains("the connection broke"), "{error}");
        assert_eq!(self.names(), [PART, ORIGIN]);
    }

    /// A part that holds `bytes` of an archive of `length`.
    fn leave(&self, bytes: &[u8], length: usize) {
        std::fs::write(self.path(PART), bytes).expect("a part");
        let address = &self.server.address;
        let origin = format!("{address}/HB/small.tar.gz\n{length}\n{VERSION}\n");
        std::fs::write(self.path(ORIGIN), origin).expect("its origin");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a matrix")
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
        place.break_off(&path);
        let fetched = place.fetch().to(&path).expect("a matrix");
        assert_eq!(fetched.resumed > 0, resumes, "{second:?}");
        assert_eq!(gustav_io::read_matrix_market::<f64>(&path).expect("a matrix").nnz(), 1);
        assert_eq!(place.names(), ["small.mtx.gz"]);
        assert!(place.asked()[1].contains("from Some("), "{:?}", place.asked());
    }
}

#[test]
fn a_part_of_another_matrix_or_version_is_not_gone_on_with() {
    let other = MATRIX.replace("3.5", "-1");
    // The file was replaced at the server meanwhile.
    let place = Place::new(archive_of(&other), &[Manner::Broken, Manner::Newer]);
    place.break_off(&place.path("small.mtx"));
    let fetched = place.fetch().to(&place.path("small.mtx")).expect("a matrix");
    assert_eq!((fetched.resumed, place.read("small.mtx")), (0, other.clone()));
    assert!(place.asked()[1].contains("from Some("), "{:?}", place.asked());

    // A matrix of the same name in another group, and the same name at another address.
    for name in ["Other/small", "HB/small"] {
        let place = Place::new(archive(), &[Manner::Broken]);
        place.break_off(&place.path("small.mtx"));
        let second = serve(archive_of(&other), &[Manner::Well]);
        let fetch = Fetch::new(name.parse().expect("a name")).base(&second.address);
        let fetched = fetch.to(&place.path("other.mtx")).expect("a matrix");
        assert_eq!((fetched.resumed, place.read("other.mtx")), (0, other.clone()), "{name}");
        assert!(second.asked.lock().expect("the log")[0].contains("from None"), "{name}");
    }

    // Nobody knows what these bytes are.
    let place = Place::new(archive(), &[Manner::Well]);
    std::fs::write(place.path(PART), &archive_of(&other)[..99]).expect("a part");
    let fetched = place.fetch().to(&place.path("small.mtx")).expect("a matrix");
    assert_eq!((fetched.resumed, place.read("small.mtx")), (0, MATRIX.to_string()));
    assert_eq!(place.names(), ["small.mtx"]);
}

#[test]
fn a_part_that_is_whole_is_not_fetched_again() {
    let place = Place::new(archive(), &[]);
    place.leave(&archive(), archive().len());
    let fetched = place.fetch().to(&place.path("small.mtx")).expect("a matrix");
    assert_eq!(fetched.resumed, fetched.bytes);
    assert_eq!(place.names(), ["small.mtx"]);
}

#[test]
fn a_part_of_something_longer_is_given_up() {
    let place = Place::new(archive(), &[Manner::Well, Manner::Well]);
    place.leave(&vec![0; 1 << 20], 2 << 20);
    let fetched = place.fetch().to(&place.path("small.mtx")).expect("a matrix");
    assert_eq!(fetched.resumed, 0);
    assert_eq!(place.asked().len(), 2, "{:?}", place.asked());
}

#[test]
fn the_checksum_at_the_end_of_the_archive_counts() {
    // The last eight bytes are the checksum and the length of what was compressed.
    for from_end in [1, 8] {
        let mut damaged = archive();
        let at = damaged.len() - from_end;
        damaged[at] ^= 1;
        let place = Place::new(damaged, &[Manner::Well]);
        std::fs::write(place.path("small.mtx"), "old").expect("a file");
        let error = place.fetch().to(&place.path("small.mtx")).expect_err("damaged").to_string();
        assert!(error.contains("fetch it again"), "{error}");
        assert_eq!(
            (place.names(), place.read("small.mtx")),
            (vec!["small.mtx".into()], "old".into())
        );
    }
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
    let error = error.to_string();
    for part in ["is there a network?", "--base or GUSTAV_COLLECTION"] {
        assert!(error.contains(part), "{error}");
    }
    let error = place.fetch().to(&place.path("small.npz")).expect_err("a format").to_string();
    assert!(error.contains("gustav convert"), "{error}");
}
