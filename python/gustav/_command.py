"""The command ``gustav``: that of the Rust crate, in the same process."""

import signal
import sys

from . import _gustav


def main() -> int:
    """Runs the command with the arguments of the program, and returns its exit status."""
    # Ctrl-C and a reader that goes away end the command as they end any program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _gustav.command(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
