"""The examples do what they say."""

import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_gcn_learns_communities():
    # One in five by chance.
    assert example("gcn").train(nodes=600, epochs=60) > 0.9
