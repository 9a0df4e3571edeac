//! The steps that run: those that a claim begins, and the effects of policies, operators and a
//! changed route.

use super::*;

#[test]
fn in_order_each_step_begins_with_the_end_of_the_one_before() {
    let plan = in_order();
    let done = claim(None, &claiming(1, &plan), T0);
    assert_eq!((done.reply, done.change), (begun(1, &["charge"]), Change::Durable));
    assert_eq!(standing(done.operation.as_ref()), "in_flight waiting waiting in_flight");
    let done = advance(done.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(1));
    assert_eq!((done.reply, done.change), (next("account"), Change::Durable));
    assert_eq!(standing(done.operation.as_ref()), "succeeded in_flight waiting in_flight");
    let done = advance(done.operation, &end(1, &plan, "account", Outcome::Succeeded), at(2));
    assert_eq!(done.reply, next("mail"));
    let done = advance(done.operation, &end(1, &plan, "mail", Outcome::Succeeded), at(3));
    let end = EventEnd::Succeeded(named_answer("mail"));
    assert_eq!(done.reply, Advanced::Ended { copy_refused: false, end });
    assert_eq!(standing(done.operation.as_ref()), "succeeded succeeded succeeded succeeded");
    let operation = done.operation.clone().unwrap();
    assert_eq!(operation.state.changes_at(), at(3 + RETENTION));
    let lines: Vec<_> = operation
        .attempts
        .kept()
        .map(|line| (line.number, line.step.as_deref().unwrap(), line.outcome))
        .collect();
    assert_eq!(lines, NAMES.map(|name| (1, name, Some(Outcome::Succeeded))));
    let keys: Vec<_> = operation.attempts.kept().map(|line| line.forward_key.is_some()).collect();
    assert_eq!(keys, [true, false, false]);
    let copy = claim(done.operation, &claiming(2, &plan), at(4));
    assert_eq!(
        copy.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded {
            attempt: 1,
            answer: named_answer("mail")
        })
    );
}

#[test]
fn a_copy_runs_what_has_not_succeeded_and_nothing_else() {
    let plan = in_order();
    let charged = after(1, &plan, &[("charge", Outcome::Succeeded)]);
    let failed = advance(charged, &end(1, &plan, "account", Outcome::Failed), at(2));
    assert_eq!(failed.reply, open("account"));
    assert_eq!(standing(failed.operation.as_ref()), "succeeded failed waiting failed");
    let copy = claim(failed.operation, &claiming(2, &plan), at(3));
    assert_eq!(copy.reply, begun(2, &["account"]));
    let done = advance(copy.operation, &end(2, &plan, "account", Outcome::Succeeded), at(4));
    assert_eq!(done.reply, next("mail"));
    // The report of the first attempt is stale by now.
    let stale = advance(done.operation, &end(1, &plan, "account", Outcome::Failed), at(5));
    assert_eq!(stale.reply, Advanced::Superseded);
    assert_eq!(standing(stale.operation.as_ref()), "succeeded succeeded in_flight in_flight");
}

#[test]
fn at_once_all_begin_and_a_copy_runs_those_that_failed_while_an_uncertain_one_is_held() {
    let plan = at_once();
    let done = claim(None, &claiming(1, &plan), T0);
    assert_eq!(done.reply, begun(1, &NAMES));
    let done = advance(done.operation, &end(1, &plan, "mail", Outcome::Failed), at(1));
    assert_eq!(done.reply, Advanced::Recorded);
    let done = advance(done.operation, &end(1, &plan, "charge", Outcome::Uncertain), at(2));
    assert_eq!(done.reply, Advanced::Recorded);
    let done = advance(done.operation, &end(1, &plan, "account", Outcome::Succeeded), at(3));
    assert_eq!(done.reply, open("charge"));
    assert_eq!(standing(done.operation.as_ref()), "uncertain succeeded failed uncertain");
    let copy = claim(done.operation, &claiming(2, &plan), at(4));
    assert_eq!(copy.reply, begun(2, &["mail"]));
    let done = advance(copy.operation, &end(2, &plan, "mail", Outcome::Succeeded), at(5));
    assert_eq!(done.reply, open("charge"));
    let held = claim(done.operation, &claiming(3, &plan), at(6));
    assert!(is_uncertain(&held.reply), "{:?}", held.reply);
    // The late end of the first attempt's step counts, because no other claim has begun that step.
    let late = advance(held.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(7));
    let end = EventEnd::Succeeded(named_answer("mail"));
    assert_eq!(late.reply, Advanced::Ended { copy_refused: true, end });
    assert_eq!(standing(late.operation.as_ref()), "succeeded succeeded succeeded succeeded");
}

