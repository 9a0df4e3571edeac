//! The facts about a sender: how it reacts to answers, how long it waits and tries again.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::StatusCode;

use super::secret_shape::SecretShape;

/// The facts about a sender, as far as they are known. Texts are for people; `onceward check`
/// compares the rest with a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The answers after which an event is done.
    pub success: Option<String>,
    /// How long the sender waits for an answer.
    pub patience: Option<Duration>,
    /// What the sender does after another answer.
    pub on_failure: Option<String>,
    /// For how long after the first delivery the sender tries again by itself.
    pub retry_window: Option<Duration>,
    /// Whether each retry is known to have a new timestamp and signature.
    pub signed_anew: bool,
    /// The statuses after which the sender tries again. None: they are not known. Empty: it never
    /// does.
    pub retried: Option<Vec<RangeInclusive<u16>>>,
    /// The exceptions among them.
    pub not_retried: Vec<RangeInclusive<u16>>,
    /// The 5xx after which the sender gives the event up. None: every 5xx after which it does not
    /// try again, if those are known.
    pub final_statuses: Option<Vec<RangeInclusive<u16>>>,
    /// How a person can have an event sent again.
    pub resend: Option<String>,
    /// For how long after the event a person can do that.
    pub resend_window: Option<Duration>,
    /// After what the sender stops sending any event.
    pub disabled_after: Option<String>,
    /// The size of its largest body, in bytes.
    pub largest_event_bytes: Option<usize>,
    /// How the sender puts several events into one request.
    pub batch: Option<String>,
    /// Where an operator finds the secret.
    pub secret: Option<String>,
    /// The shape of its secrets.
    pub secret_shape: SecretShape,
    /// Selectors that look like the id of an event and are not, each with what it names instead.
    pub not_the_event: BTreeMap<String, String>,
    /// Other things that an operator should know.
    pub notes: Vec<String>,
    /// The facts that no page or library of the sender confirms.
    pub unconfirmed: Vec<String>,
}

impl Facts {
    /// Whether the sender tries again after this status. None: that is not known.
    pub fn retries_after(&self, status: u16) -> Option<bool> {
        let among = |ranges: &[RangeInclusive<u16>]| ranges.iter().any(|it| it.contains(&status));
        let retried = self.retried.as_deref()?;
        Some(among(retried) && !among(&self.not_retried))
    }

    /// Whether the sender gives an event up after this status. None: that is not known.
    pub fn is_final(&self, status: StatusCode) -> Option<bool> {
        let status = status.as_u16();
        match &self.final_statuses {
            Some(ranges) => Some(ranges.iter().any(|range| range.contains(&status))),
            None => self.retries_after(status).map(|retries| !retries),
        }
    }

    /// Whether the sender is known never to try again by itself.
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
