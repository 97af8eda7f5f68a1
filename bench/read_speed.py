#!/usr/bin/env python3
"""Reading Matrix Market files: gustav beside the Python package fast_matrix_market.

    python bench/read_speed.py [--threads 2,1] [--repeat 9] [--record OUT.csv] FILE.mtx ...
    python bench/read_speed.py --generate 10000000 FILE.mtx      # then as above

Needs numpy, scipy and fast_matrix_market, and `cargo build --release -p gustav-io
--example read_speed`. Both read the same uncompressed file with the same number of threads,
interleaved; medians are compared. gustav's time ends with CSR (f64, u32), that of
fast_matrix_market with COO triplets; the column "to CSR" adds SciPy's conversion to the latter.
Before timing, both matrices are compared entry by entry; a difference is printed as WRONG.
With --record, a line per file and number of threads goes into a table (COLUMNS says of what), which
the README's is made from.
"""

import argparse
import csv
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time

import fast_matrix_market
import numpy as np
import scipy.sparse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


COLUMNS = ["file", "bytes", "threads", "gustav_ms", "fast_matrix_market_ms",
           "fast_matrix_market_to_csr_ms", "fast_matrix_market"]


class Gustav:
    """The example program, one process per file and number of threads."""

    def __init__(self, binary, path, threads):
        self.process = subprocess.Popen(
            [binary, path, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("read_speed ended")
        return answer.split()

    def seconds(self):
        return float(self.ask("read")[0])

    def matrix(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "a")
            shape = tuple(int(n) for n in self.ask("save " + prefix))
            offsets = np.fromfile(prefix + ".offsets", np.uint32).astype(np.int64)
            indices = np.fromfile(prefix + ".indices", np.uint32).astype(np.int64)
            values = np.fromfile(prefix + ".values", np.float64)
        return scipy.sparse.csr_matrix((values, indices, offsets), shape=shape)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def triplets(path, threads):
    return fast_matrix_market.read_coo(path, parallelism=threads)


def to_csr(coo):
    (values, (rows, cols)), shape = coo
    return scipy.sparse.coo_matrix((values, (rows, cols)), shape=shape).tocsr()


def same(ours, theirs):
    ours.sum_duplicates()
    theirs = theirs.astype(np.float64)
    theirs.sum_duplicates()
    return (
        ours.shape == theirs.shape
        and np.array_equal(ours.indptr, theirs.indptr)
        and np.array_equal(ours.indices, theirs.indices)
        and np.array_equal(ours.data, theirs.data, equal_nan=True)
    )


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def compare(binary, path, threads, repeat):
    gustav = Gustav(binary, path, threads)
    if not same(gustav.matrix(), to_csr(triplets(path, threads))):
        print(f"{os.path.basename(path):32} WRONG")
        return None
    ours, theirs, converted = [], [], []
    for _ in range(repeat):
        ours.append(gustav.seconds())
        seconds, coo = timed(lambda: triplets(path, threads))
        theirs.append(seconds)
        converted.append(seconds + timed(lambda: to_csr(coo))[0])
    gustav.close()
    ours, theirs, converted = (statistics.median(t) for t in (ours, theirs, converted))
    size = os.path.getsize(path)
    megabytes = size / 1e6
    print(
        f"{os.path.basename(path):32} {threads:7} {megabytes:8.1f} {ours * 1e3:10.2f}"
        f" {theirs * 1e3:10.2f} {theirs / ours:7.2f} {converted / ours:7.2f}"
        f" {megabytes / ours:8.0f}",
        flush=True,
    )
    times = [round(1e3 * t, 3) for t in (ours, theirs, converted)]
    version = importlib.metadata.version("fast_matrix_market")
    return dict(zip(COLUMNS, [os.path.basename(path), size, threads, *times, version]))


def write(path, rows):
    """The table as a whole: a run that breaks off leaves the old one."""
    with open(path + ".part", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    os.replace(path + ".part", path)


def generate(entries, path):
    random = np.random.default_rng(1)
    n = max(1, entries // 10)
    rows, cols = random.integers(0, n, entries), random.integers(0, n, entries)
    matrix = scipy.sparse.coo_matrix((random.standard_normal(entries), (rows, cols)), shape=(n, n))
    fast_matrix_market.mmwrite(path, matrix.tocsr().tocoo())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="2,1")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--generate", type=int, metavar="ENTRIES")
    parser.add_argument("--record", metavar="OUT.csv")
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    parser.add_argument("--binary", default=os.path.join(target, "release/examples/read_speed"))
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    if options.generate:
        for path in options.files:
            generate(options.generate, path)
        return 0
    print(
        f"{'file':32} {'threads':>7} {'MB':>8} {'gustav ms':>10} {'fmm ms':>10}"
        f" {'ratio':>7} {'to CSR':>7} {'MB/s':>8}"
    )
    rows, wrong = [], False
    for threads in (int(t) for t in options.threads.split(",")):
        for path in options.files:
            row = compare(options.binary, path, threads, options.repeat)
            wrong |= row is None
            rows += [row] if row else []
    if options.record and rows and not wrong:
        write(options.record, rows)
    if rows:
        ratios = [row["fast_matrix_market_ms"] / row["gustav_ms"] for row in rows]
        geomean = statistics.geometric_mean(ratios)
        print(f"ratio fmm / gustav: geomean {geomean:.2f}, worst {min(ratios):.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
