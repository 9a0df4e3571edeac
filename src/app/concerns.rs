//! Watches what makes the store unsafe, and logs when a concern begins and when it is over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::admin::Admin;
use crate::store::{Concern, Store};
use crate::telemetry::{Metrics, chain};

/// The pause between two looks at the store.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The concerns that have been logged, by code and text.
type Logged = BTreeSet<(&'static str, String)>;

/// Watches the store for as long as the process runs. `codes` are those of all concerns that this
/// kind of store may have.
pub(super) async fn watch_concerns(
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    admin: Admin,
    mut codes: Vec<&'static str>,
) {
    let mut logged = Logged::new();
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.concerns().await {
            Ok(concerns) => {
                admin.set_concerns(&concerns);
                // A metric with the value 0 says that all is well, which nobody knows before the
                // first look.
                codes.drain(..).for_each(|code| metrics.store_concern(code, false));
                logged = log_changes(&logged, concerns, &metrics);
            }
            // The requests that need the store have logged the failure.
            Err(error) => tracing::debug!(error = %chain(&error), "the store was not looked at"),
        }
    }
}

/// Logs the concerns that are new and the codes that are over. Gives the concerns that there are
/// now.
fn log_changes(logged: &Logged, concerns: Vec<Concern>, metrics: &Metrics) -> Logged {
    let mut now = Logged::new();
    for Concern { code, text, hint } in concerns {
        if !logged.contains(&(code, text.clone())) {
            tracing::warn!(concern = code, hint, "the store is not safe: {text}");
            metrics.store_concern(code, true);
        }
        now.insert((code, text));
    }
    // The metric has only the code, so a code is over when none of its texts is left.
    let codes = |of: &Logged| of.iter().map(|(code, _)| *code).collect::<BTreeSet<_>>();
    for code in codes(logged).difference(&codes(&now)) {
        tracing::info!(concern = code, "the store is safe in this again");
        metrics.store_concern(code, false);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concern(code: &'static str, text: &str) -> Concern {
        Concern { code, text: text.to_owned(), hint: String::new() }
    }

    /// One code may be about several things at a time.
    #[test]
    fn a_concern_is_over_when_nothing_of_its_code_is_left() {
        let metrics = Metrics::new();
        let is_so = |value: u8| {
            let line = format!("onceward_store_concerns{{concern=\"denied\"}} {value}\n");
            metrics.prometheus().unwrap().contains(&line)
        };
        let both = vec![concern("denied", "HSET"), concern("denied", "DEL")];
        let logged = log_changes(&Logged::new(), both.clone(), &metrics);
        assert_eq!(logged.len(), 2);
        assert_eq!(log_changes(&logged, both, &metrics), logged);
        assert!(is_so(1));
        let logged = log_changes(&logged, vec![concern("denied", "DEL")], &metrics);
        assert!(is_so(1));
        assert_eq!(log_changes(&logged, Vec::new(), &metrics), Logged::new());
        assert!(is_so(0));
    }
}
