"""Runs the tests of products that peers have, on gustav, and writes the table of docs/python/peers.md.

Tests are the peers' own and unchanged; `adapters/` has packages of the peers' names that multiply by gustav. Fetch
the tests first, at the versions in `PEERS`, into a folder that is not under version control:

    python python/peers/run.py --fetch       # clones with git what is not there yet
    python python/peers/run.py               # runs them, and writes the table

It needs pytest, SciPy and PyTorch, no GPU, and the module `gustav` on the path.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FETCHED = ROOT / "target" / "peers"
PAGE = ROOT / "docs" / "python" / "peers.md"


@dataclass(frozen=True)
class Peer:
    name: str
    #: Of the tests; none where they are installed with the peer.
    address: str | None
    commit: str | None
    files: tuple[str, ...]
    #: What of a file is about products, as `pytest -k` takes it.
    filter: str = ""
    #: What these tests expect and gustav does otherwise, by the name of the test.
    differs: dict[str, str] = field(default_factory=dict)
    #: What else a reader of the counts has to know.
    note: str = ""


PEERS = (
    Peer(
        "pytorch_sparse",
        "https://github.com/rusty1s/pytorch_sparse",
        "91feaa5e28a2eb4ba983a9007d046112dbc92d97",
        ("test/test_matmul.py", "test/test_spmm.py", "test/test_spspmm.py"),
        differs={
            "test_matmul.py::test_spspmm": "ends with `torch.jit.script` of the function; what is before it passes",
        },
        note="Its three tests of SpGEMM return at once for float16 and bfloat16, and count as passed.",
    ),
    Peer(
        "DGL",
        "https://github.com/dmlc/dgl",
        "3d16000b4170fa741ed9e9667f22ba84d3493026",
        tuple(f"tests/python/pytorch/sparse/test_{name}.py" for name in ("matmul", "sddmm", "softmax")),
        differs={
            "test_spspmm_duplicate": "wants two entries in one position refused; gustav adds them, and refuses "
            "them where a gradient is asked for",
        },
    ),
    Peer(
        "CuPy",
        "https://github.com/cupy/cupy",
        "6b6d9563c4f7410cd1866a11b2f71a60dd45a68c",
        ("tests/cupyx_tests/scipy_tests/sparse_tests/test_csr.py",),
        filter="mul or dot or pow or matvec",
    ),
    Peer("SciPy", None, None, ("python/tests/test_scipy_suite.py",), filter="mul or dot or pow or matvec"),
)


def fetch(peer: Peer) -> None:
    folder = FETCHED / peer.name
    if peer.address is None or folder.exists():
        return
    git = ["git", "-C", str(folder)]
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    subprocess.run([*git, "remote", "add", "origin", peer.address], check=True)
    subprocess.run([*git, "fetch", "--quiet", "--depth=1", "origin", str(peer.commit)], check=True)
    subprocess.run([*git, "checkout", "--quiet", "FETCH_HEAD"], check=True)


class Outcomes:
    """A plugin of pytest that notes how each test ended, and why it was skipped."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []

    def pytest_runtest_setup(self) -> None:
        # Tests of PyTorch begin with whatever seed there is.
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(0)

    def pytest_runtest_logreport(self, report) -> None:
        if report.when != "call" and not (report.when == "setup" and report.outcome != "passed"):
            return
        why = ""
        if report.skipped:
            skipped = isinstance(report.longrepr, tuple)
            why = report.longrepr[2] if skipped else f"an expected failure of its own: {report.wasxfail}"
        elif report.failed:
            why = str(getattr(report.longrepr, "reprcrash", report.longrepr))
        self.found.append({"test": report.nodeid, "outcome": report.outcome, "why": why})


def run_here(peer: Peer, to: Path) -> None:
    """Runs the tests of a peer in this process, whose modules are its adapters'."""
    import pytest

    sys.path.insert(0, str(ROOT / "python"))
    folder = ROOT if peer.address is None else FETCHED / peer.name
    outcomes = Outcomes()
    arguments = [str(folder / name) for name in peer.files]
    if peer.address is not None:
        sys.path.insert(0, str(Path(__file__).parent / "adapters"))
        arguments += ["-c", os.devnull, "--rootdir", str(folder)]
        # As their own settings have it: several files of one name.
        arguments += ["--import-mode=importlib"]
        for file in peer.files:
            if not (folder / file).exists():
                sys.exit(f"{folder / file} is missing; run with --fetch")
    if peer.filter:
        arguments += ["-k", peer.filter]
    pytest.main(["--quiet", "--no-header", "-p", "no:cacheprovider", *arguments], plugins=[outcomes])
    to.write_text(json.dumps(outcomes.found))


@dataclass
class Row:
    peer: Peer
    passed: int
    skipped: Counter[str]
    differs: Counter[str]
    failed: list[dict[str, str]]

    @property
    def all(self) -> int:
        return self.passed + self.skipped.total() + self.differs.total() + len(self.failed)

    @property
    def apply(self) -> int:
        return self.passed + len(self.failed)


def run(peer: Peer) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "outcomes.json"
        subprocess.run([sys.executable, __file__, "--here", peer.name, "--to", str(to)], check=True)
        found = json.loads(to.read_text())
    row = Row(peer, 0, Counter(), Counter(), [])
    for one in found:
        names = [name for name in peer.differs if f"{name}[" in one["test"] + "["]
        match one["outcome"], names:
            case "passed", _:
                row.passed += 1
            case "skipped", _:
                row.skipped[one["why"].removeprefix("Skipped: ")] += 1
            case _, [name]:
                row.differs[peer.differs[name]] += 1
            case _:
                row.failed.append(one)
    if not row.all:
        sys.exit(f"{peer.name}: no test was found")
    return row


def page(rows: list[Row]) -> str:
    lines = [
        "# Tests of peers, run on gustav",
        "",
        "Written by `python python/peers/run.py`, which says how to fetch the tests; do not edit. The tests are the",
        "peers' own at the versions below, those that are about products, on the CPU; packages of the peers' names",
        "(`python/peers/adapters`) multiply by gustav.",
        "",
        "| peer | version | tests | apply | pass |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        peer = row.peer
        version = f"[{peer.commit[:7]}]({peer.address}/tree/{peer.commit})" if peer.commit else installed(peer)
        lines.append(f"| {peer.name} | {version} | {row.all} | {row.apply} | {row.passed} |")
    lines += ["", "What does not apply:", "", "| peer | tests | why |", "|---|---|---|"]
    for row in rows:
        for why, count in [*row.differs.items(), *sorted(row.skipped.items())]:
            lines.append(f"| {row.peer.name} | {count} | {why.replace('|', '/')} |")
    lines += [line for row in rows if row.peer.note for line in ("", f"{row.peer.name}: {row.peer.note}")]
    files = (f"{row.peer.name}: " + ", ".join(f"`{f}`" for f in row.peer.files) for row in rows)
    lines += ["", "Files:", "", *(f"- {text}" for text in files)]
    return "\n".join(lines) + "\n"


def installed(peer: Peer) -> str:
    from importlib.metadata import version

    return version(peer.name.lower())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="clone the tests that are not there yet")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        run_here(next(peer for peer in PEERS if peer.name == options.here), options.to)
        return
    if options.fetch:
        for peer in PEERS:
            fetch(peer)
        return
    rows = [run(peer) for peer in PEERS]
    PAGE.write_text(page(rows))
    failed = [one for row in rows for one in row.failed]
    for one in failed:
        print(f"failed: {one['test']}: {one['why']}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
