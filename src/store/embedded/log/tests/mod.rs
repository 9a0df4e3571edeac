//! Tests of the log.

mod real;
