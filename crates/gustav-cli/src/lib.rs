//! The `gustav` command: one verb per file in `verbs/`. The program and the Python package run it.

mod args;
mod cuda;
mod failure;
mod interrupt;
mod limits;
mod measure;
mod output;
mod picture;
mod product;
mod random;
mod source;
mod table;
mod types;
mod verbs;

use std::ffi::OsString;

/// Does what the arguments ask for, the first of which is the name of the program, and returns the exit
/// status: 0 done, 1 a check failed, 2 an error, 130 stopped by Ctrl-C.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // A file that may not grow is an error of the write, not the end of the process.
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    // A command has the machine for itself while it runs.
    gustav::buffer::reuse_blocks(gustav::buffer::total_memory().map_or(0, |bytes| bytes / 2));
    match verbs::parse(arguments) {
        Ok(cli) => failure::finish(verbs::run(cli)),
        Err(e) if e.use_stderr() => {
            // Nothing is left to be told when standard error is gone too.
            let _ = e.print();
            failure::ERROR
        }
        // Help and version are what was asked for.
        Err(e) => failure::finish(e.print().map(|()| failure::Outcome::Done).map_err(Into::into)),
    }
}
