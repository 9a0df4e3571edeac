//! Every arrow between states, a millisecond around every end, repeated and stale calls.

mod lookup;
mod sequences;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::operation::{
    AnswerBody, Asked, AttemptLog, DecisionKind, Fingerprint, FingerprintDigest, Key, KeyKind,
    OperationId, Outcome, Plan, PlannedStep, Terms,
};

const T0: Timestamp = Timestamp(1_000_000);
const LEASE: u64 = 15_000;
const ATTEMPT_TIMEOUT: u64 = 60_000;
const RETENTION: u64 = 300_000;
const HOLD_FOR: u64 = 900_000;

const fn at(millis: u64) -> Timestamp {
    Timestamp(T0.0 + millis)
}

fn terms() -> Terms {
    Terms {
        lease: Duration::from_millis(LEASE),
        attempt_timeout: Duration::from_millis(ATTEMPT_TIMEOUT),
        retention: Duration::from_millis(RETENTION),
        hold_for: Duration::from_millis(HOLD_FOR),
    }
}

fn fingerprint(body: &str) -> Fingerprint {
    let mut digest = FingerprintDigest::under("test");
    digest.part(body.as_bytes());
    digest.finish()
}

fn asked(body: &str) -> Arc<Asked> {
    Arc::new(Asked {
        id: OperationId::from_bytes([7; 16]),
        route: "orders".into(),
        method: "POST".to_owned(),
        path: "/webhooks/orders".to_owned(),
        key: Key { from: KeyKind::Header, parts: vec!["key".to_owned()] },
        fingerprint: fingerprint(body),
    })
}

fn claim_of(n: u8) -> ClaimId {
    ClaimId::from_random([n; 16])
}

fn request(n: u8) -> ClaimRequest {
    ClaimRequest {
        asked: asked("body"),
        claim_id: claim_of(n),
        holder: "here".into(),
        terms: terms(),
        may_grant: true,
        if_in_flight: IfInFlight::Refused,
        if_uncertain: IfUncertain::Held,
        may_look_up: true,
        if_succeeded: IfSucceeded::Replayed,
        forward_key: None,
        plan: None,
    }
}

fn answer(status: u16) -> Arc<StoredAnswer> {
    Arc::new(StoredAnswer::empty(http::StatusCode::from_u16(status).unwrap()))
}

fn settlement(n: u8, outcome: Outcome) -> Settlement {
    let status = if outcome == Outcome::Succeeded { 201 } else { 504 };
    Settlement {
        asked: asked("body"),
        claim_id: claim_of(n),
        attempt: u32::from(n),
        holder: "here".into(),
        terms: terms(),
        ending: Ending {
            outcome,
            reason: Reason::Answered,
            sent: true,
            status: Some(status),
            answer: Some(answer(status)),
            reference: None,
        },
    }
}

fn resolution(verdict: Verdict) -> Resolution {
    Resolution {
        verdict,
        by: "ops".to_owned(),
        reason: "looked it up".to_owned(),
        reference: None,
        attempt: None,
        state: None,
        retention: Duration::from_millis(RETENTION),
    }
}

/// The record after claim `n` at `now` on what was `found`.
fn claimed(found: Option<Operation>, n: u8, now: Timestamp) -> Option<Operation> {
    let done = claim(found, &request(n), now);
    assert!(matches!(done.result, Claimed::Granted { .. }), "{:?}", done.result);
    assert_eq!(done.change, Change::Durable);
    done.operation
}

fn settled(found: Option<Operation>, n: u8, outcome: Outcome, now: Timestamp) -> Option<Operation> {
    let done = settle(found, &settlement(n, outcome), now);
    assert_eq!(done.result, Settled::Recorded { copy_refused: false });
    assert_eq!(done.change, Change::Durable);
    done.operation
}

fn in_flight() -> Option<Operation> {
    claimed(None, 1, T0)
}

fn succeeded() -> Option<Operation> {
    settled(in_flight(), 1, Outcome::Succeeded, T0)
}

fn failed() -> Option<Operation> {
    settled(in_flight(), 1, Outcome::Failed, T0)
}

fn uncertain() -> Option<Operation> {
    settled(in_flight(), 1, Outcome::Uncertain, T0)
}

fn forgotten() -> Option<Operation> {
    forget(succeeded(), "ops", "again", T0).operation
}

