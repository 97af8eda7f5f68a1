//! Ctrl-C during long work: the first asks it to stop where nothing is left half done, the second
//! ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
extern "C" fn ask(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
    // SAFETY: the function may be called in a handler; the default action is no code of ours.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
}

/// While it lives, Ctrl-C asks instead of ending the process.
#[derive(Debug)]
pub struct Interrupt {
    #[cfg(unix)]
    before: libc::sighandler_t,
}

impl Interrupt {
    /// Takes the signal over, unless the process was told to ignore it.
    pub fn new() -> Self {
        ASKED.store(false, Ordering::Relaxed);
        #[cfg(unix)]
        {
            let handler = ask as extern "C" fn(libc::c_int) as libc::sighandler_t;
            // SAFETY: the handler stores to an atomic and calls nothing that handlers may not call.
            let before = unsafe { libc::signal(libc::SIGINT, handler) };
            if before == libc::SIG_IGN {
                // SAFETY: ignoring a signal runs no code of ours.
                unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
            }
            Interrupt { before }
        }
        #[cfg(not(unix))]
        Interrupt {}
    }

    /// Whether Ctrl-C was pressed.
    pub fn is_asked(&self) -> bool {
        ASKED.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: what was there before.
        unsafe {
            libc::signal(libc::SIGINT, self.before)
        };
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_signal_asks_while_somebody_listens() {
        let raised = |before: libc::sighandler_t| {
            // SAFETY: no handler of another test stands there; the first action is one of the system's.
            unsafe { libc::signal(libc::SIGINT, before) };
            let interrupt = Interrupt::new();
            assert!(!interrupt.is_asked());
            // SAFETY: the signal goes to the handler above, or is ignored.
            assert_eq!(unsafe { libc::raise(libc::SIGINT) }, 0);
            interrupt.is_asked()
        };
        assert!(raised(libc::SIG_DFL));
        // As of a program in the background.
        assert!(!raised(libc::SIG_IGN));
        assert!(!Interrupt::new().is_asked());
    }
}
