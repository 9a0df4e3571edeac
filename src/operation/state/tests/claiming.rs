//! The reply to a claim in every state.

use super::*;

#[test]
fn every_state_answers_a_claim_in_its_way() {
    let results = [None, in_flight(), succeeded(), failed(), uncertain(), forgotten()]
        .map(|found| claim(found, &request(2), at(1)).reply);
    assert_eq!(
        results,
        [
            granted(1),
            ClaimReply::NotGranted(ReportedState::InFlight {
                attempt: 1,
                lease_left: Duration::from_millis(LEASE - 1)
            }),
            ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(201) }),
            granted(2),
            ClaimReply::NotGranted(ReportedState::Uncertain {
                attempt: 1,
                ends_in: Duration::from_millis(ATTEMPT_TIMEOUT - 1)
            }),
            granted(2),
        ]
    );
}

#[test]
fn a_claim_that_only_looks_is_granted_nothing() {
    for found in [None, failed(), forgotten()] {
        let before = found.clone();
        let looked = claim(found, &ClaimRequest { may_grant: false, ..request(2) }, at(1));
        assert_eq!(
            (looked.reply, looked.change),
            (ClaimReply::NotGranted(ReportedState::Free), Change::None)
        );
        assert_eq!(looked.operation, before);
    }
}

/// The store was emptied, and another process may have begun the record anew.
#[test]
fn a_claim_is_told_of_an_own_attempt_whose_record_is_lost() {
    let left = Duration::from_secs(3);
    let own = OwnAttempt { subject: subject("body"), claim_id: claim_of(9), number: 4, left };
    let beside = ClaimRequest { own_attempt: Some(own), ..request(2) };
    let in_flight_here = ReportedState::InFlight { attempt: 4, lease_left: left };
    for found in [None, failed(), forgotten()] {
        let before = found.clone();
        let done = claim(found, &beside, at(1));
        assert_eq!((done.reply, done.change), (in_flight_here.clone().into(), Change::None));
        assert_eq!(done.operation, before);
    }
    let other = ClaimRequest { subject: subject("other"), ..beside.clone() };
    assert_eq!(claim(None, &other, at(1)).reply, mismatched(4));
    let done = claim(succeeded(), &beside, at(1)).reply;
    assert!(matches!(done, ClaimReply::NotGranted(ReportedState::Succeeded { .. })), "{done:?}");
}

#[test]
fn an_own_attempt_that_the_record_knows_changes_nothing() {
    let left = Duration::from_secs(3);
    let own = OwnAttempt { subject: subject("body"), claim_id: claim_of(1), number: 1, left };
    let beside = ClaimRequest { own_attempt: Some(own), ..request(2) };
    for found in [failed(), forgotten()] {
        assert_eq!(claim(found, &beside, at(1)).reply, granted(2));
    }
}

#[test]
fn another_request_under_the_key_is_told_nothing_else() {
    let other = ClaimRequest { subject: subject("other"), ..request(2) };
    for found in [in_flight(), succeeded(), uncertain()] {
        let done = claim(found.clone(), &other, at(1));
        assert_eq!((done.reply, done.change), (mismatched(1), Change::None));
        assert_eq!(done.operation, found);
    }
}

#[test]
fn a_failed_or_forgotten_operation_does_not_bind_the_fingerprint() {
    let other = ClaimRequest { subject: subject("other"), ..request(2) };
    for found in [failed(), forgotten()] {
        let done = claim(found, &other, at(1));
        assert_eq!(done.reply, granted(2));
        assert_eq!(done.operation.unwrap().subject.fingerprint, fingerprint("other"));
    }
}

#[test]
fn a_claim_that_is_sent_twice_is_granted_once() {
    let done = claim(in_flight(), &request(1), at(1));
    assert_eq!((done.reply, done.change), (granted(1), Change::Durable));
    assert_eq!(log_of(done.operation.as_ref()).total(), 1);
}

#[test]
fn a_claim_that_is_used_up_is_granted_nothing() {
    let twice = settled(claimed(failed(), 2, at(1)), 2, Outcome::Failed, at(2));
    let resolved = resolve(uncertain(), &resolution(Verdict::Failed), at(1)).operation;
    for found in [failed(), forgotten(), twice, resolved] {
        let done = claim(found, &request(1), at(3));
        assert_eq!(
            (done.reply, done.change),
            (ClaimReply::NotGranted(ReportedState::Free), Change::None)
        );
    }
}

fn retrying(claim: u8, attempts_max: u32) -> ClaimRequest {
    ClaimRequest { if_uncertain: IfUncertain::Retry { attempts_max }, ..request(claim) }
}

