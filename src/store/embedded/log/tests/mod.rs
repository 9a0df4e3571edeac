//! Tests of the log.

mod crash;
mod history;
mod real;
mod sim;
