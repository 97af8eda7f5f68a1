#!/usr/bin/env python3
"""Why the kernels of the study of row permutations are slower or faster than cuSPARSE, by hardware counters: lanes with
work, bytes that are loaded and those of L2, hits, instructions, on matrices of short and of long rows.

Of every kernel of `gustav bench` one execution is counted, so each configuration has a run of its own. See `counters.py`.

usage: paper_c_ncu.py --gustav GUSTAV [--ncu NCU] [--seconds S] > counters.csv
"""

import argparse
import csv
import re
import sys
import tempfile
import time
from pathlib import Path

from counters import add_arguments, number, profile

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 64
# As the study has the kernel, and its strips of eight columns with as many CTAs as fill the chip.
PEER = "cusparse-default"
# Engines that a run measures, and a part of the names of their kernels.
RUNS = [
    {"output-stationary": "output_stationary", PEER: "cusparse"},
    {"output-stationary#7": "output_stationary", "dcsr#7": "dcsr"},
]
GENERATED = ["grid5:170x170", "fem:20x20x20,3", "rmat:14,16", "uniform:20000x20000,16", "sparse:4096x4096,0.9"]
REAL = ["SiH4", "BlogCatalog3", "bcsstk16", "ca-HepPh"]

# Column of the record, metric of Nsight Compute, factor.
METRICS = [
    ("time_us", "gpu__time_duration.sum", 1e-3),
    ("occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 0.01),
    ("lanes", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", 1),
    ("instructions", "smsp__inst_executed.sum", 1),
    ("ipc", "sm__inst_executed.avg.per_cycle_elapsed", 1),
    ("sectors_per_load", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", 1),
    ("loaded_bytes", "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum", 1),
    ("l1_hits", "l1tex__t_sector_hit_rate.pct", 0.01),
    ("l2_bytes", "lts__t_bytes.sum", 1),
    ("l2_hits", "lts__t_sector_hit_rate.pct", 0.01),
    ("dram_bytes", "dram__bytes.sum", 1),
    ("registers", "launch__registers_per_thread", 1),
    ("ctas", "launch__grid_size", 1),
    ("threads", "launch__block_size", 1),
]


def sources():
    """Names of matrices, and entries of a suite for them; real ones as far as they are there."""
    for text in GENERATED:
        yield text, {"generate": text}
    for name in REAL:
        found = sorted(ROOT.parent.glob(f"shared/corpus*/{name}.mtx*"))
        if found:
            yield name, {"path": str(found[0])}
        else:
            print(f"not there: {name}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_arguments(parser)
    args = parser.parse_args()
    start = time.monotonic()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["matrix", "columns", "algorithm", "kernel"] + [name for name, _, _ in METRICS] + ["gpu", "driver"])
    with tempfile.TemporaryDirectory() as folder:
        for name, source in sources():
            for run in RUNS:
                if args.seconds and time.monotonic() - start > args.seconds:
                    print(f"left out: {name} {', '.join(run)}", file=sys.stderr)
                    continue
                launched, gpu = profile(
                    args, Path(folder), source=source,
                    products={"operations": ["spmm"], "columns": [COLUMNS], "layouts": ["column-major"],
                              "dtypes": ["f32"]},
                    engines={"ours": [engine for engine in run if engine != PEER],
                             "peers": [engine for engine in run if engine == PEER]},
                    metrics=[metric for _, metric, _ in METRICS])
                for engine, part in run.items():
                    # A peer may launch several kernels.
                    own = [launch for launch in launched if part in launch["Kernel Name"]]
                    longest = max(own, key=lambda launch: float(number(launch[METRICS[0][1]], 1) or 0), default=None)
                    if longest is None:
                        print(f"no kernel: {name} {engine}", file=sys.stderr)
                        continue
                    kernel = re.sub(r"[<(].*", "", longest["Kernel Name"]).removeprefix("void ")
                    values = [number(longest.get(metric, ""), factor) for _, metric, factor in METRICS]
                    out.writerow([name, COLUMNS, engine, kernel] + values + [gpu["name"], gpu["driver"]])
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
