//! Events with several receivers: which steps run, what a claim, a lease, a crash and a person do to
//! them.

use super::*;

const NAMES: [&str; 3] = ["charge", "account", "mail"];

fn plan_with(at_once: bool, if_uncertain: IfUncertain) -> Arc<Plan> {
    let planned = |name: &str| PlannedStep {
        name: name.into(),
        attempt_timeout: Duration::from_millis(ATTEMPT_TIMEOUT),
        if_uncertain,
        forward_key: (name == "charge").then(|| "x-dedup".into()),
    };
    let steps = NAMES.into_iter().map(planned).collect();
    Arc::new(Plan { steps, at_once, answer_from: "mail".into() })
}

fn in_order() -> Arc<Plan> {
    plan_with(false, IfUncertain::Held)
}

fn at_once() -> Arc<Plan> {
    plan_with(true, IfUncertain::Held)
}

fn claiming(n: u8, plan: &Arc<Plan>) -> ClaimRequest {
    ClaimRequest { plan: Some(Arc::clone(plan)), ..request(n) }
}

fn end(n: u8, plan: &Arc<Plan>, step: &str, outcome: Outcome) -> StepEnd {
    let Settlement { asked, claim_id, attempt, holder, terms, mut ending } = settlement(n, outcome);
    ending.answer = (outcome == Outcome::Succeeded).then(|| named_answer(step));
    let plan = Arc::clone(plan);
    let step = step.into();
    StepEnd { asked, claim_id, attempt, holder, terms, plan, step, ending }
}

/// Tells which step an answer is of.
fn named_answer(step: &str) -> Arc<StoredAnswer> {
    let body = AnswerBody::Kept(step.to_owned().into());
    Arc::new(StoredAnswer { body, ..StoredAnswer::empty(http::StatusCode::OK) })
}

fn begun(attempt: u32, steps: &[&str]) -> Claimed {
    Claimed::Begun { attempt, steps: steps.iter().map(|&step| step.into()).collect() }
}

fn next(step: &str) -> Advanced {
    Advanced::Next { step: step.into() }
}

fn open(step: &str) -> Advanced {
    Advanced::Ended { copy_refused: false, end: EventEnd::Open(step.into()) }
}

/// How it stands with each step, and with the event.
fn standing(operation: Option<&Operation>) -> String {
    let operation = operation.unwrap();
    let steps = operation.steps.iter().map(|step| step.state.as_str());
    format!("{} {}", steps.collect::<Vec<_>>().join(" "), operation.state.as_str())
}

/// The record after each of these steps has ended so, one after the other, and what is left to run.
fn after(n: u8, plan: &Arc<Plan>, ends: &[(&str, Outcome)]) -> Option<Operation> {
    let done = claim(None, &claiming(n, plan), T0);
    assert!(matches!(done.result, Claimed::Begun { attempt: 1, .. }), "{:?}", done.result);
    ends.iter().fold(done.operation, |found, (step, outcome)| {
        let done = advance(found, &end(n, plan, step, *outcome), at(1));
        assert_eq!(done.change, Change::Durable);
        done.operation
    })
}

#[test]
fn in_order_each_step_begins_with_the_end_of_the_one_before() {
    let plan = in_order();
    let done = claim(None, &claiming(1, &plan), T0);
    assert_eq!((done.result, done.change), (begun(1, &["charge"]), Change::Durable));
    assert_eq!(standing(done.operation.as_ref()), "in_flight waiting waiting in_flight");
    let done = advance(done.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(1));
    assert_eq!((done.result, done.change), (next("account"), Change::Durable));
    assert_eq!(standing(done.operation.as_ref()), "succeeded in_flight waiting in_flight");
    let done = advance(done.operation, &end(1, &plan, "account", Outcome::Succeeded), at(2));
    assert_eq!(done.result, next("mail"));
    let done = advance(done.operation, &end(1, &plan, "mail", Outcome::Succeeded), at(3));
    let end = EventEnd::Succeeded(named_answer("mail"));
    assert_eq!(done.result, Advanced::Ended { copy_refused: false, end });
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
    assert_eq!(copy.result, Claimed::Succeeded { attempt: 1, answer: named_answer("mail") });
}

