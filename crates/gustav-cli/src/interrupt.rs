//! Ctrl-C during long work: the first requests a stop at the next consistent state, the second ends
//! the process.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
extern "C" fn request(_: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
    // SAFETY: `signal` is async-signal-safe; the default action runs none of our code.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
}

/// While it lives, Ctrl-C sets a flag instead of ending the process.
#[derive(Debug)]
pub struct Interrupt {
    #[cfg(unix)]
    before: libc::sighandler_t,
}

impl Interrupt {
    /// Installs a handler, unless the process ignores the signal.
    pub fn new() -> Self {
        REQUESTED.store(false, Ordering::Relaxed);
        #[cfg(unix)]
        {
            let handler = request as extern "C" fn(libc::c_int) as libc::sighandler_t;
            // SAFETY: the handler stores to an atomic and calls only async-signal-safe functions.
            let before = unsafe { libc::signal(libc::SIGINT, handler) };
            if before == libc::SIG_IGN {
                // SAFETY: ignoring a signal runs none of our code.
                unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
            }
            Interrupt { before }
        }
        #[cfg(not(unix))]
        Interrupt {}
    }

    /// Whether Ctrl-C was pressed.
    pub fn is_asked(&self) -> bool {
        REQUESTED.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: restores the previous handler.
        unsafe {
            libc::signal(libc::SIGINT, self.before)
        };
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_signal_sets_the_flag_unless_it_is_ignored() {
        let raised = |before: libc::sighandler_t| {
            // SAFETY: no other test installs a handler; `before` is an action of the system.
            unsafe { libc::signal(libc::SIGINT, before) };
            let interrupt = Interrupt::new();
            assert!(!interrupt.is_asked());
            // SAFETY: the signal goes to the handler above, or is ignored.
            assert_eq!(unsafe { libc::raise(libc::SIGINT) }, 0);
            interrupt.is_asked()
        };
        assert!(raised(libc::SIG_DFL));
        // As in a background process.
        assert!(!raised(libc::SIG_IGN));
        assert!(!Interrupt::new().is_asked());
    }
}
