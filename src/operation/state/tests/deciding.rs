//! Decisions of an operator about an operation.

use super::*;

#[test]
fn an_operator_ends_what_is_uncertain_or_failed() {
    for found in [uncertain(), failed()] {
        let done = resolve(found.clone(), &resolution(Verdict::Failed), at(1));
        assert_eq!((done.reply, state_of(done.operation.as_ref())), (Decided::Done, "failed"));
        let given = Verdict::Succeeded(Some(answer(202)));
        let done = resolve(found, &resolution(given), at(1)).operation;
        let copy = claim(done.clone(), &request(2), at(2));
        assert_eq!(
            copy.reply,
            ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(202) })
        );
        let decided = done.unwrap().decisions.pop().unwrap();
        assert_eq!(decided.kind, DecisionKind::ResolvedSucceeded);
    }
    for found in [in_flight(), succeeded(), forgotten()] {
        let done = resolve(found.clone(), &resolution(Verdict::Failed), at(1));
        assert_eq!((done.reply, done.change), (Decided::Refused, Change::None));
        assert_eq!(done.operation, found);
    }
    assert_eq!(resolve(None, &resolution(Verdict::Failed), at(1)).reply, Decided::Unknown);
}

#[test]
fn an_operation_resolved_without_an_answer_has_the_stored_success_or_an_empty_200() {
    // The stored answer is a 504, which is not a success.
    let done = resolve(uncertain(), &resolution(Verdict::Succeeded(None)), at(1)).operation;
    let copy = claim(done, &request(2), at(2)).reply;
    assert_eq!(
        copy,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(200) })
    );
    let mut end = settlement(1, Outcome::Uncertain);
    end.ending = Ending::Uncertain { answer: answer(204), reference: None };
    let held = settle(in_flight(), &end, T0).operation;
    let done = resolve(held, &resolution(Verdict::Succeeded(None)), at(1)).operation;
    let copy = claim(done, &request(2), at(2)).reply;
    assert_eq!(
        copy,
        ClaimReply::NotGranted(ReportedState::Succeeded { attempt: 1, answer: answer(204) })
    );
}

#[test]
fn an_operator_who_looked_at_another_attempt_is_refused() {
    let mut looked = resolution(Verdict::Failed);
    looked.attempt = Some(2);
    assert_eq!(resolve(uncertain(), &looked, at(1)).reply, Decided::Refused);
    looked.attempt = Some(1);
    assert_eq!(resolve(uncertain(), &looked, at(1)).reply, Decided::Done);
}

/// A late settle of the same attempt, or another operator, has changed the state meanwhile.
#[test]
fn an_operator_who_looked_at_another_state_is_refused() {
    let mut looked = resolution(Verdict::Succeeded(None));
    looked.state = Some(StateName::Uncertain);
    assert_eq!(resolve(failed(), &looked, at(1)).reply, Decided::Refused);
    assert_eq!(resolve(uncertain(), &looked, at(1)).reply, Decided::Done);
    looked.state = Some(StateName::Failed);
    assert_eq!(resolve(failed(), &looked, at(1)).reply, Decided::Done);
}

#[test]
fn forgetting_frees_at_once_and_lengthens_nothing() {
    for found in [succeeded(), failed(), uncertain(), forgotten()] {
        let due = found.as_ref().unwrap().state.changes_at();
        let done = forget(found, "again", at(1));
        assert_eq!((done.reply, done.change), (Decided::Done, Change::Durable));
        assert_eq!(done.operation.as_ref().unwrap().state.changes_at(), due);
        assert_eq!(claim(done.operation, &request(2), at(2)).reply, granted(2));
    }
    assert_eq!(forget(in_flight(), "again", at(1)).reply, Decided::Refused);
    assert_eq!(forget(None, "again", at(1)).reply, Decided::Unknown);
    let gone = forget(succeeded(), "again", at(RETENTION));
    assert_eq!(gone.reply, Decided::Unknown);
}

#[test]
fn of_many_decisions_the_first_and_the_latest_stay() {
    let mut found = succeeded();
    for n in 0..100 {
        found = forget(found, &n.to_string(), at(n)).operation;
    }
    let decisions = found.unwrap().decisions;
    assert_eq!(decisions.len(), 64);
    assert_eq!((&*decisions[0].reason, &*decisions[31].reason), ("0", "31"));
    assert_eq!((&*decisions[32].reason, &*decisions[63].reason), ("68", "99"));
}
