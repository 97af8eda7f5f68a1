#!/usr/bin/env bash
# The CPU bars, losses included: builds, measures suite `cpu` and prints the summary.
#   bench/bars.sh [OUT.jsonl] [ONLY]
# OUT.jsonl (bars.jsonl when absent) keeps the records; run again to go on after an interruption.
# ONLY measures a part: op=spmv,dtype=f32. GUSTAV_PYTHON names an interpreter that has the
# packages of bench/peers/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
record=${1:-bars.jsonl}
only=${2:-}
if [ ! -d ../shared/corpus ]; then
  echo "../shared/corpus is not there: synthetic matrices only" >&2
fi
cargo build --release --package gustav-bench --features peers --example bench
"${CARGO_TARGET_DIR:-target}/release/examples/bench" cpu "$record" "$only"