/// C125.
#[test]
fn a_copy_runs_what_has_not_succeeded_and_nothing_else_c125() {
    let plan = in_order();
    let charged = after(1, &plan, &[("charge", Outcome::Succeeded)]);
    let failed = advance(charged, &end(1, &plan, "account", Outcome::Failed), at(2));
    assert_eq!(failed.result, open("account"));
    assert_eq!(standing(failed.operation.as_ref()), "succeeded failed waiting failed");
    let copy = claim(failed.operation, &claiming(2, &plan), at(3));
    assert_eq!(copy.result, begun(2, &["account"]));
    let done = advance(copy.operation, &end(2, &plan, "account", Outcome::Succeeded), at(4));
    assert_eq!(done.result, next("mail"));
    // the first attempt's own report is stale by now
    let stale = advance(done.operation, &end(1, &plan, "account", Outcome::Failed), at(5));
    assert_eq!(stale.result, Advanced::Superseded);
    assert_eq!(standing(stale.operation.as_ref()), "succeeded succeeded in_flight in_flight");
}

#[test]
fn at_once_all_begin_and_a_copy_runs_those_that_failed_while_an_uncertain_one_is_held() {
    let plan = at_once();
    let done = claim(None, &claiming(1, &plan), T0);
    assert_eq!(done.result, begun(1, &NAMES));
    let done = advance(done.operation, &end(1, &plan, "mail", Outcome::Failed), at(1));
    assert_eq!(done.result, Advanced::Recorded);
    let done = advance(done.operation, &end(1, &plan, "charge", Outcome::Uncertain), at(2));
    assert_eq!(done.result, Advanced::Recorded);
    let done = advance(done.operation, &end(1, &plan, "account", Outcome::Succeeded), at(3));
    assert_eq!(done.result, open("charge"));
    assert_eq!(standing(done.operation.as_ref()), "uncertain succeeded failed uncertain");
    let copy = claim(done.operation, &claiming(2, &plan), at(4));
    assert_eq!(copy.result, begun(2, &["mail"]));
    let done = advance(copy.operation, &end(2, &plan, "mail", Outcome::Succeeded), at(5));
    assert_eq!(done.result, open("charge"));
    let held = claim(done.operation, &claiming(3, &plan), at(6));
    assert!(matches!(held.result, Claimed::Uncertain { attempt: 2, .. }), "{:?}", held.result);
    // the late end of the first attempt's step counts: nobody else has begun it
    let late = advance(held.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(7));
    let end = EventEnd::Succeeded(named_answer("mail"));
    assert_eq!(late.result, Advanced::Ended { copy_refused: true, end });
    assert_eq!(standing(late.operation.as_ref()), "succeeded succeeded succeeded succeeded");
}

#[test]
fn a_lease_that_ran_out_leaves_uncertain_what_had_begun_and_waiting_what_had_not() {
    let plan = in_order();
    let charged = after(1, &plan, &[("charge", Outcome::Succeeded)]);
    let lost = lapse(charged.clone(), at(LEASE + 1)).operation;
    assert_eq!(standing(lost.as_ref()), "succeeded uncertain waiting uncertain");
    let held = claim(lost.clone(), &claiming(2, &plan), at(LEASE + 2));
    assert!(matches!(held.result, Claimed::Uncertain { attempt: 1, .. }), "{:?}", held.result);
    // a late end counts, and its holder goes on under a fresh lease
    let late = advance(lost, &end(1, &plan, "account", Outcome::Succeeded), at(LEASE + 3));
    assert_eq!(late.result, next("mail"));
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
            assert_eq!(twice.result, once.result, "{outcome:?}");
            let states = [once.operation.as_ref(), twice.operation.as_ref()].map(standing);
            assert_eq!(states[0], states[1]);
        }
    }
}

