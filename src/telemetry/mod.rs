//! What is measured and logged.
//!
//! Every metric family is declared in one file, and every label value comes from the configuration
//! or from the code. A label from a request would let a sender create time series without end.
//!
//! The path of a request looks no metric up by name: each route holds its own counters.
//!
//! | file | what it does |
//! | --- | --- |
//! | `metrics.rs` | the metric families, and the counters of one route |
//! | `labels.rs` | the values of labels: dispositions, store calls, limits |
//! | `clock_skew.rs` | whether the signatures of a route suggest that the clock is wrong |
//! | `log.rs` | the format and the filter of the log |

mod clock_skew;
mod labels;
mod log;
mod metrics;

pub use clock_skew::ClockSkew;
pub use labels::{DispositionWord, Limit, StoreCall};
pub use log::{Format, LogError, chain, install};
pub use metrics::{ExpectedCounters, Metrics, RouteMetrics};
