//! Look-ups of uncertain steps.

use super::*;

fn asked_about() -> (Arc<Plan>, Option<Operation>) {
    let lease = Duration::from_secs(7);
    let plan = plan_with(false, IfUncertain::LookUp { attempts_max: 10, lease });
    let ends = [("charge", Outcome::Succeeded), ("account", Outcome::Uncertain)];
    let done = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2));
    let step = Some("account".into());
    assert_eq!(done.reply, ClaimReply::Lookup(LookupGrant { attempt: 1, step }));
    (plan, done.operation)
}

fn told(plan: &Arc<Plan>, step: &str, finding: Finding) -> LookupReport {
    let request = claiming(2, plan);
    let step = Some(step.into());
    LookupReport { request, step, finding, reason: "as told".to_owned(), reference: None }
}

#[test]
fn a_look_up_is_about_one_step_and_what_follows_runs_in_the_same_request() {
    let (plan, asked) = asked_about();
    let done = conclude(asked.clone(), &told(&plan, "account", Finding::Done), at(3));
    assert_eq!(done.reply, begun(2, &["mail"]));
    assert_eq!(standing(done.operation.as_ref()), "succeeded succeeded in_flight in_flight");
    let decision = done.operation.as_ref().unwrap().decisions.last().unwrap().reason.clone();
    assert_eq!(decision, "account: done: as told");
    let twice = conclude(done.operation, &told(&plan, "account", Finding::Done), at(3));
    assert_eq!(twice.reply, begun(2, &["mail"]));
    let early = conclude(asked.clone(), &told(&plan, "account", Finding::NotDone), at(3));
    assert!(is_uncertain(&early.reply), "{:?}", early.reply);
    let due = at(ATTEMPT_TIMEOUT + 1);
    let again = conclude(asked.clone(), &told(&plan, "account", Finding::NotDone), due);
    assert_eq!(again.reply, begun(2, &["account"]));
    let held = conclude(asked.clone(), &told(&plan, "account", Finding::Unknown), due);
    assert!(is_uncertain(&held.reply), "{:?}", held.reply);
    assert_eq!(standing(held.operation.as_ref()), "succeeded uncertain waiting uncertain");
    // The receiver was not asked about another step.
    let other = conclude(asked, &told(&plan, "mail", Finding::Done), due);
    assert!(matches!(
        other.reply,
        ClaimReply::Granted(_)
            | ClaimReply::NotGranted(
                ReportedState::InFlight { .. } | ReportedState::Uncertain { .. }
            )
    ));
    assert_eq!(standing(other.operation.as_ref()), "succeeded uncertain waiting uncertain");
}

#[test]
fn when_the_last_step_turns_out_to_be_done_the_event_is() {
    let lease = Duration::from_secs(7);
    let plan = plan_with(false, IfUncertain::LookUp { attempts_max: 10, lease });
    let ends = [
        ("charge", Outcome::Succeeded),
        ("account", Outcome::Succeeded),
        ("mail", Outcome::Uncertain),
    ];
    let asked = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2)).operation;
    let shared = ClaimRequest { remember: Remember::InFlight, ..claiming(2, &plan) };
    let report = LookupReport { request: shared, ..told(&plan, "mail", Finding::Done) };
    let done = conclude(asked, &report, at(3));
    assert_eq!(
        done.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(200) })
    );
    assert_eq!(standing(done.operation.as_ref()), "succeeded succeeded succeeded succeeded");
}

#[test]
fn at_once_one_request_asks_about_one_uncertain_step_after_the_other() {
    let lease = Duration::from_secs(7);
    let plan = plan_with(true, IfUncertain::LookUp { attempts_max: 10, lease });
    let ends = [
        ("charge", Outcome::Uncertain),
        ("account", Outcome::Succeeded),
        ("mail", Outcome::Uncertain),
    ];
    let first = claim(after(1, &plan, &ends), &claiming(2, &plan), at(2));
    let about =
        |step: &str| ClaimReply::Lookup(LookupGrant { attempt: 1, step: Some(step.into()) });
    assert_eq!(first.reply, about("charge"));
    let second = conclude(first.operation.clone(), &told(&plan, "charge", Finding::Unknown), at(3));
    assert_eq!(second.reply, about("mail"));
    let held = conclude(second.operation, &told(&plan, "mail", Finding::Done), at(4));
    assert!(matches!(held.reply, ClaimReply::Lookup(_)), "{:?}", held.reply);
    let second = conclude(first.operation, &told(&plan, "charge", Finding::Done), at(3));
    assert_eq!(second.reply, about("mail"));
    let done = conclude(second.operation, &told(&plan, "mail", Finding::Done), at(4));
    assert_eq!(
        done.reply,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(200) })
    );
}
