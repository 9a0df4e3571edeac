//! Leases, retentions and holds, a millisecond before and after each of them ends.

use super::*;

#[test]
fn a_lease_ends_on_its_millisecond() {
    for (now, state) in [(LEASE - 1, "in_flight"), (LEASE, "uncertain"), (LEASE + 1, "uncertain")] {
        let seen = lapse(in_flight(), at(now));
        assert_eq!(state_of(seen.operation.as_ref()), state, "at {now}");
        let renewed = renew(in_flight(), 1, Duration::from_secs(1), at(now));
        let expected = if state == "in_flight" { Renewed::Renewed } else { Renewed::Superseded };
        assert_eq!(renewed.reply, expected, "at {now}");
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
        assert_eq!(done.reply == granted(1), free, "at {now}");
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
        assert_eq!(
            (done.reply == ClaimReply::NotGranted(ReportedState::Free), done.hold_ended),
            (gone, gone),
            "at {now}"
        );
        assert_eq!(done.change, Change::Lazy, "at {now}");
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
    short.durations.hold_for = Duration::ZERO;
    let found = claim(None, &short, T0).operation;
    let abandoned = Some(abandon(found.clone().unwrap(), at(1)));
    let mut end = settlement(1, Outcome::Uncertain);
    end.durations.hold_for = Duration::ZERO;
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
    let done = renew(in_flight(), 1, Duration::from_millis(500), at(1));
    assert_eq!((done.reply, done.change), (Renewed::Renewed, Change::Volatile));
    assert_eq!(state_of(lapse(done.operation, at(LEASE - 1)).operation.as_ref()), "in_flight");
    let longer = renew(in_flight(), 1, Duration::from_millis(LEASE), at(1)).operation;
    assert_eq!(state_of(lapse(longer, at(LEASE)).operation.as_ref()), "in_flight");
}

#[test]
fn a_lease_of_less_than_a_millisecond_is_not_none() {
    let mut short = request(1);
    short.durations.lease = Duration::from_nanos(1);
    let found = claim(None, &short, T0).operation;
    assert_eq!(state_of(lapse(found.clone(), T0).operation.as_ref()), "in_flight");
    assert_eq!(state_of(lapse(found, at(1)).operation.as_ref()), "uncertain");
}

#[test]
fn only_the_current_claim_renews() {
    for found in [None, succeeded(), failed(), uncertain(), forgotten()] {
        let done = renew(found.clone(), 1, Duration::from_secs(9), at(1));
        assert_eq!((done.reply, done.change), (Renewed::Superseded, Change::None));
        assert_eq!(done.operation, found);
    }
    let next = claimed(failed(), 2, at(1));
    let done = renew(next, 1, Duration::from_secs(9), at(2));
    assert_eq!((done.reply, done.change), (Renewed::Superseded, Change::None));
}

#[test]
fn what_was_not_to_be_held_at_all_is_given_up_by_nobody() {
    let unheld = Durations { hold_for: Duration::ZERO, ..durations() };
    let request = ClaimRequest { durations: unheld, ..request(1) };
    let found = claim(None, &request, T0).operation;
    let goes_on = lapse(found.clone(), at(LEASE));
    let over = lapse(found, at(ATTEMPT_TIMEOUT));
    assert_eq!((goes_on.operation.is_some(), goes_on.hold_ended), (true, false));
    assert_eq!((over.operation.is_none(), over.hold_ended), (true, false));
}

#[test]
fn a_sweep_tells_what_is_gone_from_what_only_changed() {
    assert!(!expire(None, at(1)).reply);
    assert!(!expire(in_flight(), at(LEASE)).reply);
    assert!(!expire(succeeded(), at(RETENTION - 1)).reply);
    assert!(expire(succeeded(), at(RETENTION)).reply);
}