#[test]
fn an_uncertain_step_goes_by_its_own_policy() {
    let retried = plan_with(false, IfUncertain::Retried { attempts_max: 2 });
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Uncertain)];
    let found = after(1, &retried, &ends);
    let early = claim(found.clone(), &claiming(2, &retried), at(ATTEMPT_TIMEOUT));
    assert!(matches!(early.result, Claimed::Uncertain { .. }), "{:?}", early.result);
    let due = at(ATTEMPT_TIMEOUT + 1);
    let again = claim(found.clone(), &claiming(2, &retried), due);
    assert_eq!(again.result, begun(2, &["account"]));
    let decision = again.operation.as_ref().unwrap().decisions.last().unwrap();
    assert_eq!(decision.kind, DecisionKind::Retried);
    assert_eq!(decision.reason, "account: answered");
    // twice uncertain: it is held
    let twice = advance(again.operation, &end(2, &retried, "account", Outcome::Uncertain), due);
    let later = due.plus(Duration::from_millis(ATTEMPT_TIMEOUT));
    let held = claim(twice.operation, &claiming(3, &retried), later);
    assert!(matches!(held.result, Claimed::Uncertain { .. }), "{:?}", held.result);
    let held = claim(found, &claiming(2, &in_order()), due);
    assert!(matches!(held.result, Claimed::Uncertain { .. }), "{:?}", held.result);
}

fn asked_about() -> (Arc<Plan>, Option<Operation>) {
    let lease = Duration::from_secs(7);
    let plan = plan_with(false, IfUncertain::LookedUp { attempts_max: 10, lease });
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Uncertain)];
    let done = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2));
    let step = Some("account".into());
    assert_eq!(done.result, Claimed::LookUp { attempt: 1, step });
    (plan, done.operation)
}

fn told(plan: &Arc<Plan>, step: &str, finding: Finding) -> Conclusion {
    let request = claiming(2, plan);
    let step = Some(step.into());
    Conclusion { request, step, finding, reason: "as told".to_owned(), reference: None }
}

#[test]
fn a_look_up_is_about_one_step_and_what_follows_runs_in_the_same_request() {
    let (plan, asked) = asked_about();
    let done = conclude(asked.clone(), &told(&plan, "account", Finding::Done), at(3));
    assert_eq!(done.result, begun(2, &["mail"]));
    assert_eq!(standing(done.operation.as_ref()), "succeeded succeeded in_flight in_flight");
    let decision = done.operation.as_ref().unwrap().decisions.last().unwrap().reason.clone();
    assert_eq!(decision, "account: done: as told");
    let twice = conclude(done.operation, &told(&plan, "account", Finding::Done), at(3));
    assert_eq!(twice.result, begun(2, &["mail"]));
    let early = conclude(asked.clone(), &told(&plan, "account", Finding::NotDone), at(3));
    assert!(matches!(early.result, Claimed::Uncertain { .. }), "{:?}", early.result);
    let due = at(ATTEMPT_TIMEOUT + 1);
    let again = conclude(asked.clone(), &told(&plan, "account", Finding::NotDone), due);
    assert_eq!(again.result, begun(2, &["account"]));
    let held = conclude(asked.clone(), &told(&plan, "account", Finding::Unknown), due);
    assert!(matches!(held.result, Claimed::Uncertain { .. }), "{:?}", held.result);
    assert_eq!(standing(held.operation.as_ref()), "succeeded uncertain waiting uncertain");
    // of another step nothing was asked
    let other = conclude(asked, &told(&plan, "mail", Finding::Done), due);
    assert!(matches!(
        other.result,
        Claimed::Begun { .. } | Claimed::InFlight { .. } | Claimed::Uncertain { .. }
    ));
    assert_eq!(standing(other.operation.as_ref()), "succeeded uncertain waiting uncertain");
}

#[test]
fn when_the_last_step_turns_out_to_be_done_the_event_is() {
    let lease = Duration::from_secs(7);
    let plan = plan_with(false, IfUncertain::LookedUp { attempts_max: 10, lease });
    let ends = [
        ("charge", Outcome::Succeeded),
        ("account", Outcome::Succeeded),
        ("mail", Outcome::Uncertain),
    ];
    let asked = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2)).operation;
    let shared = ClaimRequest {
        if_succeeded: IfSucceeded::Shared { waited_for: None },
        ..claiming(2, &plan)
    };
    let conclusion = Conclusion { request: shared, ..told(&plan, "mail", Finding::Done) };
    let done = conclude(asked, &conclusion, at(3));
    assert_eq!(done.result, Claimed::Succeeded { attempt: 1, answer: answer(200) });
    assert_eq!(standing(done.operation.as_ref()), "succeeded succeeded succeeded succeeded");
}

