//! Onceward: an HTTP reverse proxy that forwards each webhook once.
//!
//! # The path of a request
//!
//! One straight line of typed steps. Each takes what the one before it gave; only the middle one
//! knows what "once" means.
//!
//! ```text
//!           +--------------------- proxy ----------------------+ +----------------- idempotency ------------------+ + proxy +
//! sender -> select -> receive ----------> verify -> identify --> claim ----> forward ----> classify -> record -----> respond -> sender
//! gives     Selected  Received            Opened    Identity     Claim       Exchange      Outcome     Disposition   Answer
//! may stop  404 405   400 408 413 503     401 503   400          replay 409  502 504
//!                                                                422 503
//! ```
//!
//! Before the first step a request may be turned away: 503 while there is too much to do or the
//! process ends, 400 or 417 where its head can be read in two ways.
//!
//! A step that stops early goes straight to `respond`, the only place that names a status code.
//! From `claim` on the work runs in a task of its own: a sender that hangs up interrupts nothing.
//!
//! # The states of an operation
//!
//! ```text
//! (none) ----claim----> in_flight ----succeeded----> succeeded      replayed until the retention has passed
//!                        ^  |  \-----failed--------> failed         the next copy claims attempt n+1
//!                        |  \--uncertain / lease ran out--> uncertain
//!                        |                                   |  held until resolved; looked up; retried
//!                        +------ forgotten <-----------------+
//! ```
//!
//! # Where to read
//!
//! In this order: [`operation::state`] (all that can happen to an operation), [`idempotency`] (what
//! "once" means), [`proxy`] (the path of a request), [`store`] (the contract of stores). Modules
//! are declared from the bottom up; each uses only those above it here.
#![doc = include_str!("../docs/guarantees.md")]

pub mod operation;

pub mod clock;
pub mod json;
pub mod secret;

pub mod telemetry;

pub mod budget;

pub mod provider;
pub mod listener;
pub mod store;
pub mod upstream;

pub mod idempotency;

pub mod admin;
pub mod proxy;

pub mod config;

pub mod app;

pub mod cli;
