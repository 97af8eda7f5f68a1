#!/usr/bin/env python3
"""Figure 1 of Yang, Buluç and Owens 2018 by hardware counters: achieved occupancy, warp efficiency and
instructions per cycle of our kernels of that paper and of cuSPARSE, from few long rows to many short ones.

Nsight Compute (`ncu`) reads the counters of one untimed execution of every kernel while `gustav bench`
measures a matrix of suite `paper-a`; clocks are left alone, caches are flushed before every pass. Of the
kernels of one engine the longest is kept. A kernel's matrices have no zeros and one length of rows.

The paper's own numbers: figure 1 and 4 are pictures; of instructions per cycle its text says that row
split executes 102 % more than cuSPARSE at 128 x 131072 (section 5.2).

usage: paper_a_ncu.py --gustav GUSTAV [--ncu NCU] [--suite SUITE.toml] [--seconds S] > counters.csv
"""

import argparse
import csv
import re
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from counters import add_arguments, number, profile

ROOT = Path(__file__).resolve().parent.parent
OURS = ["row-split", "nonzero-split", "merge-path"]
PEER = "cusparse-default"

# Column of the record, metric of Nsight Compute, factor.
METRICS = [
    ("time_us", "gpu__time_duration.sum", 1e-3),
    ("occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 0.01),
    ("warp_efficiency", "smsp__thread_inst_executed_per_inst_executed.ratio", 1 / 32),
    ("warp_efficiency_predicated", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
     1 / 32),
    ("ipc", "sm__inst_executed.avg.per_cycle_active", 1),
    ("ipc_elapsed", "sm__inst_executed.avg.per_cycle_elapsed", 1),
    ("occupancy_limit", "sm__maximum_warps_per_active_cycle_pct", 0.01),
    ("registers", "launch__registers_per_thread", 1),
    ("ctas", "launch__grid_size", 1),
    ("threads", "launch__block_size", 1),
    ("dram", "dram__throughput.avg.pct_of_peak_sustained_elapsed", 0.01),
    ("l2_hits", "lts__t_sector_hit_rate.pct", 0.01),
]
# (matrix, operation) -> the paper's instructions per cycle of row split over cuSPARSE's.
PAPER_IPC_RATIO = {("uniform:128x131072,131072", "spmm"): 2.02}


def sweep(suite):
    """The matrices without zeros of a suite: descriptions, rows, row lengths."""
    with open(suite, "rb") as file:
        sources = tomllib.load(file)["matrices"]
    listed = [s.get("generate", []) for s in sources]
    texts = [text for g in listed for text in ([g] if isinstance(g, str) else g)]
    for text in dict.fromkeys(texts):
        found = re.fullmatch(r"uniform:(\d+)x(\d+),(\d+)", text)
        if found and found.group(2) == found.group(3):
            yield text, int(found.group(1)), int(found.group(2))


def engine(kernel):
    """The engine that a kernel belongs to; none for those around the products."""
    for name in OURS:
        if re.fullmatch(name.replace("-", "_") + r"(\(.*\))?", kernel):
            return name
    return PEER if "cusparse" in kernel else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_arguments(parser)
    parser.add_argument("--suite", default=ROOT / "bench/suites/paper-a.toml")
    args = parser.parse_args()
    start = time.monotonic()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["matrix", "operation", "columns", "rows", "row_length", "algorithm", "kernel"]
                 + [name for name, _, _ in METRICS]
                 + ["ipc_over_vendor", "paper_ipc_over_vendor", "gpu", "driver"])
    matrices = list(sweep(args.suite))
    with tempfile.TemporaryDirectory() as folder:
        for operation, columns in [("spmm", 64), ("spmv", 1)]:
            for text, rows, length in matrices:
                if args.seconds and time.monotonic() - start > args.seconds:
                    print(f"left out: {text} {operation}", file=sys.stderr)
                    continue
                launched, gpu = profile(
                    args, Path(folder), source={"generate": text},
                    products={"operations": [operation], "columns": [64], "dtypes": ["f32"]},
                    engines={"ours": OURS, "peers": [PEER]},
                    metrics=[metric for _, metric, _ in METRICS])
                longest = {}
                for launch in launched:
                    name = engine(launch["Kernel Name"])
                    cost = float(number(launch[METRICS[0][1]], 1) or 0)
                    if name and cost > longest.get(name, (0, None))[0]:
                        longest[name] = (cost, launch)
                values = {
                    name: [number(launch.get(metric, ""), factor)
                           for _, metric, factor in METRICS]
                    for name, (_, launch) in longest.items()}
                ipc = [name for name, _, _ in METRICS].index("ipc")
                vendor = values.get(PEER)
                for name in [*OURS, PEER]:
                    if name not in values:
                        print(f"no kernel: {text} {operation} {name}", file=sys.stderr)
                        continue
                    kernel = re.sub(r"[<(].*", "", longest[name][1]["Kernel Name"])
                    over = f"{float(values[name][ipc]) / float(vendor[ipc]):.4g}" if vendor else ""
                    paper = PAPER_IPC_RATIO.get((text, operation), "") if name == OURS[0] else ""
                    out.writerow([text, operation, columns, rows, length, name,
                                  kernel.removeprefix("void ")] + values[name]
                                 + [over, paper, gpu["name"], gpu["driver"]])
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