#[test]
fn at_once_one_request_asks_about_one_uncertain_step_after_the_other() {
    let lease = Duration::from_secs(7);
    let plan = plan_with(true, IfUncertain::LookedUp { attempts_max: 10, lease });
    let ends = [
        ("charge", Outcome::Uncertain),
        ("account", Outcome::Succeeded),
        ("mail", Outcome::Uncertain),
    ];
    let first = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2));
    let about = |step: &str| Claimed::LookUp { attempt: 1, step: Some(step.into()) };
    assert_eq!(first.result, about("charge"));
    let second = conclude(first.operation.clone(), &told(&plan, "charge", Finding::Unknown), at(3));
    assert_eq!(second.result, about("mail"));
    let held = conclude(second.operation, &told(&plan, "mail", Finding::Done), at(4));
    assert!(matches!(held.result, Claimed::LookUp { .. }), "{:?}", held.result);
    let second = conclude(first.operation, &told(&plan, "charge", Finding::Done), at(3));
    assert_eq!(second.result, about("mail"));
    let done = conclude(second.operation, &told(&plan, "mail", Finding::Done), at(4));
    assert_eq!(done.result, Claimed::Succeeded { attempt: 1, answer: answer(200) });
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
    assert_eq!(copy.result, begun(2, &["account"]));
    // what the first attempt says of it by now is stale
    let late = advance(not_done, &end(1, &plan, "account", Outcome::Succeeded), at(3));
    assert_eq!(late.result, Advanced::Superseded);
    let forgotten = forget(found(), "ops", "again", at(2)).operation;
    assert_eq!(standing(forgotten.as_ref()), "waiting waiting waiting forgotten");
    let copy = claim(forgotten, &claiming(2, &plan), at(3));
    assert_eq!(copy.result, begun(2, &["charge"]));
}

#[test]
fn a_withdrawal_frees_what_had_begun_and_keeps_what_is_done() {
    let plan = in_order();
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Failed)];
    let found = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2)).operation;
    let freed = withdraw(found, claim_of(2), terms().retention, at(3));
    assert_eq!(freed.change, Change::Durable);
    assert_eq!(standing(freed.operation.as_ref()), "succeeded failed waiting failed");
    let again = claim(freed.operation, &claiming(2, &plan), at(4));
    assert_eq!(again.result, Claimed::Free);
}

#[test]
fn a_record_that_was_lost_is_written_with_all_that_is_known() {
    let plan = in_order();
    let lost = advance(None, &end(1, &plan, "account", Outcome::Failed), at(1));
    assert_eq!(lost.result, Advanced::RecordLost);
    assert_eq!(standing(lost.operation.as_ref()), "succeeded failed waiting failed");
    let lost = advance(None, &end(1, &plan, "account", Outcome::Succeeded), at(1));
    assert_eq!(standing(lost.operation.as_ref()), "succeeded succeeded waiting failed");
    let plan = at_once();
    let lost = advance(None, &end(1, &plan, "account", Outcome::Succeeded), at(1));
    assert_eq!(standing(lost.operation.as_ref()), "uncertain succeeded uncertain uncertain");
    let found = advance(lost.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(2));
    assert_eq!(standing(found.operation.as_ref()), "succeeded succeeded uncertain uncertain");
}

