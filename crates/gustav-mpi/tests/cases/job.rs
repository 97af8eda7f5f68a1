//! Ranks that cases run on, and what they give back.

use gustav_core::Result;
use gustav_mpi::{Hosts, Ranks};
use gustav_testkit::battery::Settings;

/// Where cases run: on threads of this process, or in all processes of an MPI job, each of which runs the same cases.
pub trait Job {
    /// The numbers of ranks on which cases run.
    fn sizes(&self) -> Vec<usize>;

    /// The cases of a battery of `settings` that run: all of them, unless a job has too many ranks for that.
    fn settings(&self, settings: Settings) -> Settings {
        settings
    }

    /// What `work` gives on each of the ranks on `hosts`, in order. They send messages of up to `limit` bytes.
    ///
    /// # Errors
    /// That of a rank.
    fn on_ranks<P: Part>(
        &self,
        hosts: &Hosts,
        limit: usize,
        work: impl Fn(Ranks) -> Result<P> + Sync,
    ) -> Result<Vec<P>>;
}

/// What a rank gives, which goes to other ranks as bytes.
pub trait Part: Sized {
    fn to_bytes(&self) -> Vec<u8>;
    fn of_bytes(bytes: &[u8]) -> Self;
}

impl<T: bytemuck::Pod> Part for Vec<T> {
    fn to_bytes(&self) -> Vec<u8> {
        bytemuck::cast_slice(self).to_vec()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        values_of(bytes)
    }
}

/// The values that have these bytes, wherever they begin.
pub fn values_of<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
    values
}
