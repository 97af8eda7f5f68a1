#!/usr/bin/env bash
# Wheels for Linux on x86-64 and aarch64, checked: metadata, tag, and the installed command and package on this machine.
# One for every CPython from 3.10 on, and one for each free-threaded CPython that is on the path (python3.14t).
#   packaging/wheels.sh [OUT]
# OUT (target/wheels when absent) gets them. Needs Rust with both targets, and Python:
#   rustup target add x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath --canonicalize-missing "${1:-target/wheels}")
tools=$PWD/target/packaging-python
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check --requirement packaging/requirements.txt
export PATH=$tools/bin:$PATH

# zig links with the symbols of glibc 2.17, the oldest that Rust supports; maturin refuses a wheel that needs newer ones.
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
  build=(maturin build --release --zig --compatibility manylinux2014 --target "$target" --out "$out")
  "${build[@]}"
  for python in $(compgen -c | grep --extended-regexp '^python3\.[0-9]+t$' | sort --unique); do
    "${build[@]}" --interpreter "$python"
  done
done
twine check --strict "$out"/gustav-*.whl
for wheel in "$out"/gustav-*.whl; do
  shown=$(auditwheel show "$wheel")
  case $shown in *manylinux_2_17*) ;; *) echo "$shown" >&2; exit 1 ;; esac
done

# With nothing but Python: no compiler, no variable, not the package of this folder.
bare=$(mktemp --directory)
trap 'rm -r "$bare"' EXIT
python3 -m venv "$bare/venv"
cd "$bare"
env --ignore-environment "$bare/venv/bin/pip" install --quiet --disable-pip-version-check \
  "$out"/gustav-*-abi3-*"manylinux2014_$(uname --machine)"*.whl
said=$(env --ignore-environment "$bare/venv/bin/gustav" --version)
imported=$(env --ignore-environment "$bare/venv/bin/python" -c 'import gustav; print("gustav", gustav.__version__)')
[ "$said" = "$imported" ] || { echo "the command says $said, the package $imported" >&2; exit 1; }
env --ignore-environment "$bare/venv/bin/gustav" spmm gen:grid5:100x100 --columns 8 --verify
