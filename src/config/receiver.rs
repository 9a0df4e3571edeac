//! The settings that a route and each of its steps have alike: how their upstream is called, and
//! what its answers mean.

use std::time::Duration;

use super::leaf::Count;
use super::lookup::{LookupUse, lookup};
use super::reader::Reported;
use super::table::Table;
use super::value::AddedHeader;
use super::word::UncertainWord;
use crate::idempotency::{ReceiverPolicy, Reference};
use crate::operation::state::IfUncertain;
use crate::upstream::{self, OutcomeRule, Target};

/// What the lease of a look-up has beyond its timeout, for the two calls of the store around it.
const LOOKUP_ROOM: Duration = Duration::from_secs(5);

/// The longest attempt. No sender waits as long, and a process that is to end waits for it.
pub(super) const ATTEMPT_MAX: Duration = Duration::from_hours(24);

/// The longest time to connect. A system gives up after minutes.
const CONNECT_MAX: Duration = Duration::from_hours(1);

/// The longest life of a connection to an upstream.
const KEEPALIVE_MAX: Duration = Duration::from_hours(24);

/// The settings of one upstream, except its address.
pub(super) struct ReceiverSettings {
    pub(super) attempt_timeout: Duration,
    pub(super) connection: Connection,
    pub(super) policy: ReceiverPolicy,
}

/// How connections to an upstream are made and kept.
#[derive(Clone, Copy)]
pub(super) struct Connection {
    connect_timeout: Duration,
    keepalive: Duration,
    keepalive_max: Duration,
    preserve_host: bool,
}

impl Connection {
    /// Connections to this address.
    pub(super) fn to(self, target: Target) -> upstream::Settings {
        upstream::Settings {
            target,
            connect_timeout: self.connect_timeout,
            keepalive: self.keepalive,
            keepalive_max: self.keepalive_max,
            preserve_host: self.preserve_host,
        }
    }
}

/// Reads the settings of one upstream.
pub(super) fn receiver(
    table: &mut Table<'_, '_>,
    lookup_use: LookupUse,
) -> Result<ReceiverSettings, Reported> {
    let attempt_timeout = table.above_zero("attempt_timeout", ATTEMPT_MAX)?;
    let connection = Connection {
        connect_timeout: table.above_zero("connect_timeout", CONNECT_MAX)?,
        keepalive: table.up_to("keepalive", KEEPALIVE_MAX)?,
        keepalive_max: table.up_to("keepalive_max", KEEPALIVE_MAX)?,
        preserve_host: table.setting("preserve_host")?,
    };
    let forward_key = table.setting::<Option<AddedHeader>>("forward_key")?;
    let when_uncertain = table.setting("when_uncertain")?;
    let attempts_max = table.setting::<Count>("attempts_max")?.0;
    let OutcomeTable { rule, reference } = table.section("outcome", outcome)?;
    let needs_url = match when_uncertain {
        UncertainWord::Lookup => lookup_use,
        UncertainWord::Hold | UncertainWord::Retry => LookupUse::Unused,
    };
    let lookup = table.section("lookup", |table| lookup(table, needs_url))?;
    let if_uncertain = match (when_uncertain, &lookup) {
        (UncertainWord::Retry, _) => IfUncertain::Retry { attempts_max },
        (UncertainWord::Lookup, Some(lookup)) if lookup_use == LookupUse::Used => {
            IfUncertain::LookUp { attempts_max, lease: lookup.timeout.saturating_add(LOOKUP_ROOM) }
        }
        // Under `lookup`, only the steps of the route look up, or the routes that `[defaults]` are
        // for.
        (UncertainWord::Hold | UncertainWord::Lookup, _) => IfUncertain::Hold,
    };
    let forward_key = forward_key.map(|header| header.0);
    let policy = ReceiverPolicy { if_uncertain, lookup, outcome: rule, reference, forward_key };
    Ok(ReceiverSettings { attempt_timeout, connection, policy })
}

struct OutcomeTable {
    rule: OutcomeRule,
    reference: Option<Reference>,
}

fn outcome(table: &mut Table<'_, '_>) -> Result<OutcomeTable, Reported> {
    let succeeded = table.some_of("succeeded")?;
    let uncertain = table.setting_list("uncertain")?;
    let reference = table.optional("reference");
    Ok(OutcomeTable { rule: OutcomeRule { succeeded, uncertain }, reference })
}