fn state_of(operation: Option<&Operation>) -> &'static str {
    operation.map_or("none", |operation| operation.state.as_str())
}

fn log_of(operation: Option<&Operation>) -> &AttemptLog {
    &operation.unwrap().attempts
}

#[test]
fn every_state_answers_a_claim_in_its_way() {
    let results = [None, in_flight(), succeeded(), failed(), uncertain(), forgotten()]
        .map(|found| claim(found, &request(2), at(1)).result);
    assert_eq!(
        results,
        [
            Claimed::Granted { attempt: 1 },
            Claimed::InFlight { attempt: 1, lease_left: Duration::from_millis(LEASE - 1) },
            Claimed::Succeeded { attempt: 1, answer: answer(201) },
            Claimed::Granted { attempt: 2 },
            Claimed::Uncertain { attempt: 1, ends_in: Duration::from_millis(ATTEMPT_TIMEOUT - 1) },
            Claimed::Granted { attempt: 2 },
        ]
    );
}

#[test]
fn a_claim_that_only_looks_is_granted_nothing() {
    for found in [None, failed(), forgotten()] {
        let before = found.clone();
        let looked = claim(found, &ClaimRequest { may_grant: false, ..request(2) }, at(1));
        assert_eq!((looked.result, looked.change), (Claimed::Free, Change::None));
        assert_eq!(looked.operation, before);
    }
}

#[test]
fn another_request_under_the_key_is_told_nothing_else() {
    let other = ClaimRequest { asked: asked("other"), ..request(2) };
    for found in [in_flight(), succeeded(), uncertain()] {
        let done = claim(found.clone(), &other, at(1));
        assert_eq!((done.result, done.change), (Claimed::Mismatched { attempt: 1 }, Change::None));
        assert_eq!(done.operation, found);
    }
}

#[test]
fn a_failed_or_forgotten_operation_does_not_bind_the_fingerprint() {
    let other = ClaimRequest { asked: asked("other"), ..request(2) };
    for found in [failed(), forgotten()] {
        let done = claim(found, &other, at(1));
        assert_eq!(done.result, Claimed::Granted { attempt: 2 });
        assert_eq!(done.operation.unwrap().asked.fingerprint, fingerprint("other"));
    }
}

#[test]
fn a_claim_that_is_sent_twice_is_granted_once() {
    let done = claim(in_flight(), &request(1), at(1));
    assert_eq!((done.result, done.change), (Claimed::Granted { attempt: 1 }, Change::Durable));
    assert_eq!(log_of(done.operation.as_ref()).total(), 1);
}

#[test]
fn a_claim_that_is_used_up_is_granted_nothing() {
    let twice = settled(claimed(failed(), 2, at(1)), 2, Outcome::Failed, at(2));
    let resolved = resolve(uncertain(), &resolution(Verdict::Failed), at(1)).operation;
    for found in [failed(), forgotten(), twice, resolved] {
        let done = claim(found, &request(1), at(3));
        assert_eq!((done.result, done.change), (Claimed::Free, Change::None));
    }
}

fn retrying(claim: u8, attempts_max: u32) -> ClaimRequest {
    ClaimRequest { if_uncertain: IfUncertain::Retried { attempts_max }, ..request(claim) }
}

#[test]
fn an_uncertain_operation_is_tried_again_when_its_attempt_must_have_ended() {
    for found in [uncertain(), lapse(in_flight(), at(LEASE)).operation] {
        let early = claim(found.clone(), &retrying(2, 10), at(ATTEMPT_TIMEOUT - 1));
        assert!(matches!(early.result, Claimed::Uncertain { attempt: 1, .. }));
        let held = claim(found.clone(), &request(2), at(ATTEMPT_TIMEOUT));
        assert!(matches!(held.result, Claimed::Uncertain { attempt: 1, .. }));
        let look = ClaimRequest { may_grant: false, ..retrying(2, 10) };
        let looked = claim(found.clone(), &look, at(ATTEMPT_TIMEOUT));
        assert!(matches!(looked.result, Claimed::Uncertain { attempt: 1, .. }));
        let done = claim(found, &retrying(2, 10), at(ATTEMPT_TIMEOUT));
        assert_eq!((done.result, done.change), (Claimed::Granted { attempt: 2 }, Change::Durable));
        let decided = done.operation.clone().unwrap().decisions.pop().unwrap();
        assert_eq!((&*decided.by, decided.kind), ("when_uncertain", DecisionKind::Retried));
        // the attempt before is superseded
        let stale = settle(done.operation, &settlement(1, Outcome::Succeeded), at(ATTEMPT_TIMEOUT));
        assert_eq!(stale.result, Settled::Superseded);
    }
}

