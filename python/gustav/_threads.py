"""The threads that products run on."""

from __future__ import annotations

from . import _gustav


def set_num_threads(count: int) -> None:
    """Sets how many threads products on the CPU run on where a call does not say.

    Before, it is what ``GUSTAV_NUM_THREADS``, ``OMP_NUM_THREADS`` or ``RAYON_NUM_THREADS`` says, the first that is set,
    else one for each core. A forked child begins with one.

    Raises
    ------
    ValueError
        For 0, and for more than the system gives.

    Examples
    --------
    >>> import gustav
    >>> before = gustav.get_num_threads()
    >>> gustav.set_num_threads(2)
    >>> gustav.get_num_threads()
    2
    >>> gustav.set_num_threads(before)
    """
    _gustav.set_num_threads(count)


def get_num_threads() -> int:
    """How many threads products on the CPU run on where a call does not say; see :func:`set_num_threads`.

    Examples
    --------
    >>> import gustav
    >>> gustav.get_num_threads() >= 1
    True
    """
    return _gustav.get_num_threads()
