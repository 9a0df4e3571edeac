//! Tests of the log.

mod calls;
mod crash;
mod damage;
mod formats;
mod history;
mod long;
mod real;
mod sim;
