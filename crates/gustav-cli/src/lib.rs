//! The `gustav` command: one verb per file in `verbs/`. The program and the Python package run it.

mod args;
mod cuda;
mod failure;
mod interrupt;
mod limits;
mod measure;
mod mpi;
mod output;
mod picture;
mod product;
mod random;
mod source;
mod table;
mod types;
mod verbs;

use std::ffi::OsString;

/// Runs the command line `arguments`, the first of which is the name of the program, and returns
/// the exit status: 0 done, 1 a check failed, 2 an error, 130 stopped by Ctrl-C.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // Exceeding a file size limit must be an error of the write, not the end of the process.
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs none of our code.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
    // A command may assume that it has the machine for itself.
    gustav::buffer::reuse_blocks(gustav::buffer::total_memory().map_or(0, |bytes| bytes / 2));
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // One rank of a job says what is wrong with the arguments of all.
    let silent =
        arguments.iter().any(|a| a == "--mpi") && mpi::launched_rank().is_some_and(|r| r > 0);
    match verbs::parse(arguments) {
        Err(e) if silent && e.use_stderr() => failure::ERROR,
        Ok(cli) => failure::finish(verbs::run(cli)),
        Err(e) if e.use_stderr() => {
            // If writing to standard error fails, nothing can be reported.
            let _ = e.print();
            failure::ERROR
        }
        // Help and version are successes.
        Err(e) => failure::finish(e.print().map(|()| failure::Outcome::Done).map_err(Into::into)),
    }
}
