//! Paths: how they may be read, and how they are written.

mod readings;
mod shape;
mod spelling;

pub(super) use readings::{TooMany, climbs, readings};
pub(super) use spelling::{normal, plainest, spelled};