#[test]
fn steps_that_were_added_or_removed_since() {
    let plan = in_order();
    let fewer =
        Plan { steps: plan.steps[..2].to_vec(), answer_from: "account".into(), ..(*plan).clone() };
    let fewer = Arc::new(fewer);
    // added later: not run for a success, and run for a failure
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Succeeded)];
    let success = after(1, &fewer, &ends);
    let copy = claim(success, &claiming(2, &plan), at(3));
    assert_eq!(copy.result, Claimed::Succeeded { attempt: 1, answer: named_answer("account") });
    let failure = after(1, &fewer, &[("charge", Outcome::Succeeded), ("account", Outcome::Failed)]);
    let copy = claim(failure, &claiming(2, &plan), at(3));
    let next_one = advance(copy.operation, &end(2, &plan, "account", Outcome::Succeeded), at(4));
    assert_eq!(next_one.result, next("mail"));
    // removed: not run, and kept in the record
    let ends = [ends[0], ends[1], ("mail", Outcome::Failed)];
    let copy = claim(after(1, &plan, &ends), &claiming(2, &fewer), at(3));
    assert_eq!(copy.result, Claimed::Succeeded { attempt: 1, answer: named_answer("account") });
    assert_eq!(standing(copy.operation.as_ref()), "succeeded succeeded failed succeeded");
}

/// Nobody knows which of the steps it has reached.
#[test]
fn what_was_uncertain_before_the_route_had_steps_is_held() {
    let plan = plan_with(false, IfUncertain::Retried { attempts_max: 10 });
    let copy = claim(uncertain(), &claiming(2, &plan), at(ATTEMPT_TIMEOUT * 2));
    assert!(matches!(copy.result, Claimed::Uncertain { .. }), "{:?}", copy.result);
    let copy = claim(failed(), &claiming(2, &plan), at(1));
    assert_eq!(copy.result, begun(2, &["charge"]));
}

#[test]
fn a_claim_that_only_looks_begins_nothing() {
    let plan = in_order();
    let look = ClaimRequest { may_grant: false, ..claiming(2, &plan) };
    for found in [None, failed(), after(1, &plan, &[("charge", Outcome::Failed)])] {
        assert_eq!(claim(found, &look, at(3)).result, Claimed::Free);
    }
}

#[test]
fn a_refused_copy_is_told_when_the_event_fails() {
    let plan = in_order();
    let refused = claim(after(1, &plan, &[]), &claiming(2, &plan), at(1));
    assert!(matches!(refused.result, Claimed::InFlight { .. }));
    let charged = advance(refused.operation, &end(1, &plan, "charge", Outcome::Succeeded), at(2));
    let failed = advance(charged.operation, &end(1, &plan, "account", Outcome::Failed), at(3));
    let end = EventEnd::Open("account".into());
    assert_eq!(failed.result, Advanced::Ended { copy_refused: true, end });
}

/// The store was away for longer than the lease, and with it the reply that said that the next step
/// had begun.
#[test]
fn a_step_of_whose_beginning_nobody_has_heard_begins_once_more() {
    let plan = in_order();
    let charge = end(1, &plan, "charge", Outcome::Succeeded);
    let unheard = after(1, &plan, &[("charge", Outcome::Succeeded)]);
    for away in [10, LEASE, LEASE + 10, ATTEMPT_TIMEOUT + 10] {
        let again = advance(unheard.clone(), &charge, at(away));
        assert_eq!((again.result, again.change), (next("account"), Change::Durable));
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
        assert_eq!(account.result, next("mail"));
    }
}

/// Its own holder has said so: it was sent.
#[test]
fn a_step_that_ran_does_not_begin_once_more() {
    let plan = in_order();
    let charge = end(1, &plan, "charge", Outcome::Succeeded);
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Uncertain)];
    let ran = after(1, &plan, &ends);
    let again = advance(ran, &charge, at(LEASE + 1));
    assert_eq!(again.result, open("account"));
    assert_eq!(standing(again.operation.as_ref()), "succeeded uncertain waiting uncertain");
    // nor one that somebody else has begun since
    let retried = plan_with(false, IfUncertain::Retried { attempts_max: 9 });
    let lost = after(1, &retried, &ends[..1]);
    let later = at(ATTEMPT_TIMEOUT + LEASE);
    let other = claim(lost, &claiming(2, &retried), later);
    assert_eq!(other.result, begun(2, &["account"]));
    let charge = end(1, &retried, "charge", Outcome::Succeeded);
    let again = advance(other.operation.clone(), &charge, later);
    assert_eq!(again.result, open("account"));
    assert_eq!(again.operation, other.operation);
}
