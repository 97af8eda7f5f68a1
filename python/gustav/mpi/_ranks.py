"""The ranks of a program."""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from types import TracebackType
from typing import Any

from .. import _gustav

# Variables by which a user says how many threads there are.
_THREADS = ("GUSTAV_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")


class _Preparing:
    """What reports an exception to the other ranks. It has no state, as it is entered at every call."""

    __slots__ = ("_native",)

    def __init__(self, native: _gustav.Ranks) -> None:
        self._native = native

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(e, Exception):
            words = f"{type(e).__name__}: {e}"
            self._native.fail(words.encode(errors="backslashreplace").decode())


class Ranks:
    """The ranks of a communicator, which is duplicated. Making it is collective.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm, optional
        An intracommunicator. Without one, all ranks of the job, on the MPI of the process or one that is found, which
        is initialised if nobody has done so.

    Attributes
    ----------
    rank, size : int
        The number of this rank, and how many there are.
    threads : int
        Threads of this rank's products: the cores of its host, divided by the ranks that may run on them, unless
        ``GUSTAV_NUM_THREADS`` or ``OMP_NUM_THREADS`` says a number. It may be set; plans that are there keep theirs.

    Raises
    ------
    RuntimeError
        When there is no MPI, or mpi4py uses another one than the process otherwise.
    """

    def __init__(self, communicator: Any = None) -> None:
        if communicator is None:
            native = _gustav.Ranks.world()
        else:
            native = _of_mpi4py(communicator)
        self._begin(native)

    def _begin(self, native: _gustav.Ranks) -> None:
        self._native = native
        if native.is_ours and native.size > 1:
            _abort_after_exceptions(weakref.ref(self))
        self._reporting = _Preparing(native)
        self.rank = native.rank
        self.size = native.size
        self.threads = self._default_threads()

    @classmethod
    def alone(cls) -> Ranks:
        """One rank, without an MPI."""
        ranks = cls.__new__(cls)
        ranks._begin(_gustav.Ranks.alone())
        return ranks

    def abort(self, status: int = 1) -> None:
        """Ends the job, of which this rank gives up alone: the others would wait for it.

        An exception that nobody catches does so by itself, where gustav has initialised MPI.

        Parameters
        ----------
        status : int
            The exit status of the job, if its launcher passes it on.
        """
        self._native.abort(status)

    def _default_threads(self) -> int:
        count = _gustav.get_num_threads()
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        # Collective, whatever the environment of this rank is: those of others may differ.
        mine = f"{self._native.host()} {cores}"
        sharing = self._native.gather_text(mine).count(mine[:1024])
        if any(name in os.environ for name in _THREADS):
            return count
        return max(1, count // max(1, sharing))

    def __repr__(self) -> str:
        return f"rank {self.rank} of {self._native.description}"

    def _preparing(self) -> _Preparing:
        """Work before a collective call: an exception in it is reported to the other ranks, which then do not wait."""
        return self._reporting


def _abort_after_exceptions(ranks: weakref.ref[Ranks]) -> None:
    """Has an exception that nobody catches end the job: MPI's end, for which this rank is responsible, waits for all."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        before(kind, error, traceback)
        alive = ranks()
        if alive is not None:
            print(f"rank {alive.rank} ends the job after {kind.__name__}", file=sys.stderr, flush=True)
            alive.abort()

    sys.excepthook = hook


def _of_mpi4py(communicator: Any) -> _gustav.Ranks:
    if not type(communicator).__module__.startswith("mpi4py"):
        raise TypeError(
            f"communicator: {type(communicator).__name__} is not taken; one of mpi4py.MPI is, such as COMM_WORLD, "
            "or none for all ranks of the job"
        )
    from mpi4py import MPI

    if communicator == MPI.COMM_NULL or communicator.is_inter:
        raise ValueError("communicator: a null or an inter-communicator is not taken; an intracommunicator is")
    size = MPI._sizeof(communicator)
    kind = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]
    handle = kind.from_address(MPI._addressof(communicator)).value
    return _gustav.Ranks.of(handle, size, MPI.Get_library_version())


def expect_ranks(ranks: Any) -> Ranks:
    """`ranks`, or the error that says how to make them."""
    if isinstance(ranks, Ranks):
        return ranks
    raise TypeError(f"ranks: {type(ranks).__name__} is not taken; gustav.mpi.Ranks(communicator) is, made once")
