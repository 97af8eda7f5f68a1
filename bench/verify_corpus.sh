#!/usr/bin/env bash
# Multiplies every matrix of a folder (default ../shared/corpus), each checked by the oracle:
# SpMM with 64 columns, SpMV and SpGEMM. Prints a line per product; exit status 1 when any
# is wrong. A product too large for its index type or for the memory is refused, not wrong.
set -uo pipefail
cd "$(dirname "$0")/.."
corpus=${1:-../shared/corpus}
if [ ! -d "$corpus" ]; then
    echo "no $corpus: nothing verified" >&2
    exit 2
fi
cargo build --release --quiet --package gustav-cli || exit 2
gustav=${CARGO_TARGET_DIR:-target}/release/gustav
words=$(mktemp)
trap 'rm -f "$words"' EXIT
failed=0
refused=0
count=0
for file in "$corpus"/*.mtx*; do
    for product in "spmm --columns 64" spmv spgemm; do
        verb=${product%% *}
        read -ra command <<< "$product"
        report=$("$gustav" "${command[@]}" "$file" --repeat 1 --verify --json --quiet 2> "$words")
        status=$?
        count=$((count + 1))
        if [ "$verb" = spgemm ] && [ $status -eq 2 ] && grep -qE 'does not fit in u32|out of memory' "$words"; then
            echo "$(basename "$file") $verb refused: $(cat "$words")"
            refused=$((refused + 1))
            continue
        fi
        cat "$words" >&2
        line=$(printf '%s' "$report" | tr -d '\n' |
            sed -E 's/.*"algorithm": "([^"]*)".*"verified": ([a-z]*),.*"max_error": ([^,]*),.*"error_bound": ([^,} ]*).*/\1 verified=\2 error=\3 bound=\4/')
        echo "$(basename "$file") $verb status=$status $line"
        [ $status -eq 0 ] || failed=$((failed + 1))
    done
done
echo "$count products, $failed failed, $refused refused"
[ $failed -eq 0 ] && [ "$count" -gt "$refused" ]
