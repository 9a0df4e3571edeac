//! The rules that hold for an event with steps after any sequence of calls.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::*;
use crate::operation::StepState;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// One call or other change. Claims are named by numbers, and the newest one is 0.
#[derive(Debug, Clone)]
enum Happens {
    Claim {
        may_grant: bool,
        may_look_up: bool,
    },
    /// The report that a step of a claim has ended. The report may be wrong, late or repeated.
    End {
        claim: usize,
        step: usize,
        outcome: Outcome,
    },
    Conclude {
        claim: usize,
        step: usize,
        finding: Finding,
    },
    Renew {
        claim: usize,
    },
    Withdraw {
        claim: usize,
    },
    Resolve {
        succeeded: bool,
    },
    Forget,
    Crash,
    Pass {
        millis: u64,
    },
}

fn happens() -> impl Strategy<Value = Vec<Happens>> {
    let claim = 0_usize..4;
    let step = 0_usize..3;
    let outcome = prop_oneof![
        4 => Just(Outcome::Succeeded),
        2 => Just(Outcome::Failed),
        2 => Just(Outcome::Uncertain)
    ];
    let one = prop_oneof![
        8 => (prop::bool::weighted(0.9), any::<bool>())
            .prop_map(|(may_grant, may_look_up)| Happens::Claim { may_grant, may_look_up }),
        12 => (claim.clone(), step.clone(), outcome)
            .prop_map(|(claim, step, outcome)| Happens::End { claim, step, outcome }),
        3 => (claim.clone(), step, prop::sample::select(&Finding::ALL[..]))
            .prop_map(|(claim, step, finding)| Happens::Conclude { claim, step, finding }),
        1 => claim.clone().prop_map(|claim| Happens::Renew { claim }),
        1 => claim.prop_map(|claim| Happens::Withdraw { claim }),
        1 => any::<bool>().prop_map(|succeeded| Happens::Resolve { succeeded }),
        1 => Just(Happens::Forget),
        1 => Just(Happens::Crash),
        4 => (0..LEASE * 2).prop_map(|millis| Happens::Pass { millis }),
        1 => Just(Happens::Pass { millis: ATTEMPT_TIMEOUT }),
    ];
    prop::collection::vec(one, 1..60)
}

fn planned() -> impl Strategy<Value = Arc<Plan>> {
    let lease = Duration::from_secs(7);
    let policy = prop::sample::select(vec![
        IfUncertain::Hold,
        IfUncertain::Retry { attempts_max: 3 },
        IfUncertain::LookUp { attempts_max: 3, lease },
    ]);
    (prop::array::uniform3(policy), any::<bool>(), 0_usize..3).prop_map(
        |(policies, at_once, from)| {
            let one = |(name, if_uncertain): (&str, _)| PlannedStep {
                name: name.into(),
                attempt_timeout: Duration::from_millis(ATTEMPT_TIMEOUT),
                if_uncertain,
                forward_key: None,
            };
            let steps = NAMES.into_iter().zip(policies).map(one).collect();
            Arc::new(Plan { steps, at_once, answer_from: NAMES[from].into() })
        },
    )
}

/// The record, and the facts that the test knows about it.
struct World {
    plan: Arc<Plan>,
    now: Timestamp,
    record: Option<Operation>,
    claims: Vec<(ClaimId, u32)>,
    /// The highest number of an attempt since the record began.
    latest: u32,
    /// Steps that succeeded, or that an operator or a look-up called done, since they were last
    /// freed.
    done: HashSet<Arc<str>>,
    /// The claim that was told to run each step and has not reported its end, and when its time for
    /// the step is over.
    running: HashMap<Arc<str>, (ClaimId, Timestamp)>,
}

impl World {
    fn request(&self, claim_id: ClaimId) -> ClaimRequest {
        ClaimRequest { claim_id, plan: Some(Arc::clone(&self.plan)), ..request(0) }
    }

    fn newest(&self, claim: usize) -> Option<(ClaimId, u32)> {
        self.claims.iter().rev().nth(claim).copied()
    }

    /// Notes that a step has begun under a claim. A step that has succeeded must not begin again,
    /// and none may while another claim may still be running it.
    fn begins(&mut self, step: &Arc<str>, claim_id: ClaimId) -> TestCaseResult {
        prop_assert!(!self.done.contains(step), "{step} has succeeded before");
        let ends_at = self.now.plus(Duration::from_millis(ATTEMPT_TIMEOUT));
        match self.running.get(step) {
            // The call was repeated. The step's time counts from the first one.
            Some((known, _)) if *known == claim_id => return Ok(()),
            Some((_, until)) => prop_assert!(*until <= self.now, "{step} runs elsewhere"),
            None => {}
        }
        self.running.insert(Arc::clone(step), (claim_id, ends_at));
        Ok(())
    }

