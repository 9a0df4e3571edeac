//! What is measured and logged: every metric family and label, and the log format.

mod clock_skew;
mod labels;
mod log;
mod metrics;

pub use clock_skew::ClockSkew;
pub use labels::{Disposition, Limit, StoreCall};
pub use log::{Format, LogError, chain, install};
pub use metrics::{MayCount, Metrics, RouteMetrics};