#[test]
fn an_uncertain_operation_is_tried_again_when_its_attempt_must_have_ended() {
    for found in [uncertain(), lapse(in_flight(), at(LEASE)).operation] {
        let early = claim(found.clone(), &retrying(2, 10), at(ATTEMPT_TIMEOUT - 1));
        assert!(is_uncertain(&early.reply));
        let held = claim(found.clone(), &request(2), at(ATTEMPT_TIMEOUT));
        assert!(is_uncertain(&held.reply));
        let look = ClaimRequest { may_grant: false, ..retrying(2, 10) };
        let looked = claim(found.clone(), &look, at(ATTEMPT_TIMEOUT));
        assert!(is_uncertain(&looked.reply));
        let done = claim(found, &retrying(2, 10), at(ATTEMPT_TIMEOUT));
        assert_eq!((done.reply, done.change), (granted(2), Change::Durable));
        let decided = done.operation.clone().unwrap().decisions.pop().unwrap();
        assert_eq!((&*decided.by, decided.kind), ("when_uncertain", DecisionKind::Retried));
        // The attempt before is superseded.
        let stale = settle(done.operation, &settlement(1, Outcome::Succeeded), at(ATTEMPT_TIMEOUT));
        assert_eq!(stale.reply, Settled::Superseded);
    }
}

#[test]
fn a_claim_that_is_sent_twice_does_not_retry_itself() {
    let found = lapse(claim(None, &retrying(1, 10), T0).operation, at(LEASE)).operation;
    let again = claim(found, &retrying(1, 10), at(ATTEMPT_TIMEOUT));
    assert!(is_uncertain(&again.reply), "{:?}", again.reply);
}

#[test]
fn after_so_many_uncertain_attempts_it_is_held() {
    let mut found = uncertain();
    let mut now = at(0);
    for attempt in 2..=3 {
        now = now.plus(durations().attempt_timeout);
        let done = claim(found, &retrying(u8::try_from(attempt).unwrap(), 3), now);
        assert_eq!(done.reply, granted(attempt));
        let end = settlement(u8::try_from(attempt).unwrap(), Outcome::Uncertain);
        found = settle(done.operation, &end, now).operation;
    }
    now = now.plus(durations().attempt_timeout);
    let done = claim(found, &retrying(4, 3), now);
    assert!(is_uncertain(&done.reply), "{:?}", done.reply);
}

/// Failed attempts do not count as uncertain, even if the log has dropped them.
#[test]
fn many_failures_leave_as_many_uncertain_attempts_as_before() {
    let mut found = None;
    for attempt in 1..=100 {
        found = claimed(found, attempt, at(1));
        found = settled(found, attempt, Outcome::Failed, at(1));
    }
    let uncertain = settled(claimed(found, 101, at(1)), 101, Outcome::Uncertain, at(1));
    let again = claim(uncertain.clone(), &retrying(102, 2), at(1 + ATTEMPT_TIMEOUT));
    assert_eq!(again.reply, granted(102));
    let enough = claim(uncertain, &retrying(102, 1), at(1 + ATTEMPT_TIMEOUT));
    assert!(is_uncertain(&enough.reply), "{:?}", enough.reply);
}

#[test]
fn a_shared_success_is_told_to_those_who_waited_for_it_alone() {
    let sharing = |claim: u8, waited_for| ClaimRequest {
        remember: Remember::InFlight,
        waited_for,
        ..request(claim)
    };
    let told = claim(succeeded(), &sharing(2, Some(1)), at(1));
    assert_eq!(
        told.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(201) })
    );
    let new = claim(succeeded(), &sharing(2, None), at(1));
    assert_eq!((new.reply, new.change), (granted(2), Change::Durable));
    // The copy waited for the attempt before.
    let second = settled(new.operation, 2, Outcome::Succeeded, at(1));
    let new = claim(second, &sharing(3, Some(1)), at(2));
    assert_eq!(new.reply, granted(3));
    // The call was sent twice.
    let again = claim(succeeded(), &sharing(1, None), at(1));
    assert_eq!(
        (again.reply, again.change),
        (ClaimReply::NotGranted(ReportedState::Free), Change::None)
    );
}

#[test]
fn the_first_refused_copy_is_noted_and_a_waiting_one_is_not() {
    let waits = ClaimRequest { if_in_flight: IfInFlight::Wait, ..request(2) };
    let waiting = claim(in_flight(), &waits, at(1));
    assert_eq!(waiting.change, Change::None);
    let first = claim(waiting.operation, &request(2), at(1));
    assert_eq!(first.change, Change::Volatile);
    let second = claim(first.operation, &request(3), at(1));
    assert_eq!(second.change, Change::None);
    let end = settle(second.operation, &settlement(1, Outcome::Failed), at(2));
    assert_eq!(end.reply, Settled::Recorded { copy_refused: true });
}
