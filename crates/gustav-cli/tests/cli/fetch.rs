//! `gustav fetch`: error messages. Downloads are tested in gustav-io with a local server.

use crate::support::Folder;

#[test]
fn a_failed_connection_is_explained() {
    let folder = Folder::new();
    // Nothing listens on port 9 (discard) of this machine.
    let message = folder.error("fetch HB/bcsstk16 --base http://127.0.0.1:9/MM");
    assert!(message.contains("127.0.0.1:9/MM/HB/bcsstk16.tar.gz"), "{message}");
    assert!(message.contains("is there a network?"), "{message}");
    assert!(message.contains("--base or GUSTAV_COLLECTION"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    let mut command = folder.command("fetch HB/bcsstk16");
    let run = command.env("GUSTAV_COLLECTION", "http://127.0.0.1:9").output().expect("gustav");
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("127.0.0.1:9/HB/bcsstk16.tar.gz"));
}

#[test]
fn requests_are_checked_before_any_network_access() {
    let folder = Folder::new();
    for (line, part) in [
        ("fetch bcsstk16", "HB/bcsstk16"),
        ("fetch HB/../x", "GROUP/NAME"),
        ("fetch HB/bcsstk16 -o a.npz", "gustav convert"),
        ("fetch HB/bcsstk16 --checksum md5:12", "sha256:"),
        ("fetch HB/bcsstk16 -o no/such/folder/a.mtx", "no/such/folder"),
    ] {
        let message = folder.error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
    assert!(folder.names().is_empty());
}
