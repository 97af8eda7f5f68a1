"""Times of calls on the CPU, side by side: for python_speed.py and python_training.py.

To be imported before what it measures: it says how long threads of OpenMP wait actively after a call.
"""

from __future__ import annotations

import os
import statistics
import time

# About a millisecond, on cores that the next side's threads need; by default those of MKL do so for 200 ms. METHODOLOGY.md
# says what less would cost.
os.environ.setdefault("KMP_BLOCKTIME", "1")
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

# Seconds after which the threads of the side before sleep, and calls of a turn that count.
ASLEEP = 0.003
COUNTED = 3


def in_turns(works, seconds, before=lambda: None):
    """Median seconds of each of `works`, by name, for about as many seconds in all.

    Each has turns of a few calls, of which those before the threads of the others sleep do not count. `before` runs before
    each call, and is not timed.
    """
    times = {name: [] for name in works}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or any(len(taken) < 2 * COUNTED for taken in times.values()):
        for name, work in works.items():
            begin, left = time.perf_counter(), COUNTED
            while left > 0:
                before()
                start = time.perf_counter()
                work()
                if start - begin > ASLEEP:
                    times[name].append(time.perf_counter() - start)
                    left -= 1
    return {name: statistics.median(taken) for name, taken in times.items()}