#[test]
fn a_claim_that_is_sent_twice_does_not_retry_itself() {
    let found = lapse(claim(None, &retrying(1, 10), T0).operation, at(LEASE)).operation;
    let again = claim(found, &retrying(1, 10), at(ATTEMPT_TIMEOUT));
    assert!(matches!(again.result, Claimed::Uncertain { attempt: 1, .. }), "{:?}", again.result);
}

#[test]
fn after_so_many_uncertain_attempts_it_is_held() {
    let (mut found, mut now) = (uncertain(), at(0));
    for attempt in 2..=3 {
        now = now.plus(terms().attempt_timeout);
        let done = claim(found, &retrying(u8::try_from(attempt).unwrap(), 3), now);
        assert_eq!(done.result, Claimed::Granted { attempt });
        let end = settlement(u8::try_from(attempt).unwrap(), Outcome::Uncertain);
        found = settle(done.operation, &end, now).operation;
    }
    now = now.plus(terms().attempt_timeout);
    let done = claim(found, &retrying(4, 3), now);
    assert!(matches!(done.result, Claimed::Uncertain { attempt: 3, .. }), "{:?}", done.result);
}

#[test]
fn a_shared_success_is_told_to_those_who_waited_for_it_alone() {
    let sharing = |claim: u8, waited_for| ClaimRequest {
        if_succeeded: IfSucceeded::Shared { waited_for },
        ..request(claim)
    };
    let told = claim(succeeded(), &sharing(2, Some(1)), at(1));
    assert_eq!(told.result, Claimed::Succeeded { attempt: 1, answer: answer(201) });
    let new = claim(succeeded(), &sharing(2, None), at(1));
    assert_eq!((new.result, new.change), (Claimed::Granted { attempt: 2 }, Change::Durable));
    // it waited for the one before
    let second = settled(new.operation, 2, Outcome::Succeeded, at(1));
    let new = claim(second, &sharing(3, Some(1)), at(2));
    assert_eq!(new.result, Claimed::Granted { attempt: 3 });
    // the call was sent twice
    let again = claim(succeeded(), &sharing(1, None), at(1));
    assert_eq!((again.result, again.change), (Claimed::Free, Change::None));
}

#[test]
fn the_first_refused_copy_is_noted_and_a_waiting_one_is_not() {
    let waits = ClaimRequest { if_in_flight: IfInFlight::Waits, ..request(2) };
    let waiting = claim(in_flight(), &waits, at(1));
    assert_eq!(waiting.change, Change::None);
    let first = claim(waiting.operation, &request(2), at(1));
    assert_eq!(first.change, Change::Lazy);
    let second = claim(first.operation, &request(3), at(1));
    assert_eq!(second.change, Change::None);
    let end = settle(second.operation, &settlement(1, Outcome::Failed), at(2));
    assert_eq!(end.result, Settled::Recorded { copy_refused: true });
}

#[test]
fn a_lease_ends_on_its_millisecond() {
    for (now, state) in [(LEASE - 1, "in_flight"), (LEASE, "uncertain"), (LEASE + 1, "uncertain")] {
        let seen = lapse(in_flight(), at(now));
        assert_eq!(state_of(seen.operation.as_ref()), state, "at {now}");
        let renewed = renew(in_flight(), claim_of(1), Duration::from_secs(1), at(now));
        let expected = if state == "in_flight" { Renewed::Renewed } else { Renewed::Superseded };
        assert_eq!(renewed.result, expected, "at {now}");
        assert_eq!(state_of(renewed.operation.as_ref()), state);
    }
}

#[test]
fn a_lease_that_ran_out_leaves_it_uncertain_since_then() {
    let seen = lapse(in_flight(), at(LEASE + 500));
    assert_eq!(seen.change, Change::Durable);
    let operation = seen.operation.unwrap();
    let State::Uncertain(held) = &operation.state else { panic!("{:?}", operation.state) };
    assert_eq!((held.since, held.ends_at), (at(LEASE), at(ATTEMPT_TIMEOUT)));
    assert_eq!(held.hold_until, at(LEASE + HOLD_FOR));
    let line = operation.attempts.kept().next().unwrap();
    assert_eq!(line.outcome, Some(Outcome::Uncertain));
    assert_eq!((line.reason, line.ended_at), (Some(Reason::LeaseExpired), Some(at(LEASE))));
}

