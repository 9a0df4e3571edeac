//! Outcomes of attempts that are late, stale or repeated.

use super::*;

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
        assert_eq!(done.reply, Settled::Recorded { copy_refused: false });
        // The change must be durable by now, whatever became of the first call.
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
        assert_eq!((done.reply, done.change), (Settled::Superseded, Change::Lazy));
        let before = found.unwrap();
        let after = done.operation.unwrap();
        assert_eq!(before.state, after.state);
        assert_eq!(before.attempts.total(), after.attempts.total());
        assert_eq!(after.attempts.kept().next().unwrap().outcome, Some(Outcome::Uncertain));
    }
}

#[test]
fn a_settle_without_a_record_writes_one() {
    let done = settle(None, &settlement(4, Outcome::Succeeded), at(1));
    assert_eq!((done.reply, done.change), (Settled::RecordLost, Change::Durable));
    let copy = claim(done.operation.clone(), &request(9), at(2));
    assert_eq!(
        copy.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 4, answer: answer(201) })
    );
    let again = settle(done.operation, &settlement(4, Outcome::Succeeded), at(2));
    assert_eq!(again.reply, Settled::Recorded { copy_refused: false });
}

#[test]
fn an_uncertain_settle_without_a_record_supposes_the_latest_end() {
    let done = settle(None, &settlement(4, Outcome::Uncertain), at(1));
    let copy = claim(done.operation, &request(9), at(1));
    let ends_in = Duration::from_millis(ATTEMPT_TIMEOUT);
    assert_eq!(
        copy.reply,
        ClaimReply::NotGranted(ReportedState::Uncertain { attempt: 4, ends_in })
    );
}

#[test]
fn a_withdrawal_frees_its_own_claim_alone() {
    let done = withdraw(in_flight(), claim_of(1), at(1));
    assert_eq!((done.change, state_of(done.operation.as_ref())), (Change::Durable, "failed"));
    let line = log_of(done.operation.as_ref()).kept().next().unwrap().clone();
    assert_eq!((line.sent, line.reason), (false, Some(Reason::Withdrawn)));
    let late = lapse(in_flight(), at(LEASE)).operation;
    let done = withdraw(late, claim_of(1), at(LEASE));
    assert_eq!(state_of(done.operation.as_ref()), "failed");
    for found in [None, in_flight(), succeeded(), failed(), uncertain(), forgotten()] {
        let done = withdraw(found.clone(), claim_of(2), at(1));
        assert_eq!((done.change, done.operation), (Change::None, found));
    }
}

/// Another claim has the operation by now. The log still says that nothing was sent under the first
/// claim.
#[test]
fn a_claim_that_is_withdrawn_when_it_is_superseded_was_never_sent() {
    let retried =
        ClaimRequest { if_uncertain: IfUncertain::Retry { attempts_max: 2 }, ..request(2) };
    let later = at(ATTEMPT_TIMEOUT);
    let second = claim(in_flight(), &retried, later);
    assert_eq!(second.reply, granted(2));
    assert_eq!(log_of(second.operation.as_ref()).uncertain(None), 2);
    let done = withdraw(second.operation.clone(), claim_of(1), later);
    assert_eq!(done.change, Change::Lazy);
    let found = done.operation.as_ref();
    assert_eq!(found.unwrap().state, second.operation.unwrap().state);
    let line = log_of(found).kept().next().unwrap();
    assert_eq!((line.sent, line.reason), (false, Some(Reason::Withdrawn)));
    assert_eq!(log_of(found).uncertain(None), 1, "the one in flight");
    let again = withdraw(done.operation, claim_of(1), later);
    assert_eq!(again.change, Change::None);
}
