//! Tests of the program: outputs, messages, exit statuses, files.

mod bench;
mod compare;
mod corpus;
mod documents;
mod errors;
mod fetch;
mod files;
mod gpu;
mod info;
mod mpi;
mod products;
mod report;
mod support;
mod terminal;
mod tune;
