#!/usr/bin/env python3
"""Occupancy and use of lanes of row split over figure 1's aspect ratios, computed from launches.

Neither is measured: occupancy is that of the busiest moment, from registers, threads and CTAs of a launch;
use of lanes is the share of lanes that hold a nonzero whenever a warp reads a batch of a row.

usage: paper_a_occupancy.py TABLE1.csv RECORDS.jsonl... > occupancy.csv
"""

import csv
import json
import math
import re
import sys

THREADS = 128
WARP = 32
# Of a multiprocessor of compute capability 9.0.
REGISTERS, MOST_THREADS = 65536, 2048
STRIP = 32


def resident_ctas(registers):
    """CTAs that the registers of a multiprocessor hold; they are given out eight at a time."""
    each = math.ceil(registers / 8) * 8 * THREADS
    return min(REGISTERS // each, MOST_THREADS // THREADS)


def main():
    table, *files = sys.argv[1:]
    with open(table, newline="") as file:
        registers = {row["operation"]: int(row["registers"]) for row in csv.DictReader(file)
                     if row["algorithm"] == "row-split"}
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["matrix", "operation", "algorithm", "rows", "row_length", "ctas",
                  "occupancy_computed", "lane_use_computed", "execute_ms", "ratio"])
    for name in files:
        with open(name) as lines:
            records = [json.loads(line) for line in lines]
        for r in records:
            if r["algorithm"] != "row-split" or not r["matrix"].startswith("uniform:"):
                continue
            lanes = re.search(r"lanes: (\d+)", r["reason"])
            lanes = int(lanes.group(1)) if lanes else WARP
            length, rows = r["max_row_length"], r["rows"]
            strips = math.ceil(r["columns"] / STRIP)
            ctas = math.ceil(rows * lanes / THREADS) * strips
            held = min(ctas / r["gpu"]["multiprocessors"], resident_ctas(registers[r["operation"]]))
            occupancy = held * THREADS / MOST_THREADS
            use = length / (math.ceil(length / lanes) * lanes)
            out.writerow([r["matrix"], r["operation"], r["algorithm"], rows, length, ctas,
                          f"{occupancy:.4f}", f"{use:.4f}", r["execute_ms"], r["ratio"]])


if __name__ == "__main__":
    main()
