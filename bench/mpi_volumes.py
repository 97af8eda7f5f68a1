"""What ranks would send each other in an SpMM of 64 columns in f32, counted by `gustav plan --mpi-ranks`.

    python bench/mpi_volumes.py GUSTAV OUT.csv MATRIX ...

GUSTAV is the command; a matrix is a file or `gen:` and a description. A matrix that takes longer than `SECONDS` is left
out, and said so.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

SECONDS = 600
RANKS = "4,16,64,256,1024"
KEYS = ("bytes", "messages", "most_sent_bytes", "most_received_bytes", "imbalance", "communication_imbalance")


def lines(report, matrix):
    """The lines of a report of the command."""
    generated = matrix.startswith("gen:")
    path = Path(matrix)
    for forecast in report["forecasts"]:
        way = forecast["communication"]
        short = {"all of B to all": "all"}.get(way, way.partition(",")[0])
        yield {
            "folder": "generated" if generated else path.parent.name,
            "matrix": matrix[4:].replace(",", ";") if generated else path.name.partition(".")[0],
            "rows": report["rows"],
            "nnz": report["nnz"],
            "ranks": forecast["ranks"],
            "communication": short,
            "copies": forecast["replication"],
            **{key: forecast[key] for key in KEYS},
        }


def main():
    gustav, out, *matrices = sys.argv[1:]
    writer = None
    with open(out, "w", newline="") as file:
        for matrix in matrices:
            # The rate of the model, which is not recorded, is not measured.
            options = ["--columns", "64", "--mpi-ranks", RANKS, "--rate", "1e9", "--json"]
            try:
                done = subprocess.run(
                    [gustav, "plan", matrix, *options], capture_output=True, text=True, timeout=SECONDS, check=True
                )
            except subprocess.SubprocessError as e:
                print(f"left out: {matrix}: {e}", file=sys.stderr)
                continue
            for line in lines(json.loads(done.stdout), matrix):
                if writer is None:
                    writer = csv.DictWriter(file, line, lineterminator="\n")
                    writer.writeheader()
                writer.writerow({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in line.items()})
            file.flush()


if __name__ == "__main__":
    main()
