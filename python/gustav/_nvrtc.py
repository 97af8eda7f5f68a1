"""Where NVRTC, CUDA's run-time compiler, may lie among what is installed for Python.

Its library is in a wheel of NVIDIA's or in that of PyTorch, which the system's loader does not search. Nothing of these
packages is imported, nor does anybody have to set ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

# Where wheels for CUDA 13 and 12 have it, below the package ``nvidia``.
_WHEELS = ("cu13/lib", "cuda_nvrtc/lib", "cu13/bin/x86_64", "cu13/bin", "cuda_nvrtc/bin")
# Distributions whose files are looked through where the package is not found by its name.
_DISTRIBUTIONS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")


def folders() -> list[str]:
    """Folders that exist, those of NVIDIA's wheels first.

    Examples
    --------
    >>> from gustav import _nvrtc
    >>> all(isinstance(folder, str) for folder in _nvrtc.folders())
    True
    """
    candidates = [place / wheel for wheel in _WHEELS for place in _places("nvidia")]
    candidates += _of_distributions()
    candidates += [place / "lib" for place in _places("torch")]
    return [str(folder) for folder in dict.fromkeys(candidates) if folder.is_dir()]


def _places(package: str) -> list[Path]:
    """The folders of a package, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    locations = None if spec is None else spec.submodule_search_locations
    return [] if locations is None else [Path(place) for place in locations]


def _of_distributions() -> list[Path]:
    found = []
    for name in _DISTRIBUTIONS:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found += [Path(str(file.locate())).parent for file in files if "nvrtc" in file.name]
    return found
