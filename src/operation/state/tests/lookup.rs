//! Look-ups of uncertain operations: which requests may ask, and the state after each finding.

use super::*;

const LOOKUP: u64 = 7_000;

pub(super) fn looking(n: u8) -> ClaimRequest {
    let lease = Duration::from_millis(LOOKUP);
    ClaimRequest { if_uncertain: IfUncertain::LookUp { attempts_max: 10, lease }, ..request(n) }
}

fn found(n: u8, finding: Finding) -> LookupReport {
    LookupReport {
        request: looking(n),
        step: None,
        finding,
        reason: "answered 200".to_owned(),
        reference: Some("pay_1".to_owned()),
    }
}

/// An uncertain operation that request 2 asks about since `now`.
fn asked_about(now: Timestamp) -> Option<Operation> {
    let done = claim(uncertain(), &looking(2), now);
    assert_eq!(done.reply, looked_up(1));
    assert_eq!(done.change, Change::Lazy);
    done.operation
}

#[test]
fn one_copy_asks_and_the_others_wait_for_its_end() {
    let asked = asked_about(at(1));
    for other in [looking(3), request(3), ClaimRequest { may_grant: false, ..looking(3) }] {
        let copy = claim(asked.clone(), &other, at(2));
        let lease_left = Duration::from_millis(LOOKUP - 1);
        assert_eq!(
            copy.reply,
            ClaimReply::NotGranted(ReportedState::InFlight { attempt: 1, lease_left })
        );
    }
    let again = claim(asked.clone(), &looking(2), at(2));
    assert_eq!(again.reply, looked_up(1));
    // The lease ends exactly at its millisecond.
    let late = claim(asked.clone(), &looking(3), at(LOOKUP));
    assert!(
        matches!(late.reply, ClaimReply::NotGranted(ReportedState::InFlight { .. })),
        "{:?}",
        late.reply
    );
    let next = claim(asked, &looking(3), at(LOOKUP + 1));
    assert_eq!(next.reply, looked_up(1));
}

#[test]
fn who_may_not_ask_is_refused() {
    for other in [
        ClaimRequest { may_grant: false, ..looking(2) },
        ClaimRequest { may_look_up: false, ..looking(2) },
        // The attempt of this request became uncertain.
        looking(1),
    ] {
        let done = claim(uncertain(), &other, at(1));
        assert!(is_uncertain(&done.reply), "{:?}", done.reply);
    }
    let other = ClaimRequest { subject: subject("other"), ..looking(2) };
    let done = claim(uncertain(), &other, at(1));
    assert_eq!(done.reply, mismatched(1));
}

#[test]
fn what_was_done_is_a_success_with_the_stored_answer_or_an_empty_200() {
    let done = conclude(asked_about(at(1)), &found(2, Finding::Done), at(5));
    let empty =
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(200) });
    assert_eq!((done.reply, done.change), (empty.clone(), Change::Durable));
    let operation = done.operation.clone().unwrap();
    assert_eq!(operation.state.changes_at(), at(5 + RETENTION));
    let decision = operation.decisions.last().unwrap();
    assert_eq!((&*decision.by, decision.kind), ("lookup", DecisionKind::LookedUp));
    assert_eq!(decision.reason, "done: answered 200");
    assert_eq!(decision.reference.as_deref(), Some("pay_1"));
    // The settle of the attempt itself is stale now.
    let late = settle(done.operation.clone(), &settlement(1, Outcome::Failed), at(6));
    assert_eq!(late.reply, Settled::Superseded);
    assert_eq!(claim(late.operation, &looking(3), at(7)).reply, empty);
    // The uncertain attempt had a complete answer.
    let ending = Ending::Uncertain { answer: answer(202), reference: None };
    let end = Settlement { ending, ..settlement(1, Outcome::Uncertain) };
    let held = settle(in_flight(), &end, T0).operation;
    let asked = claim(held, &looking(2), at(1)).operation;
    let done = conclude(asked, &found(2, Finding::Done), at(2));
    assert_eq!(
        done.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(202) })
    );
}

#[test]
fn what_was_not_done_is_attempted_again_once_the_upstream_cannot_be_working_on_it() {
    let early = asked_about(at(ATTEMPT_TIMEOUT - 2));
    let done = conclude(early, &found(2, Finding::NotDone), at(ATTEMPT_TIMEOUT - 1));
    assert!(is_uncertain(&done.reply), "{:?}", done.reply);
    let due = asked_about(at(ATTEMPT_TIMEOUT - 2));
    let done = conclude(due, &found(2, Finding::NotDone), at(ATTEMPT_TIMEOUT));
    assert_eq!((done.reply, done.change), (granted(2), Change::Durable));
    let stale = settle(done.operation, &settlement(1, Outcome::Succeeded), at(ATTEMPT_TIMEOUT));
    assert_eq!(stale.reply, Settled::Superseded);
}