    fn told(&mut self, claimed: &ClaimReply, claim_id: ClaimId) -> TestCaseResult {
        match claimed {
            ClaimReply::Granted(Grant { attempt, steps }) => {
                prop_assert!(!steps.is_empty());
                prop_assert!(self.plan.at_once || steps.len() == 1, "one after the other");
                if !self.claims.iter().any(|(known, _)| *known == claim_id) {
                    prop_assert!(self.latest < *attempt);
                    self.latest = *attempt;
                    self.claims.push((claim_id, *attempt));
                }
                steps.iter().try_for_each(|step| self.begins(step, claim_id))
            }
            ClaimReply::Lookup(LookupGrant { step, .. }) => {
                prop_assert!(step.is_some());
                if !self.claims.iter().any(|(known, _)| *known == claim_id) {
                    self.claims.push((claim_id, 0));
                }
                Ok(())
            }
            ClaimReply::NotGranted(ReportedState::Succeeded { .. }) => {
                let all = self.plan.steps.iter().all(|step| self.done.contains(&step.name));
                prop_assert!(all, "only {:?} are done", self.done);
                Ok(())
            }
            ClaimReply::NotGranted(
                ReportedState::Free
                | ReportedState::InFlight { .. }
                | ReportedState::Uncertain { .. }
                | ReportedState::Mismatched { .. },
            ) => Ok(()),
        }
    }

    fn happen(&mut self, what: &Happens, number: u8) -> TestCaseResult {
        let found = self.record.take();
        let now = self.now;
        match what {
            Happens::Claim { may_grant, may_look_up } => {
                let id = claim_of(number);
                let may_grant = *may_grant;
                let may_look_up = *may_look_up;
                let request = ClaimRequest { may_grant, may_look_up, ..self.request(id) };
                let done = claim(found, &request, now);
                self.record = done.operation;
                self.told(&done.reply, id)
            }
            Happens::End { claim, step, outcome } => {
                let Some(of) = self.newest(*claim) else {
                    self.record = found;
                    return Ok(());
                };
                self.end(found, of, NAMES[*step], *outcome)
            }
            Happens::Conclude { claim, step, finding } => {
                let Some((id, _)) = self.newest(*claim) else {
                    self.record = found;
                    return Ok(());
                };
                self.conclude(found, id, NAMES[*step], *finding)
            }
            Happens::Renew { claim } => {
                let id = self.newest(*claim).map_or(claim_of(0), |(id, _)| id);
                let lease = durations().lease;
                let renewal = Renewal { operation: subject("body").id, claim_id: id, lease };
                self.record = renewal.apply(found, now).operation;
                Ok(())
            }
            Happens::Withdraw { claim } => {
                let id = self.newest(*claim).map_or(claim_of(0), |(id, _)| id);
                self.record = withdraw(found, id, now).operation;
                self.running.retain(|_, (running, _)| *running != id);
                Ok(())
            }
            Happens::Resolve { succeeded } => {
                self.resolve(found, *succeeded);
                Ok(())
            }
            Happens::Forget => {
                self.forget(found);
                Ok(())
            }
            Happens::Crash => {
                self.running.clear();
                let flies = |found: &Operation| matches!(found.state, State::InFlight(_));
                self.record = match found {
                    Some(found) if flies(&found) => Some(abandon(found, now)),
                    other => other,
                };
                Ok(())
            }
            Happens::Pass { millis } => {
                self.now = now.plus(Duration::from_millis(*millis));
                self.record = lapse(found, self.now).operation;
                if self.record.is_none() {
                    (self.latest, self.done) = (0, HashSet::new());
                    self.running.clear();
                }
                Ok(())
            }
        }
    }

    fn resolve(&mut self, found: Option<Operation>, succeeded: bool) {
        let verdict = if succeeded { Verdict::Succeeded(None) } else { Verdict::Failed };
        let done = resolve(found, &resolution(verdict), self.now);
        // A person has made sure that nothing runs any more.
        if done.reply == Decided::Done {
            self.running.clear();
        }
        self.record = done.operation;
        self.note_done();
    }

