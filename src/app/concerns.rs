//! Tells people what makes the store unsafe, when that begins and when it is over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::admin::Admin;
use crate::store::{Concern, Store};
use crate::telemetry::{Metrics, chain};

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What has been told, by code and text.
type Told = BTreeSet<(&'static str, String)>;

/// Looks for as long as the process runs. `codes`: those of all concerns that there may be.
pub(super) async fn tell(
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    admin: Admin,
    mut codes: Vec<&'static str>,
) {
    let mut told = Told::new();
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.concerns().await {
            Ok(concerns) => {
                admin.has_seen(&concerns);
                // Before the first look nobody knows.
                codes.drain(..).for_each(|code| metrics.store_concern(code, false));
                told = tell_changes(&told, concerns, &metrics);
            }
            // whoever needs the store has said so
            Err(error) => tracing::debug!(error = %chain(&error), "the store was not looked at"),
        }
    }
}

/// Says what is new, and what is over. Gives what has been told.
fn tell_changes(told: &Told, concerns: Vec<Concern>, metrics: &Metrics) -> Told {
    let mut now = Told::new();
    for Concern { code, text, hint } in concerns {
        if !told.contains(&(code, text.clone())) {
            tracing::warn!(concern = code, hint, "the store is not safe: {text}");
            metrics.store_concern(code, true);
        }
        now.insert((code, text));
    }
    let codes = |told: &Told| told.iter().map(|(code, _)| *code).collect::<BTreeSet<_>>();
    for code in codes(told).difference(&codes(&now)) {
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
        let told = tell_changes(&Told::new(), both.clone(), &metrics);
        assert_eq!(told.len(), 2);
        assert_eq!(tell_changes(&told, both, &metrics), told);
        assert!(is_so(1));
        let told = tell_changes(&told, vec![concern("denied", "DEL")], &metrics);
        assert!(is_so(1));
        assert_eq!(tell_changes(&told, Vec::new(), &metrics), Told::new());
        assert!(is_so(0));
    }
}