#[test]
fn a_retention_ends_on_its_millisecond_and_replays_do_not_extend_it() {
    let replayed = claim(succeeded(), &request(2), at(RETENTION - 2)).operation;
    for (now, free) in [(RETENTION - 1, false), (RETENTION, true), (RETENTION + 1, true)] {
        let done = claim(replayed.clone(), &request(2), at(now));
        assert_eq!(done.result == Claimed::Granted { attempt: 1 }, free, "at {now}");
        assert_eq!(lapse(replayed.clone(), at(now)).operation.is_none(), free, "at {now}");
    }
}

#[test]
fn a_hold_ends_on_its_millisecond_and_is_told() {
    for (now, gone) in [(HOLD_FOR - 1, false), (HOLD_FOR, true), (HOLD_FOR + 1, true)] {
        let done = lapse(uncertain(), at(now));
        assert_eq!((done.operation.is_none(), done.hold_ended), (gone, gone), "at {now}");
        let looked = ClaimRequest { may_grant: false, ..request(2) };
        let done = claim(uncertain(), &looked, at(now));
        assert_eq!((done.result == Claimed::Free, done.hold_ended), (gone, gone), "at {now}");
        let written = if gone { Change::Durable } else { Change::Lazy };
        assert_eq!(done.change, written, "at {now}");
    }
}

#[test]
fn a_refused_copy_makes_the_hold_last_longer() {
    let held = claim(uncertain(), &request(2), at(HOLD_FOR - 1)).operation;
    assert_eq!(state_of(lapse(held.clone(), at(2 * HOLD_FOR - 2)).operation.as_ref()), "uncertain");
    assert_eq!(state_of(lapse(held, at(2 * HOLD_FOR - 1)).operation.as_ref()), "none");
}

#[test]
fn nothing_is_given_up_while_the_upstream_may_work_on_it() {
    let mut short = request(1);
    short.terms.hold_for = Duration::ZERO;
    let found = claim(None, &short, T0).operation;
    let abandoned = Some(abandon(found.clone().unwrap(), at(1)));
    let mut end = settlement(1, Outcome::Uncertain);
    end.terms.hold_for = Duration::ZERO;
    let settled = settle(found.clone(), &end, at(1)).operation;
    for found in [found, abandoned, settled] {
        assert_eq!(
            state_of(lapse(found.clone(), at(ATTEMPT_TIMEOUT - 1)).operation.as_ref()),
            "uncertain"
        );
        assert_eq!(state_of(lapse(found, at(ATTEMPT_TIMEOUT)).operation.as_ref()), "none");
    }
}

#[test]
fn the_end_of_its_holder_leaves_it_uncertain() {
    let operation = abandon(in_flight().unwrap(), at(5));
    let State::Uncertain(held) = &operation.state else { panic!("{:?}", operation.state) };
    assert_eq!((held.reason, held.since), (Reason::HolderEnded, at(5)));
    let done = abandon(succeeded().unwrap(), at(5));
    assert_eq!(Some(done), succeeded());
}

#[test]
fn a_renewal_never_shortens_a_lease() {
    let done = renew(in_flight(), claim_of(1), Duration::from_millis(500), at(1));
    assert_eq!((done.result, done.change), (Renewed::Renewed, Change::Lazy));
    assert_eq!(state_of(lapse(done.operation, at(LEASE - 1)).operation.as_ref()), "in_flight");
    let longer = renew(in_flight(), claim_of(1), Duration::from_millis(LEASE), at(1)).operation;
    assert_eq!(state_of(lapse(longer, at(LEASE)).operation.as_ref()), "in_flight");
}

#[test]
fn a_lease_of_less_than_a_millisecond_is_not_none() {
    let mut short = request(1);
    short.terms.lease = Duration::from_nanos(1);
    let found = claim(None, &short, T0).operation;
    assert_eq!(state_of(lapse(found.clone(), T0).operation.as_ref()), "in_flight");
    assert_eq!(state_of(lapse(found, at(1)).operation.as_ref()), "uncertain");
}