    fn forget(&mut self, found: Option<Operation>) {
        let done = forget(found, "again", self.now);
        if done.reply == Decided::Done {
            self.done.clear();
            self.running.clear();
        }
        self.record = done.operation;
    }

    fn end(
        &mut self,
        found: Option<Operation>,
        (id, attempt): (ClaimId, u32),
        step: &str,
        outcome: Outcome,
    ) -> TestCaseResult {
        let report = self.report(id, attempt, step, outcome);
        let was_there = found.is_some();
        let done = advance(found, &report, self.now);
        self.record = done.operation;
        self.ended(&report, &done.reply, was_there)
    }

    fn conclude(
        &mut self,
        found: Option<Operation>,
        id: ClaimId,
        step: &str,
        finding: Finding,
    ) -> TestCaseResult {
        let request = self.request(id);
        let step = Some(step.into());
        let reason = String::new();
        let reference = None;
        let report = LookupReport { request, step, finding, reason, reference };
        let done = conclude(found, &report, self.now);
        self.record = done.operation;
        self.note_done();
        self.told(&done.reply, id)
    }

    fn report(
        &self,
        claim_id: ClaimId,
        attempt: u32,
        step: &str,
        outcome: Outcome,
    ) -> StepSettlement {
        let settlement = Settlement { claim_id, attempt, ..settlement(0, outcome) };
        StepSettlement { settlement, plan: Arc::clone(&self.plan), step: step.into() }
    }

    fn ended(
        &mut self,
        report: &StepSettlement,
        advanced: &Advanced,
        was_there: bool,
    ) -> TestCaseResult {
        if *advanced != Advanced::Superseded {
            self.running.remove(&report.step);
        }
        self.note_done();
        match advanced {
            Advanced::Next { step } => {
                prop_assert!(!self.plan.at_once);
                self.begins(step, report.settlement.claim_id)
            }
            Advanced::Ended { end: EventEnd::Succeeded(_), .. } => {
                prop_assert!(self.plan.steps.iter().all(|step| self.done.contains(&step.name)));
                Ok(())
            }
            Advanced::RecordLost => {
                prop_assert!(!was_there);
                self.latest = report.settlement.attempt;
                Ok(())
            }
            Advanced::Recorded | Advanced::Superseded | Advanced::Ended { .. } => Ok(()),
        }
    }

    /// Notes the steps that the record says were done. The record never takes that back by itself.
    fn note_done(&mut self) {
        let steps = self.record.iter().flat_map(|found| &found.steps);
        let done = steps.filter(|step| matches!(step.state, StepState::Succeeded { .. }));
        self.done.extend(done.map(|step| Arc::clone(&step.name)));
    }

    /// Checks the rules that hold at every moment.
    fn check(&self) -> TestCaseResult {
        let Some(found) = &self.record else { return Ok(()) };
        let state_of = |name: &Arc<str>| {
            found.steps.iter().find(|step| step.name == *name).map(|step| &step.state)
        };
        for name in &self.done {
            prop_assert!(
                matches!(state_of(name), Some(StepState::Succeeded { .. })),
                "{name} was done, and is {:?}",
                state_of(name)
            );
        }
        let states: Vec<_> = found.steps.iter().map(|step| step.state.as_str()).collect();
        let has = |state: &str| states.contains(&state);
        let expected = match &found.state {
            State::InFlight(_) => has("in_flight"),
            State::Uncertain(_) => has("uncertain") && !has("in_flight"),
            State::Succeeded(_) => states.iter().all(|state| *state == "succeeded"),
            State::Failed(_) => {
                !has("in_flight") && !has("uncertain") && (has("failed") || has("waiting"))
            }
            State::Forgotten { .. } => states.iter().all(|state| *state == "waiting"),
        };
        prop_assert!(expected, "{} with {states:?}", found.state.as_str());
        if !self.plan.at_once {
            let begun = |state: &&&str| matches!(**state, "in_flight" | "uncertain");
            prop_assert!(states.iter().filter(begun).count() <= 1, "{states:?}");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_has_succeeded_is_never_run_again_and_the_event_follows_from_its_steps(
        plan in planned(), sequence in happens(),
    ) {
        let claims = Vec::new();
        let done = HashSet::new();
        let running = HashMap::new();
        let mut world = World { plan, now: T0, record: None, claims, latest: 0, done, running };
        for (number, what) in (1_u8..).zip(&sequence) {
            world.happen(what, number)?;
            world.check()?;
        }
    }
}
