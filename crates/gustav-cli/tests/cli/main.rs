//! The program as its users meet it: outputs, messages, exit statuses, files.

mod corpus;
mod documents;
mod errors;
mod files;
mod info;
mod products;
mod support;
