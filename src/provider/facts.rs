//! What is known of a sender beside how its events are told apart.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::StatusCode;

use super::secret_shape::SecretShape;

/// What a sender does, as far as it is known. Sentences are for people, the rest is for `check`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Which answers it takes as "done".
    pub success: Option<String>,
    /// How long it waits for an answer.
    pub patience: Option<Duration>,
    /// What it does when an answer fails.
    pub on_failure: Option<String>,
    /// For how long it tries again by itself.
    pub retry_window: Option<Duration>,
    /// Whether each retry is known to have a timestamp and a signature of its own.
    pub signed_anew: bool,
    /// The statuses after which it tries again; none: not known; no items: it never does.
    pub retried: Option<Vec<RangeInclusive<u16>>>,
    /// Those among them after which it does not.
    pub not_retried: Vec<RangeInclusive<u16>>,
    /// The 5xx after which it gives the event up; none: those that it does not retry, if that is
    /// known.
    pub final_statuses: Option<Vec<RangeInclusive<u16>>>,
    /// How a person has an event sent again.
    pub resend: Option<String>,
    /// For how long a person can.
    pub resend_window: Option<Duration>,
    /// After what it stops sending altogether.
    pub disabled_after: Option<String>,
    /// Its largest body.
    pub largest_event_bytes: Option<usize>,
    /// How it puts several events into one request.
    pub batch: Option<String>,
    /// Where its secret is found.
    pub secret: Option<String>,
    /// What its secrets look like.
    pub secret_shape: SecretShape,
    /// What stands where one may look for the event's id, and what it names instead.
    pub not_the_event: BTreeMap<String, String>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
    /// What of all this is not confirmed by the sender.
    pub unconfirmed: Vec<String>,
}

impl Facts {
    /// Whether it tries again after this status; none: not known.
    pub fn retries_after(&self, status: u16) -> Option<bool> {
        let among = |ranges: &[RangeInclusive<u16>]| ranges.iter().any(|it| it.contains(&status));
        let retried = self.retried.as_deref()?;
        Some(among(retried) && !among(&self.not_retried))
    }

    /// Whether it gives the event up after this status; none: not known.
    pub fn is_final(&self, status: StatusCode) -> Option<bool> {
        let status = status.as_u16();
        match &self.final_statuses {
            Some(ranges) => Some(ranges.iter().any(|range| range.contains(&status))),
            None => self.retries_after(status).map(|retries| !retries),
        }
    }

    /// Whether it is known to send nothing again by itself.
    pub fn never_retries(&self) -> bool {
        self.retried.as_ref().is_some_and(Vec::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_retried_unless_it_is_an_exception() {
        let facts = Facts {
            retried: Some(vec![400..=499, 500..=599]),
            not_retried: vec![410..=410],
            ..Facts::default()
        };
        assert_eq!(facts.retries_after(409), Some(true));
        assert_eq!(facts.retries_after(410), Some(false));
        assert_eq!(facts.retries_after(301), Some(false));
        assert!(!facts.never_retries());
    }

    #[test]
    fn a_status_is_final_if_it_is_named_or_else_if_it_is_not_retried() {
        let is_final =
            |facts: &Facts, status| facts.is_final(StatusCode::from_u16(status).unwrap());
        let retried = Some(vec![503..=503]);
        let derived = Facts { retried: retried.clone(), ..Facts::default() };
        assert_eq!((is_final(&derived, 502), is_final(&derived, 503)), (Some(true), Some(false)));
        let named = Facts { final_statuses: Some(vec![502..=502]), retried, ..Facts::default() };
        assert_eq!((is_final(&named, 502), is_final(&named, 504)), (Some(true), Some(false)));
        assert_eq!(is_final(&Facts::default(), 502), None);
    }

    #[test]
    fn what_is_not_known_is_not_never() {
        assert_eq!(Facts::default().retries_after(503), None);
        assert!(!Facts::default().never_retries());
        let never = Facts { retried: Some(Vec::new()), ..Facts::default() };
        assert_eq!(never.retries_after(503), Some(false));
        assert!(never.never_retries());
    }
}
