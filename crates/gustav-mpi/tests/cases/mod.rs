//! Products over ranks on the battery and on random matrices, against the oracle: by threads in `tests/products`, by
//! processes in `tests/mpi`.

/// Calls of a `Communicator` that another answers, which `self.inner()` gives, by their names.
macro_rules! of_inner {
    ($($call:ident)*) => { $(crate::cases::of_inner!(@ $call);)* };
    (@ rank) => { fn rank(&self) -> usize { self.inner().rank() } };
    (@ size) => { fn size(&self) -> usize { self.inner().size() } };
    (@ description) => { fn description(&self) -> String { self.inner().description() } };
    (@ host) => { fn host(&self) -> String { self.inner().host() } };
    (@ message_limit) => { fn message_limit(&self) -> usize { self.inner().message_limit() } };
    (@ barrier) => { fn barrier(&self) -> gustav_core::Result<()> { self.inner().barrier() } };
    (@ abort) => { fn abort(&self, status: i32) { self.inner().abort(status); } };
    (@ all_reduce_max) => {
        fn all_reduce_max(&self, numbers: &mut [u64]) -> gustav_core::Result<()> {
            self.inner().all_reduce_max(numbers)
        }
    };
    (@ all_gather) => {
        fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> gustav_core::Result<()> {
            self.inner().all_gather(mine, all)
        }
    };
    (@ all_to_all) => {
        fn all_to_all(&self, to: &[u64], from: &mut [u64]) -> gustav_core::Result<()> {
            self.inner().all_to_all(to, from)
        }
    };
}
pub(crate) use of_inner;

pub mod copies;
pub mod job;
pub mod random;
pub mod rows;
pub mod sddmm;
pub mod spgemm;
pub mod spmm;
pub mod spmv;
pub mod spread;
