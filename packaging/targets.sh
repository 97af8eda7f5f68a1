#!/usr/bin/env bash
# Compiles the libraries, the command and the Python module for platforms that no test runs on, without linking them.
#   packaging/targets.sh
# zig is the C compiler of each. Needs Rust with the targets, and Python:
#   rustup target add aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-gnu
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/target/packaging-python
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check --requirement packaging/requirements.txt
# No interpreter of the target is looked for.
export PYO3_NO_PYTHON=1 RUSTFLAGS="-D warnings"

# check TARGET TARGET-OF-ZIG
check() {
  local compiler=$tools/cc-$1 archiver=$tools/ar-$1
  # What the crate `cc` says of the target, zig says in another way.
  cat > "$compiler" <<END
#!/usr/bin/env bash
arguments=()
for a in "\$@"; do case \$a in --target=*) ;; *) arguments+=("\$a") ;; esac; done
exec "$tools/bin/python" -m ziglang cc -target $2 "\${arguments[@]}"
END
  printf '#!/usr/bin/env bash\nexec "%s" -m ziglang ar "$@"\n' "$tools/bin/python" > "$archiver"
  chmod +x "$compiler" "$archiver"
  env "CC_${1//-/_}=$compiler" "AR_${1//-/_}=$archiver" \
    cargo check --target "$1" --package gustav --package gustav-capi --package gustav-cli --package gustav-python
}
check aarch64-unknown-linux-gnu aarch64-linux-gnu
check aarch64-apple-darwin aarch64-macos
check x86_64-apple-darwin x86_64-macos
check x86_64-pc-windows-gnu x86_64-windows-gnu