#[test]
fn only_the_current_claim_renews() {
    for found in [None, succeeded(), failed(), uncertain(), forgotten()] {
        let done = renew(found.clone(), claim_of(1), Duration::from_secs(9), at(1));
        assert_eq!((done.result, done.change), (Renewed::Superseded, Change::None));
        assert_eq!(done.operation, found);
    }
    let next = claimed(failed(), 2, at(1));
    let done = renew(next, claim_of(1), Duration::from_secs(9), at(2));
    assert_eq!((done.result, done.change), (Renewed::Superseded, Change::None));
}

#[test]
fn a_late_settle_counts_while_its_claim_is_current() {
    let late = at(LEASE + 1);
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Uncertain] {
        let done = settled(in_flight(), 1, outcome, late);
        assert_eq!(state_of(done.as_ref()), outcome.as_str());
    }
    let abandoned = Some(abandon(in_flight().unwrap(), at(1)));
    assert_eq!(state_of(settled(abandoned, 1, Outcome::Succeeded, late).as_ref()), "succeeded");
}

#[test]
fn a_settle_that_is_sent_twice_changes_nothing() {
    for (found, outcome) in [(succeeded(), Outcome::Succeeded), (failed(), Outcome::Failed)] {
        let done = settle(found.clone(), &settlement(1, outcome), at(9));
        assert_eq!(done.result, Settled::Recorded { copy_refused: false });
        // it has to be durable by now, whatever has become of the first call
        assert_eq!((done.change, done.operation), (Change::Durable, found));
    }
}

#[test]
fn a_stale_settle_changes_the_log_alone() {
    let superseding = [
        claimed(failed(), 2, at(1)),
        resolve(uncertain(), &resolution(Verdict::Failed), at(1)).operation,
        forgotten(),
    ];
    for found in superseding {
        let done = settle(found.clone(), &settlement(1, Outcome::Uncertain), at(2));
        assert_eq!((done.result, done.change), (Settled::Superseded, Change::Lazy));
        let (before, after) = (found.unwrap(), done.operation.unwrap());
        assert_eq!(before.state, after.state);
        assert_eq!(before.attempts.total(), after.attempts.total());
        assert_eq!(after.attempts.kept().next().unwrap().outcome, Some(Outcome::Uncertain));
    }
}

#[test]
fn a_settle_without_a_record_writes_one() {
    let done = settle(None, &settlement(4, Outcome::Succeeded), at(1));
    assert_eq!((done.result, done.change), (Settled::RecordLost, Change::Durable));
    let copy = claim(done.operation.clone(), &request(9), at(2));
    assert_eq!(copy.result, Claimed::Succeeded { attempt: 4, answer: answer(201) });
    let again = settle(done.operation, &settlement(4, Outcome::Succeeded), at(2));
    assert_eq!(again.result, Settled::Recorded { copy_refused: false });
}

#[test]
fn an_uncertain_settle_without_a_record_supposes_the_latest_end() {
    let done = settle(None, &settlement(4, Outcome::Uncertain), at(1));
    let copy = claim(done.operation, &request(9), at(1));
    let ends_in = Duration::from_millis(ATTEMPT_TIMEOUT);
    assert_eq!(copy.result, Claimed::Uncertain { attempt: 4, ends_in });
}

#[test]
fn a_withdrawal_frees_its_own_claim_alone() {
    let done = withdraw(in_flight(), claim_of(1), terms().retention, at(1));
    assert_eq!((done.change, state_of(done.operation.as_ref())), (Change::Durable, "failed"));
    let line = log_of(done.operation.as_ref()).kept().next().unwrap().clone();
    assert_eq!((line.sent, line.reason), (false, Some(Reason::Withdrawn)));
    let late = lapse(in_flight(), at(LEASE)).operation;
    let done = withdraw(late, claim_of(1), terms().retention, at(LEASE));
    assert_eq!(state_of(done.operation.as_ref()), "failed");
    for found in [None, in_flight(), succeeded(), failed(), uncertain(), forgotten()] {
        let done = withdraw(found.clone(), claim_of(2), terms().retention, at(1));
        assert_eq!((done.change, done.operation), (Change::None, found));
    }
}

