//! The effects of a lease, a crash, a lost reply and a lost record on steps.

use super::*;
use crate::operation::{Step, StepState};

#[test]
fn a_lease_that_ran_out_leaves_uncertain_what_had_begun_and_waiting_what_had_not() {
    let plan = in_order();
    let charged = after(1, &plan, &[("charge", Outcome::Succeeded)]);
    let lost = lapse(charged.clone(), at(LEASE + 1)).operation;
    assert_eq!(standing(lost.as_ref()), "succeeded uncertain waiting uncertain");
    let held = claim(lost.clone(), &claiming(2, &plan), at(LEASE + 2));
    assert!(is_uncertain(&held.reply), "{:?}", held.reply);
    // A late end counts, and the holder goes on under a new lease.
    let late = advance(lost, &end(1, &plan, "account", Outcome::Succeeded), at(LEASE + 3));
    assert_eq!(late.reply, next("mail"));
    assert_eq!(late.operation.as_ref().unwrap().state.changes_at(), at(LEASE + 3 + LEASE));
    let crashed = charged.map(|found| abandon(found, at(2)));
    assert_eq!(standing(crashed.as_ref()), "succeeded uncertain waiting uncertain");
}

#[test]
fn a_lease_is_fresh_when_a_step_begins() {
    let plan = in_order();
    let charged = after(1, &plan, &[("charge", Outcome::Succeeded)]);
    assert_eq!(charged.unwrap().state.changes_at(), at(1 + LEASE));
}

#[test]
fn the_end_of_a_step_that_is_sent_twice_is_answered_the_same() {
    for plan in [in_order(), at_once()] {
        for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Uncertain] {
            let charge = end(1, &plan, "charge", outcome);
            let once = advance(after(1, &plan, &[]), &charge, at(1));
            let twice = advance(once.operation.clone(), &charge, at(1));
            assert_eq!(twice.reply, once.reply, "{outcome:?}");
            let states = [once.operation.as_ref(), twice.operation.as_ref()].map(standing);
            assert_eq!(states[0], states[1]);
        }
    }
}

#[test]
fn a_withdrawal_frees_what_had_begun_and_keeps_what_is_done() {
    let plan = in_order();
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Failed)];
    let found = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2)).operation;
    let freed = withdraw(found, claim_of(2), at(3));
    assert_eq!(freed.change, Change::Durable);
    assert_eq!(standing(freed.operation.as_ref()), "succeeded failed waiting failed");
    let again = claim(freed.operation, &claiming(2, &plan), at(4));
    assert_eq!(again.reply, ClaimReply::NotGranted(ReportedState::Free));
}

#[test]
fn a_record_that_was_lost_is_written_with_all_that_is_known() {
    let plan = in_order();
    let lost = advance(None, &end(1, &plan, "account", Outcome::Failed), at(1));
    assert_eq!(lost.reply, Advanced::RecordLost);
    assert_eq!(standing(lost.operation.as_ref()), "succeeded failed waiting failed");
    let lost = advance(None, &end(1, &plan, "account", Outcome::Succeeded), at(1));
    assert_eq!(standing(lost.operation.as_ref()), "succeeded succeeded waiting failed");
    let plan = at_once();
    let lost = advance(None, &end(1, &plan, "account", Outcome::Succeeded), at(1));
    assert_eq!(standing(lost.operation.as_ref()), "uncertain succeeded uncertain uncertain");
    let found = advance(lost.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(2));
    assert_eq!(standing(found.operation.as_ref()), "succeeded succeeded uncertain uncertain");
}

/// The store was away for longer than the lease. The reply that said that the next step had begun
/// was lost.
#[test]
fn a_step_of_whose_beginning_nobody_has_heard_begins_once_more() {
    let plan = in_order();
    let charge = end(1, &plan, "charge", Outcome::Succeeded);
    let unheard = after(1, &plan, &[("charge", Outcome::Succeeded)]);
    for away in [10, LEASE, LEASE + 10, ATTEMPT_TIMEOUT + 10] {
        let again = advance(unheard.clone(), &charge, at(away));
        assert_eq!((again.reply, again.change), (next("account"), Change::Durable));
        let found = again.operation.as_ref();
        assert_eq!(standing(found), "succeeded in_flight waiting in_flight");
        let State::InFlight(lease) = &found.unwrap().state else { panic!() };
        assert_eq!(
            (lease.expires_at, lease.ends_at),
            (at(away + LEASE), at(away + ATTEMPT_TIMEOUT))
        );
        assert_eq!(log_of(found).total(), 2);
        let line = log_of(found).kept().last().unwrap();
        assert_eq!((line.started_at, line.ended_at, line.outcome), (at(away), None, None));
        let late = at(away + 1);
        let account = advance(again.operation, &end(1, &plan, "account", Outcome::Succeeded), late);
        assert_eq!(account.reply, next("mail"));
    }
}

/// The holder of the step has reported that the step was sent.
#[test]
fn a_step_that_ran_does_not_begin_once_more() {
    let plan = in_order();
    let charge = end(1, &plan, "charge", Outcome::Succeeded);
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Uncertain)];
    let ran = after(1, &plan, &ends);
    let again = advance(ran, &charge, at(LEASE + 1));
    assert_eq!(again.reply, open("account"));
    assert_eq!(standing(again.operation.as_ref()), "succeeded uncertain waiting uncertain");
    // A step that another claim has begun since does not begin once more either.
    let retried = plan_with(false, IfUncertain::Retry { attempts_max: 9 });
    let lost = after(1, &retried, &ends[..1]);
    let later = at(ATTEMPT_TIMEOUT + LEASE);
    let other = claim(lost, &claiming(2, &retried), later);
    assert_eq!(other.reply, begun(2, &["account"]));
    let charge = end(1, &retried, "charge", Outcome::Succeeded);
    let again = advance(other.operation.clone(), &charge, later);
    assert_eq!(again.reply, open("account"));
    assert_eq!(again.operation, other.operation);
}

/// Nobody knows of the steps that ran beside it: they have most likely been sent.
#[test]
fn steps_beside_one_whose_record_was_lost_may_have_been_sent() {
    let plan = at_once();
    for outcome in [Outcome::Succeeded, Outcome::Uncertain] {
        let done = advance(None, &end(1, &plan, "account", outcome), at(1));
        assert_eq!(done.reply, Advanced::RecordLost);
        let operation = done.operation.unwrap();
        let reason = |step: &Step| {
            let StepState::Uncertain(held) = &step.state else { return None };
            Some(held.reason)
        };
        let reasons: Vec<_> = operation.steps.iter().map(reason).collect();
        let own = (outcome == Outcome::Uncertain).then_some(Reason::TimedOut);
        assert_eq!(reasons, [Some(Reason::LeaseExpired), own, Some(Reason::LeaseExpired)]);
        let State::Uncertain(held) = &operation.state else { panic!("{:?}", operation.state) };
        assert_eq!(held.reason, Reason::LeaseExpired);
        let held: Vec<_> = operation.decisions.iter().map(|decision| &*decision.reason).collect();
        let of_own = (outcome == Outcome::Uncertain).then_some("account: timed-out");
        let expected: Vec<_> = of_own.into_iter().chain(["lease-expired"]).collect();
        assert_eq!(held, expected);
    }
}