#[test]
fn an_uncertain_step_goes_by_its_own_policy() {
    let retried = plan_with(false, IfUncertain::Retry { attempts_max: 2 });
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Uncertain)];
    let found = after(1, &retried, &ends);
    let early = claim(found.clone(), &claiming(2, &retried), at(ATTEMPT_TIMEOUT));
    assert!(is_uncertain(&early.reply), "{:?}", early.reply);
    let due = at(ATTEMPT_TIMEOUT + 1);
    let again = claim(found.clone(), &claiming(2, &retried), due);
    assert_eq!(again.reply, begun(2, &["account"]));
    let decision = again.operation.as_ref().unwrap().decisions.last().unwrap();
    assert_eq!(decision.kind, DecisionKind::Retried);
    assert_eq!(decision.reason, "account: timed-out");
    // After two uncertain attempts the step is held.
    let twice = advance(again.operation, &end(2, &retried, "account", Outcome::Uncertain), due);
    let later = due.plus(Duration::from_millis(ATTEMPT_TIMEOUT));
    let held = claim(twice.operation, &claiming(3, &retried), later);
    assert!(is_uncertain(&held.reply), "{:?}", held.reply);
    let held = claim(found, &claiming(2, &in_order()), due);
    assert!(is_uncertain(&held.reply), "{:?}", held.reply);
}

#[test]
fn a_person_decides_for_all_steps() {
    let plan = in_order();
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Uncertain)];
    let found = || after(1, &plan, &ends);
    let done = resolve(found(), &resolution(Verdict::Succeeded(None)), at(2)).operation;
    assert_eq!(standing(done.as_ref()), "succeeded succeeded succeeded succeeded");
    let not_done = resolve(found(), &resolution(Verdict::Failed), at(2)).operation;
    assert_eq!(standing(not_done.as_ref()), "succeeded failed waiting failed");
    let copy = claim(not_done.clone(), &claiming(2, &plan), at(3));
    assert_eq!(copy.reply, begun(2, &["account"]));
    // The report of the first attempt is stale by now.
    let late = advance(not_done, &end(1, &plan, "account", Outcome::Succeeded), at(3));
    assert_eq!(late.reply, Advanced::Superseded);
    let forgotten = forget(found(), "again", at(2)).operation;
    assert_eq!(standing(forgotten.as_ref()), "waiting waiting waiting forgotten");
    let copy = claim(forgotten, &claiming(2, &plan), at(3));
    assert_eq!(copy.reply, begun(2, &["charge"]));
}

#[test]
fn steps_that_were_added_or_removed_since() {
    let plan = in_order();
    let fewer =
        Plan { steps: plan.steps[..2].to_vec(), answer_from: "account".into(), ..(*plan).clone() };
    let fewer = Arc::new(fewer);
    // A step that was added later is not run after a success, and is run after a failure.
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Succeeded)];
    let success = after(1, &fewer, &ends);
    let copy = claim(success, &claiming(2, &plan), at(3));
    assert_eq!(
        copy.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded {
            attempt: 1,
            answer: named_answer("account")
        })
    );
    let failure = after(1, &fewer, &[("charge", Outcome::Succeeded), ("account", Outcome::Failed)]);
    let copy = claim(failure, &claiming(2, &plan), at(3));
    let next_one = advance(copy.operation, &end(2, &plan, "account", Outcome::Succeeded), at(4));
    assert_eq!(next_one.reply, next("mail"));
    // A step that was removed is not run, and stays in the record.
    let ends = [ends[0], ends[1], ("mail", Outcome::Failed)];
    let copy = claim(after(1, &plan, &ends), &claiming(2, &fewer), at(3));
    assert_eq!(
        copy.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded {
            attempt: 1,
            answer: named_answer("account")
        })
    );
    assert_eq!(standing(copy.operation.as_ref()), "succeeded succeeded failed succeeded");
}

/// Nobody knows which of the steps the event has reached.
#[test]
fn what_was_uncertain_before_the_route_had_steps_is_held() {
    let plan = plan_with(false, IfUncertain::Retry { attempts_max: 10 });
    let copy = claim(uncertain(), &claiming(2, &plan), at(ATTEMPT_TIMEOUT * 2));
    assert!(is_uncertain(&copy.reply), "{:?}", copy.reply);
    let copy = claim(failed(), &claiming(2, &plan), at(1));
    assert_eq!(copy.reply, begun(2, &["charge"]));
}

#[test]
fn a_claim_that_only_looks_begins_nothing() {
    let plan = in_order();
    let look = ClaimRequest { may_grant: false, ..claiming(2, &plan) };
    for found in [None, failed(), after(1, &plan, &[("charge", Outcome::Failed)])] {
        assert_eq!(claim(found, &look, at(3)).reply, ClaimReply::NotGranted(ReportedState::Free));
    }
}

#[test]
fn a_refused_copy_is_told_when_the_event_fails() {
    let plan = in_order();
    let refused = claim(after(1, &plan, &[]), &claiming(2, &plan), at(1));
    assert!(matches!(refused.reply, ClaimReply::NotGranted(ReportedState::InFlight { .. })));
    let charged = advance(refused.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(2));
    let failed = advance(charged.operation, &end(1, &plan, "account", Outcome::Failed), at(3));
    let end = EventEnd::Open("account".into());
    assert_eq!(failed.reply, Advanced::Ended { copy_refused: true, end });
}