#[test]
fn after_so_many_uncertain_attempts_it_is_asked_about_and_not_sent() {
    let lease = Duration::from_millis(LOOKUP);
    let once = IfUncertain::LookUp { attempts_max: 1, lease };
    let request = ClaimRequest { if_uncertain: once, ..looking(2) };
    let asked = claim(uncertain(), &request, at(ATTEMPT_TIMEOUT)).operation;
    let report = LookupReport { request, ..found(2, Finding::NotDone) };
    let done = conclude(asked, &report, at(ATTEMPT_TIMEOUT));
    assert!(is_uncertain(&done.reply), "{:?}", done.reply);
}

#[test]
fn what_is_not_known_stays_held_and_may_be_asked_about_again() {
    let done = conclude(asked_about(at(1)), &found(2, Finding::Unknown), at(2));
    let ends_in = Duration::from_millis(ATTEMPT_TIMEOUT - 2);
    assert_eq!(
        done.reply,
        ClaimReply::NotGranted(ReportedState::Uncertain { attempt: 1, ends_in })
    );
    // A durable change tells the waiters of the look-up.
    assert_eq!(done.change, Change::Durable);
    let next = claim(done.operation, &looking(3), at(3));
    assert_eq!(next.reply, looked_up(1));
}

#[test]
fn a_finding_that_comes_after_a_change_changes_nothing() {
    let asked = asked_about(at(1));
    let settled = settle(asked.clone(), &settlement(1, Outcome::Succeeded), at(2)).operation;
    let failed = settle(asked.clone(), &settlement(1, Outcome::Failed), at(2)).operation;
    let resolved = resolve(asked.clone(), &resolution(Verdict::Failed), at(2)).operation;
    let taken = claim(asked.clone(), &looking(3), at(LOOKUP + 1)).operation;
    let still = settle(asked, &settlement(1, Outcome::Uncertain), at(2)).operation;
    for (found_so, told) in [
        (
            settled,
            ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(201) }),
        ),
        (failed, ClaimReply::NotGranted(ReportedState::Free)),
        (resolved, ClaimReply::NotGranted(ReportedState::Free)),
        (None, ClaimReply::NotGranted(ReportedState::Free)),
    ] {
        for finding in Finding::ALL {
            let before = found_so.clone();
            let done = conclude(before.clone(), &found(2, finding), at(3));
            assert_eq!((done.reply, done.operation), (told.clone(), before));
        }
    }
    let done = conclude(taken, &found(2, Finding::Done), at(LOOKUP + 2));
    assert!(
        matches!(done.reply, ClaimReply::NotGranted(ReportedState::InFlight { .. })),
        "{:?}",
        done.reply
    );
    let done = conclude(still, &found(2, Finding::Done), at(3));
    assert!(is_uncertain(&done.reply), "{:?}", done.reply);
}

#[test]
fn a_finding_that_is_sent_twice_is_answered_the_same() {
    for finding in Finding::ALL {
        let now = at(ATTEMPT_TIMEOUT);
        let once = conclude(asked_about(now), &found(2, finding), now);
        let twice = conclude(once.operation, &found(2, finding), now);
        assert_eq!(twice.reply, once.reply);
        let granted = matches!(twice.reply, ClaimReply::Granted(_));
        assert_eq!(twice.change == Change::Durable, granted);
    }
}

#[test]
fn a_finding_that_is_late_counts_if_nobody_else_has_asked() {
    let done = conclude(asked_about(at(1)), &found(2, Finding::Done), at(LOOKUP * 2));
    assert_eq!(
        done.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(200) })
    );
}

#[test]
fn a_late_settle_counts_while_somebody_asks() {
    let done = settle(asked_about(at(1)), &settlement(1, Outcome::Succeeded), at(2));
    assert_eq!(done.reply, Settled::Recorded { copy_refused: false });
}

#[test]
fn a_look_up_without_a_reply_is_withdrawn() {
    let withdrawn = withdraw(asked_about(at(1)), claim_of(2), at(2));
    assert_eq!(withdrawn.change, Change::Durable);
    let next = claim(withdrawn.operation, &looking(3), at(3));
    assert_eq!(next.reply, looked_up(1));
}
