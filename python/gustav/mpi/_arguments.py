"""Arguments of calls over ranks. They are checked before any communication, so that an error in one is reported to all
ranks."""

from __future__ import annotations

import operator
from typing import Any

from .. import _families

# Numbers of the library have 64 bits.
_LIMIT = 2**63


def count(name: str, value: Any, least: int = 0) -> int:
    """`value` as a whole number from `least` on."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {value!r} is not taken; give a whole number from {least} on") from None
    if not least <= number < _LIMIT:
        raise ValueError(f"{name}: {number} is not valid; give a whole number from {least} on, below 2**63")
    return number


def counts(name: str, values: Any) -> list[int]:
    """Whole numbers, one for each rank."""
    try:
        listed = list(values)
    except TypeError:
        raise TypeError(f"{name}: {values!r} is not taken; give a whole number for each rank") from None
    return [count(name, value) for value in listed]


def flag(name: str, value: Any) -> bool:
    """`value`, which is true or false, of Python or of NumPy."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name}: {value!r} is not taken; give True or False")
    return bool(value)


def word(name: str, value: Any, examples: str) -> str:
    """`value` as a name, such as `examples`."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: {value!r} is not taken; give a name, such as {examples}")
    return _text(name, value)


def dtype(value: Any) -> str:
    """The name of a type of values; which are taken the library knows."""
    return _text("dtype", _families.dtype_name(value))


def _text(name: str, value: str) -> str:
    """`value`, if it is text: Python's strings may hold halves of characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: {value!a} is no text") from None
    return str(value)


def semiring(value: Any) -> str:
    """The name of a semiring; which there are the library knows."""
    return word("semiring", value, '"plus_times" or "min_plus"')


def copies(value: Any) -> str:
    """A number of copies, or "auto", as the library takes it."""
    return "auto" if isinstance(value, str) and value == "auto" else str(count("copies", value, 1))


def device(value: Any) -> int | None:
    """The number of a GPU, or none for host memory."""
    number = None if value is None else count("device", value)
    # That of the driver has 31 bits.
    if number is not None and number >= 2**31:
        raise ValueError(f"device: {number} is not valid; give the number of a GPU")
    return number
