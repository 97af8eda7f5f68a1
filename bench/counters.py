"""Hardware counters of the kernels of one product, read by Nsight Compute (`ncu`) while `gustav bench` measures it.

Of every kernel one untimed execution is counted; clocks are left alone, caches are flushed before every pass.
"""

import csv
import io
import json
import subprocess
import sys


def add_arguments(parser):
    parser.add_argument("--gustav", required=True)
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--seconds", type=float, help="begin no matrix after so long")
    parser.add_argument("--patience", type=float, default=120, help="seconds for one product")


def profile(args, folder, *, source, products, engines, metrics):
    """Rows of Nsight Compute for the kernels of one product, and the GPU.

    `source` is an entry of a suite's `matrices`, and `products` and `engines` are its tables of these names."""
    suite, record, log = folder / "suite.toml", folder / "record.jsonl", folder / "ncu.csv"
    for old in (record, log):
        old.unlink(missing_ok=True)
    # A list or a text of JSON is one of TOML.
    def table(entries):
        return "".join(f"{key} = {json.dumps(value)}\n" for key, value in entries.items())

    suite.write_text(
        'name = "counters"\ndescription = "One product under a profiler."\ndevice = "cuda:0"\n'
        f"[[matrices]]\n{table(source)}[products]\n{table(products)}[engines]\n{table(engines)}"
        "[timing]\nwarmups = 1\nrounds = 1\nmin_rounds = 1\nrepeats = 1\nbudget_s = 0.0\n")
    command = [args.ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units",
               "base", "--kernel-id", ":::2", "--metrics", ",".join(metrics),
               "--log-file", log, args.gustav, "bench", suite, "--record", record, "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.patience)
    except subprocess.TimeoutExpired:
        sys.exit(f"{source} {engines}: no end within {args.patience} seconds; --patience takes more")
    report = log.read_text() if log.exists() else ""
    # Lines of Nsight Compute itself come before the table.
    lines = "\n".join(line for line in report.splitlines() if not line.startswith("=="))
    rows = list(csv.DictReader(io.StringIO(lines)))[1:]
    if not rows or not record.exists():
        sys.exit(f"{source} {engines}: {report}{done.stdout}{done.stderr}")
    return rows, json.loads(record.read_text().splitlines()[0])["gpu"]


def number(text, factor):
    text = text.replace(",", "")
    return f"{float(text) * factor:.6g}" if text not in ("", "n/a", "nan") else ""
