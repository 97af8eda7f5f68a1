"""The version is said once, and is the same wherever a user asks for it."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import gustav
import pytest

tomllib = pytest.importorskip("tomllib")  # Python 3.11


def test_the_command_and_the_package_are_of_one_version():
    command = [sys.executable, "-m", "gustav._command", "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found == f"gustav {gustav.__version__}\n"


def test_the_version_is_that_of_the_workspace():
    manifest = Path(__file__).parents[2] / "Cargo.toml"
    workspace = tomllib.loads(manifest.read_text())["workspace"]
    said = workspace["package"]["version"]
    assert gustav.__version__ == said
    crates = {name: d for name, d in workspace["dependencies"].items() if name.startswith("gustav")}
    assert {d["version"] for d in crates.values() if "version" in d} == {said}
    assert f"\n## {said}" in (manifest.parent / "CHANGELOG.md").read_text()


def test_the_wheel_is_of_the_same_version():
    try:
        found = version("gustav")
    except PackageNotFoundError:
        pytest.skip("gustav is not installed, but on the path")
    assert found == gustav.__version__
