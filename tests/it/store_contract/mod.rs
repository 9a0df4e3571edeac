//! The contract of stores, as `src/store/mod.rs` says it, held against every store: two stores that
//! are tested apart come apart.
//!
//! A store joins with a [`Harness`] and one line at the end of this file.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unchecked_time_subtraction,
    reason = "a test that cannot go on has failed; its durations are constants"
)]

mod claiming;
mod deciding;
mod embedded;
mod grouped;
mod journal;
mod killed;
mod lasting;
mod listing;
mod looking_up;
mod memory;
mod missing;
mod model;
mod postgres;
mod reach;
mod redis;
mod redis_faults;
mod redis_many;
mod redis_older;
mod redis_tls;
mod settling;
mod stepping;
mod support;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use onceward::store::Store;

/// A store under test, empty at first, whose time the test moves.
pub(super) trait Harness: Sized + Send + Sync {
    /// A new one.
    fn start() -> impl Future<Output = Self> + Send;
    /// The store.
    fn store(&self) -> Arc<dyn Store>;
    /// The same as another process has it, where several may; it hears of ends.
    fn another(&self) -> impl Future<Output = Arc<dyn Store>> + Send {
        async { self.store() }
    }
    /// Time passes on the store's clock.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Makes a test of each promise, for each store.
macro_rules! contract {
    ($($store:ident: $harness:ty;)+) => { $(
        mod $store {
            use super::*;

            promises! { $harness;
                claiming:
                    the_first_claim_is_granted_and_a_copy_meets_it_in_flight
                    of_fifty_racers_one_is_granted_and_the_others_are_answered
                    a_success_is_told_with_its_answer
                    another_request_under_the_key_is_mismatched
                    a_claim_that_only_looks_is_granted_nothing
                    what_was_only_observed_is_free_but_for_a_genuine_success
                    keys_that_differ_in_case_or_blanks_are_different_operations
                    a_claim_that_is_sent_twice_is_granted_once
                    a_claim_that_arrives_after_its_withdrawal_is_granted_nothing
                    a_withdrawal_leaves_no_trace_where_its_claim_left_none
                    a_withdrawal_that_leaves_no_record_removes_that_of_its_claim_alone
                    attempt_numbers_grow_across_failures_and_being_forgotten
                    contention_on_one_operation_is_never_an_error;
                settling:
                    a_settle_or_a_renewal_of_a_superseded_claim_changes_nothing
                    a_settle_that_is_sent_twice_is_recorded_once
                    a_late_settle_counts_while_its_claim_is_current
                    a_settle_whose_record_is_lost_writes_it_anew
                    a_refused_copy_is_told_when_the_attempt_fails
                    a_renewed_lease_lasts_from_the_renewal;
                lasting:
                    a_lease_that_ran_out_is_seen_as_uncertain_by_the_next_reader
                    of_fifty_racers_on_a_lease_that_ran_out_none_is_granted
                    a_lease_of_half_a_second_is_not_none
                    a_retention_ends_on_its_millisecond_counted_from_the_settle
                    a_hold_ends_after_the_last_refused_copy_and_is_told_once
                    a_sweep_in_small_steps_removes_what_is_past_its_retention
                    a_sweep_never_removes_what_is_in_flight_or_held
                    the_count_of_uncertain_operations_is_live;
                deciding:
                    an_operator_resolves_what_is_uncertain_and_its_settle_becomes_stale
                    an_operator_is_refused_what_is_in_flight_or_done
                    a_forgotten_operation_runs_again_and_keeps_its_log
                    a_probe_leaves_nothing_behind;
                listing:
                    a_list_is_newest_first
                    pages_join_without_a_gap_or_a_double
                    a_list_of_one_route_holds_no_other
                    a_list_of_one_state_counts_what_time_has_done
                    an_operation_is_found_by_its_whole_key_or_event_id
                    a_key_finds_an_operation_for_as_long_as_it_is_remembered
                    what_is_past_its_retention_is_not_listed;
                looking_up:
                    of_fifty_racers_one_looks_up_and_the_others_meet_it_in_flight
                    a_look_up_that_nobody_ends_makes_way_for_another
                    a_finding_that_is_sent_twice_is_recorded_once
                    a_finding_after_a_late_settle_changes_nothing
                    a_waiter_learns_of_the_end_of_a_look_up;
                stepping:
                    a_copy_begins_what_has_not_succeeded_and_nothing_else
                    steps_at_once_begin_together_and_end_each_on_its_own
                    the_end_of_a_step_that_is_sent_twice_is_recorded_once
                    the_end_of_a_step_that_somebody_decided_changes_nothing
                    a_step_of_whose_beginning_nobody_has_heard_begins_once_more
                    a_step_whose_record_is_lost_writes_it_anew
                    a_forgotten_event_runs_all_its_steps_again
                    a_lease_that_ran_out_leaves_uncertain_the_step_that_had_begun;
                waiting:
                    a_waiter_learns_of_the_end
                    an_end_between_the_watch_and_the_wait_is_not_missed
                    a_waiter_does_not_learn_of_other_operations;
            }
        }
    )+ };
}

macro_rules! promises {
    ($harness:ty; $($file:ident: $($promise:ident)+;)+) => { $($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $promise() {
            let harness = <$harness as Harness>::start().await;
            $file::$promise(&harness).await;
        }
    )+)+ };
}

contract! {
    on_memory: memory::InMemory;
    on_embedded: embedded::OnDisk;
    on_redis: redis::OnRedis;
    on_postgres: postgres::OnPostgres;
}
