//! Events with several receivers: which steps run, and which state of the event follows from them.
//!
//! The event is claimed once, and its record has a state for each step. A step keeps the claim
//! under which it began, so that it can be settled late as long as nobody has begun it again or
//! decided about it.

mod advance;
mod conclude;
mod event;
mod next_steps;

pub use advance::{Advanced, EventEnd, StepSettlement};
pub(super) use conclude::conclude;
pub(super) use event::{free_all, grant, make_uncertain, mark_done, mark_not_done, withdraw};
pub(super) use next_steps::{Lookups, Next, next_steps};
