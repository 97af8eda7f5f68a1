"""The tables of the Python package's documentation, made of records.

    python bench/python_tables.py [--check]

Records of `python_speed.py` in `bench/records/python` are written between the marks of `docs/python/README.md`;
with --check nothing is written, and a difference is an error.
"""

from __future__ import annotations

import json
import math
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/python/README.md"
RECORDS = ROOT / "bench/records/python"


def read(name):
    return [json.loads(line) for line in (RECORDS / name).read_text().splitlines()]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def ratios_of(ratios):
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    lost = sum(r < 1.0 for r in ratios)
    return [len(ratios), *(f"{r:.2f}" for r in (mean, min(ratios), max(ratios))), lost]


HEAD = ["geomean", "worst", "best", "lost"]


def cpu():
    """Records on the CPU by their number of threads."""
    by_threads = {}
    for path in sorted(RECORDS.glob("cpu-*.jsonl")):
        records = read(path.name)
        by_threads[next(r["threads"] for r in records if r["part"] == "machine")] = records
    return dict(sorted(by_threads.items()))


def products():
    rows = []
    names = {"spmm": "`gustav.spmm`", "plan": "`plan.execute`"}
    for threads, records in cpu().items():
        of_part = [r for r in records if r["part"] == "products"]
        for peer in dict.fromkeys(r["peer"] for r in of_part):
            for engine, name in names.items():
                for what, has in (("1", lambda n: n == 1), ("8 to 128", lambda n: n >= 8)):
                    ratios = [
                        r["seconds_of_peer"] / r["seconds"]
                        for r in of_part
                        if r["peer"] == peer and r["engine"] == engine and has(r["columns"])
                    ]
                    rows.append([threads, peer, name, what, *ratios_of(ratios)])
    return table(["threads", "beside", "gustav", "columns", "cases", *HEAD], rows)


def pair(name):
    found = []
    for threads, records in cpu().items():
        for r in records:
            if r["part"] == "pairs" and r["name"] == name:
                found.append((threads, r))
    peer = found[0][1]["peer"]
    rows = []
    for threads, r in found:
        if "seconds" not in r:
            rows.append([threads, r["message"], "", ""])
            continue
        now, before = r["seconds"], r["seconds_of_peer"]
        rows.append([threads, f"{before * 1e3:.1f} ms", f"{now * 1e3:.1f} ms", f"{before / now:.1f}"])
    return table(["threads", f"before: {peer}", "now", "ratio"], rows)


def calls_of(records):
    rows = []
    for r in records:
        if r["part"] == "overhead":
            rows.append([f"`{r['call']}`" if "(" in r["call"] else r["call"], f"{r['microseconds']:.1f}"])
    return table(["call", "µs"], rows)


def calls():
    return calls_of(next(iter(cpu().values())))


def gpu_calls():
    return calls_of(read("gpu.jsonl"))


def gpu_machine():
    machine = next(r for r in read("gpu.jsonl") if r["part"] == "machine")
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    return f"On one {machine['gpu']}, beside {versions}:"


PARTS = {
    "spmm": ("product with 32 and 128 columns", "gustav plan"),
    "gcn step": ("training step of a GCN layer", "gustav.torch"),
    "gat step": ("training step of a GAT layer", "gustav.torch"),
}

# How steps were run, but for PyTorch's default.
HOW = {
    "calling thread": ", gradients in the caller's thread",
    "captured graph": ", replayed from a captured graph",
}


def gpu():
    records, rows = read("gpu.jsonl"), []
    # What failed at first has no times, and is refused in all ways to run a step.
    timed = [(r["part"], r.get("autograd")) for r in records if r["part"] in PARTS and r["status"] == "ok"]
    for part, autograd in sorted(dict.fromkeys(timed), key=lambda key: list(PARTS).index(key[0])):
        of_part = [r for r in records if r["part"] == part and r.get("autograd", autograd) == autograd]
        what, ours = PARTS[part]
        what += HOW.get(autograd, "")
        of_ours = {(r["graph"], r["width"]): r for r in of_part if r["engine"] == ours}
        for peer in dict.fromkeys(r["engine"] for r in of_part):
            if peer.startswith("gustav"):
                continue
            ratios, refused = [], 0
            for r in of_part:
                mine = of_ours[r["graph"], r["width"]]
                if r["engine"] != peer:
                    continue
                if r["status"] == mine["status"] == "ok":
                    ratios.append(r["seconds"] / mine["seconds"])
                else:
                    refused += 1
            found = ratios_of(ratios) if ratios else [0, *[""] * len(HEAD)]
            rows.append([what, peer, *found, refused])
    return table(["what", "beside", "cases", *HEAD, "refused"], rows)


def gpu_hosts():
    """Steps beside the path that most programs of PyG take, on every host that was measured."""
    rows = []
    for path in sorted(RECORDS.glob("gpu*.jsonl")):
        records = read(path.name)
        empty = next(r["microseconds"] for r in records if r.get("call") == "an empty operator")
        row = [f"{empty:.1f}"]
        for part, peer in (("gcn step", "pyg GCNConv edge_index cached"), ("gat step", "pyg GATConv edge_index")):
            for autograd in ("own thread", *HOW):
                of = {
                    (r["engine"], r["graph"]): r["seconds"]
                    for r in records
                    if r["part"] == part and r.get("autograd") == autograd and r["status"] == "ok"
                }
                ratios = [taken / of["gustav.torch", graph] for (engine, graph), taken in of.items() if engine == peer]
                row.append(f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f}")
        rows.append(row)
    head = ["µs of an empty operator"]
    head += [f"{layer}{how}" for layer in ("GCN", "GAT") for how in ("", *HOW.values())]
    return table(head, rows)


def cpu_machine():
    machines = [r for records in cpu().values() for r in records if r["part"] == "machine"]
    versions = machines[0]["versions"]
    said = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    load = " and ".join(f"{m['load']:.0f}" for m in machines)
    return (
        f"On {machines[0]['cores']} cores of {machines[0]['cpu']} with {said}. When the runs began, {load} threads wanted to "
        "run there, which costs most where two threads wait for each other:"
    )


def made(name):
    if name.startswith("pair "):
        return pair(name.removeprefix("pair "))
    tables = {
        "products": products,
        "calls": calls,
        "cpu machine": cpu_machine,
        "gpu machine": gpu_machine,
        "gpu": gpu,
        "gpu calls": gpu_calls,
        "gpu hosts": gpu_hosts,
    }
    return tables[name]()


def filled(text):
    """The page with the table of every mark."""
    mark = r"<!-- from bench/records/python: (.+?) begin -->\n.*?<!-- from bench/records/python: \1 end -->"

    def fill(match):
        begin, end = (f"<!-- from bench/records/python: {match[1]} {at} -->" for at in ("begin", "end"))
        return f"{begin}\n\n{made(match[1])}\n\n{end}"

    return re.sub(mark, fill, text, flags=re.DOTALL)


def main():
    text = PAGE.read_text()
    new = filled(text)
    if "--check" in sys.argv[1:]:
        if new != text:
            raise SystemExit("docs/python/README.md is not that of the records; run python bench/python_tables.py")
    else:
        PAGE.write_text(new)


if __name__ == "__main__":
    main()