#[test]
fn an_operator_ends_what_is_uncertain_or_failed() {
    for found in [uncertain(), failed()] {
        let done = resolve(found.clone(), &resolution(Verdict::Failed), at(1));
        assert_eq!((done.result, state_of(done.operation.as_ref())), (Decided::Done, "failed"));
        let given = Verdict::Succeeded(Some(answer(202)));
        let done = resolve(found, &resolution(given), at(1)).operation;
        let copy = claim(done.clone(), &request(2), at(2));
        assert_eq!(copy.result, Claimed::Succeeded { attempt: 1, answer: answer(202) });
        let decided = done.unwrap().decisions.pop().unwrap();
        assert_eq!(decided.kind, DecisionKind::ResolvedSucceeded);
    }
    for found in [in_flight(), succeeded(), forgotten()] {
        let done = resolve(found.clone(), &resolution(Verdict::Failed), at(1));
        assert_eq!((done.result, done.change), (Decided::Refused, Change::None));
        assert_eq!(done.operation, found);
    }
    assert_eq!(resolve(None, &resolution(Verdict::Failed), at(1)).result, Decided::Unknown);
}

#[test]
fn an_operation_resolved_without_an_answer_has_the_stored_success_or_an_empty_200() {
    // the stored answer was a 504: not a success
    let done = resolve(uncertain(), &resolution(Verdict::Succeeded(None)), at(1)).operation;
    let copy = claim(done, &request(2), at(2)).result;
    assert_eq!(copy, Claimed::Succeeded { attempt: 1, answer: answer(200) });
    let mut end = settlement(1, Outcome::Uncertain);
    end.ending.answer = Some(answer(204));
    let held = settle(in_flight(), &end, T0).operation;
    let done = resolve(held, &resolution(Verdict::Succeeded(None)), at(1)).operation;
    let copy = claim(done, &request(2), at(2)).result;
    assert_eq!(copy, Claimed::Succeeded { attempt: 1, answer: answer(204) });
}

#[test]
fn an_operator_who_looked_at_another_attempt_is_refused() {
    let mut looked = resolution(Verdict::Failed);
    looked.attempt = Some(2);
    assert_eq!(resolve(uncertain(), &looked, at(1)).result, Decided::Refused);
    looked.attempt = Some(1);
    assert_eq!(resolve(uncertain(), &looked, at(1)).result, Decided::Done);
}

/// The late settle of the same attempt has made it something else meanwhile, or another person has.
#[test]
fn an_operator_who_looked_at_another_state_is_refused() {
    let mut looked = resolution(Verdict::Succeeded(None));
    looked.state = Some(StateName::Uncertain);
    assert_eq!(resolve(failed(), &looked, at(1)).result, Decided::Refused);
    assert_eq!(resolve(uncertain(), &looked, at(1)).result, Decided::Done);
    looked.state = Some(StateName::Failed);
    assert_eq!(resolve(failed(), &looked, at(1)).result, Decided::Done);
}

#[test]
fn forgetting_frees_at_once_and_lengthens_nothing() {
    for found in [succeeded(), failed(), uncertain(), forgotten()] {
        let due = found.as_ref().unwrap().state.changes_at();
        let done = forget(found, "ops", "again", at(1));
        assert_eq!((done.result, done.change), (Decided::Done, Change::Durable));
        assert_eq!(done.operation.as_ref().unwrap().state.changes_at(), due);
        assert_eq!(
            claim(done.operation, &request(2), at(2)).result,
            Claimed::Granted { attempt: 2 }
        );
    }
    assert_eq!(forget(in_flight(), "ops", "again", at(1)).result, Decided::Refused);
    assert_eq!(forget(None, "ops", "again", at(1)).result, Decided::Unknown);
    let gone = forget(succeeded(), "ops", "again", at(RETENTION));
    assert_eq!(gone.result, Decided::Unknown);
}

#[test]
fn of_many_decisions_the_first_and_the_latest_stay() {
    let mut found = succeeded();
    for n in 0..100 {
        found = forget(found, "ops", &n.to_string(), at(n)).operation;
    }
    let decisions = found.unwrap().decisions;
    assert_eq!(decisions.len(), 64);
    assert_eq!((&*decisions[0].reason, &*decisions[31].reason), ("0", "31"));
    assert_eq!((&*decisions[32].reason, &*decisions[63].reason), ("68", "99"));
}

#[test]
fn a_sweep_tells_what_is_gone_from_what_only_changed() {
    assert!(!expire(None, at(1)).result);
    assert!(!expire(in_flight(), at(LEASE)).result);
    assert!(!expire(succeeded(), at(RETENTION - 1)).result);
    assert!(expire(succeeded(), at(RETENTION)).result);
}
