//! What makes a server unsafe: its settings, and what its user may not do.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::call::{Call, SWAP};
use super::failure::{NOT_PERMITTED, shape};
use super::keys::{Index, Keys, Shard};
use super::records::Redis;
use super::reply::{parts, text};
use crate::store::{Concern, Error, probe};

/// Parts of the keys that are looked at at a time.
const LOOKS_TOGETHER: usize = 16;

impl Redis {
    /// Asks all servers, for everything at once: one that is slow has to be told of as well.
    pub(super) async fn look_for_concerns(&self) -> Result<Vec<Concern>, Error> {
        let settings = async {
            let shards = self.one_shard_of_each().await;
            try_join_all(shards.into_iter().map(|shard| self.unsafe_settings(shard))).await
        };
        let (missing, settings, changed) =
            tokio::try_join!(self.missing_permissions(), settings, self.epoch_changed())?;
        let mut concerns: Vec<_> = missing.into_iter().collect();
        for concern in settings.into_iter().flatten() {
            if !concerns.contains(&concern) {
                concerns.push(concern);
            }
        }
        concerns.extend(changed);
        Ok(concerns)
    }

    /// Ids whose records are on each server once. In a cluster every part of the keys is looked at
    /// first: a node that cannot be used fails this always, not only when chance asks for its keys.
    pub(super) async fn one_id_for_each_server(&self) -> Result<Vec<[u8; 16]>, Error> {
        let mut id = probe::random()?;
        if !self.servers.is_cluster() {
            return Ok(vec![id]);
        }
        let looks = stream::iter(Shard::all()).map(|shard| self.look_at(shard));
        looks.buffer_unordered(LOOKS_TOGETHER).try_collect::<()>().await?;
        let shards = self.one_shard_of_each().await.into_iter();
        let ids = shards.map(|shard| {
            let [first, ..] = &mut id;
            *first = shard.first_byte();
            id
        });
        Ok(ids.collect())
    }

    /// Whoever is asked about keys says who has them.
    async fn look_at(&self, shard: Shard) -> Result<(), Error> {
        let key = self.keys.index(shard, Index::Created);
        self.servers.call(shard, &Call::command("ZCARD", &[&key])).await.map(drop)
    }

    /// One shard for each server.
    async fn one_shard_of_each(&self) -> Vec<Shard> {
        if !self.servers.is_cluster() {
            return vec![Shard::first()];
        }
        join_all(Shard::all().map(|shard| self.look_at(shard))).await;
        let mut nodes: Vec<_> =
            Shard::all().map(|shard| (self.servers.node(shard), shard)).collect();
        nodes.sort_by_key(|(node, shard)| (Arc::as_ptr(node), shard.number()));
        nodes.dedup_by(|(one, _), (other, _)| Arc::ptr_eq(one, other));
        nodes.into_iter().map(|(_, shard)| shard).collect()
    }

    /// Does what this program does on a key that nobody else uses.
    async fn missing_permissions(&self) -> Result<Option<Concern>, Error> {
        let shard = Shard::first();
        let mut missing = Vec::new();
        for attempts in attempts(&self.keys, self.replica_acks > 0) {
            let told = attempts.iter().map(|(_, call)| self.servers.call(shard, call));
            for ((name, _), told) in attempts.iter().zip(join_all(told).await) {
                match told {
                    Err(Error::Unavailable(why)) if why == NOT_PERMITTED => missing.push(*name),
                    // any other failure is one of the server, and seen elsewhere
                    Err(Error::Unavailable(_) | Error::Failed(_)) | Ok(_) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((!missing.is_empty()).then(|| Concern {
            code: code::NOT_PERMITTED,
            text: format!("the server does not permit its user: {}", missing.join(", ")),
            hint: format!("give the user what this line grants: `{}`", self.keys.acl_line()),
        }))
    }

    /// What one server says of its settings.
    async fn unsafe_settings(&self, shard: Shard) -> Result<Vec<Concern>, Error> {
        let setting = |name: &'static str| async move {
            let call = Call::command("CONFIG", &["GET", name]);
            match self.servers.call(shard, &call).await {
                Ok(value) => {
                    let found = parts(value).ok_or_else(shape)?;
                    Ok(found.get(1).and_then(text))
                }
                Err(error) => unless_forbidden(error),
            }
        };
        let info = async {
            match self.servers.call(shard, &Call::command("INFO", &[])).await {
                Ok(value) => Ok(Some(text(&value).ok_or_else(shape)?)),
                Err(error) => unless_forbidden(error),
            }
        };
        let names = ["save", "appendfsync"];
        let (info, settings) = tokio::try_join!(info, try_join_all(names.map(setting)))?;
        let settings = Told { info: info.as_deref().map(fields), settings: &settings };
        Ok(settings.concerns(self.replica_acks))
    }
}

/// What a server has told of itself.
struct Told<'a> {
    info: Option<HashMap<&'a str, &'a str>>,
    /// `save` and `appendfsync`.
    settings: &'a [Option<String>],
}

impl Told<'_> {
    fn concerns(&self, replica_acks: usize) -> Vec<Concern> {
        let save = self.settings.first().and_then(Option::as_deref);
        let sync = self.settings.get(1).and_then(Option::as_deref);
        let mut concerns = Vec::new();
        if self.info.is_none() || save.is_none() || sync.is_none() {
            concerns.push(not_checked());
        }
        let Some(info) = &self.info else { return concerns };
        let policy = info.get("maxmemory_policy").copied().unwrap_or_default();
        if policy.starts_with("allkeys-") {
            concerns.push(evicting(policy));
        }
        match (info.get("aof_enabled").copied(), save, sync) {
            (Some("1"), _, Some("always") | None) => {}
            (Some("1"), _, Some(sync)) => concerns.push(not_synced(sync)),
            (Some(_), Some(""), _) => concerns.push(not_kept()),
            (Some(_), Some(_), _) => concerns.push(kept_at_times()),
            (Some(_), None, _) | (None, _, _) => {}
        }
        let replicas = info.get("connected_slaves").and_then(|replicas| replicas.parse().ok());
        match replicas.unwrap_or(0) {
            replicas if replicas < replica_acks => concerns.push(too_few(replicas, replica_acks)),
            replicas if replicas > 0 && replica_acks == 0 => concerns.push(failover(replicas)),
            _enough => {}
        }
        concerns
    }
}

/// The codes of all of them.
pub(in crate::store) fn concern_codes() -> impl Iterator<Item = &'static str> {
    code::ALL.into_iter()
}

mod code {
    pub(super) const NOT_PERMITTED: &str = "not-permitted";
    pub(super) const NOT_CHECKED: &str = "not-checked";
    pub(super) const EVICTING_POLICY: &str = "evicting-policy";
    pub(super) const NO_PERSISTENCE: &str = "no-persistence";
    pub(super) const SNAPSHOTS_ONLY: &str = "snapshots-only";
    pub(super) const NOT_SYNCED: &str = "not-synced";
    pub(super) const TOO_FEW_REPLICAS: &str = "too-few-replicas";
    pub(super) const FAILOVER_MAY_LOSE: &str = "failover-may-lose";

    pub(super) const ALL: [&str; 8] = [
        NOT_PERMITTED,
        NOT_CHECKED,
        EVICTING_POLICY,
        NO_PERSISTENCE,
        SNAPSHOTS_ONLY,
        NOT_SYNCED,
        TOO_FEW_REPLICAS,
        FAILOVER_MAY_LOSE,
    ];
}

fn not_checked() -> Concern {
    Concern {
        code: code::NOT_CHECKED,
        text: "the server does not permit its user `INFO` or `CONFIG GET`: whether its settings \
               are safe could not be checked"
            .to_owned(),
        hint: "grant `+info +config|get`, or check by hand: no eviction, append-only file on"
            .to_owned(),
    }
}

fn evicting(policy: &str) -> Concern {
    Concern {
        code: code::EVICTING_POLICY,
        text: format!(
            "the server's `maxmemory-policy` is `{policy}`: under pressure it forgets operations, \
             which then run again"
        ),
        hint: "set `maxmemory-policy noeviction`".to_owned(),
    }
}

fn not_kept() -> Concern {
    Concern {
        code: code::NO_PERSISTENCE,
        text:
            "the server writes nothing to disk: a restart forgets all operations, which then run \
               again"
                .to_owned(),
        hint: "set `appendonly yes`".to_owned(),
    }
}

fn kept_at_times() -> Concern {
    Concern {
        code: code::SNAPSHOTS_ONLY,
        text: "the server writes snapshots only: a crash forgets what came after the last one"
            .to_owned(),
        hint: "set `appendonly yes`".to_owned(),
    }
}

fn not_synced(sync: &str) -> Concern {
    let what = if sync == "everysec" { "the last second" } else { "what was not synced yet" };
    Concern {
        code: code::NOT_SYNCED,
        text: format!("the server's `appendfsync` is `{sync}`: a loss of power takes {what}"),
        hint: "set `appendfsync always`, if the machine's disk is fast enough".to_owned(),
    }
}

fn too_few(replicas: usize, replica_acks: usize) -> Concern {
    Concern {
        code: code::TOO_FEW_REPLICAS,
        text: format!(
            "the server has {}, and `replica_acks` is {replica_acks}: no claim is granted",
            counted(replicas)
        ),
        hint: "start replicas, or set `replica_acks` to as many as there are".to_owned(),
    }
}

fn failover(replicas: usize) -> Concern {
    Concern {
        code: code::FAILOVER_MAY_LOSE,
        text: format!(
            "the server has {}, for which nobody waits: a failover may lose what was acknowledged",
            counted(replicas)
        ),
        hint: "set `replica_acks`; even then a failover to a replica that has less may lose it"
            .to_owned(),
    }
}

fn counted(replicas: usize) -> String {
    match replicas {
        0 => "no replica".to_owned(),
        1 => "1 replica".to_owned(),
        more => format!("{more} replicas"),
    }
}

/// A command, and how it is made.
type Attempt = (&'static str, Call);

/// Every command that is used, on a key of its own; and when these are done, those that remove it.
fn attempts(keys: &Keys, acks: bool) -> [Vec<Attempt>; 2] {
    let key = keys.scratch("hash");
    let set = keys.scratch("set");
    let channel = keys.endings();
    let epoch = keys.epoch(Shard::first());
    let key = key.as_str();
    let set = set.as_str();
    let mut attempts = vec![
        ("EVALSHA or SCRIPT LOAD", look(key)),
        ("TIME", Call::command("TIME", &[])),
        ("HSET", Call::command("HSET", &[key, "field", "value"])),
        ("HMGET", Call::command("HMGET", &[key, "field"])),
        ("EXISTS", Call::command("EXISTS", &[key])),
        ("ZADD", Call::command("ZADD", &[set, "1", "member"])),
        ("ZCARD", Call::command("ZCARD", &[set])),
        ("ZCOUNT", Call::command("ZCOUNT", &[set, "-inf", "+inf"])),
        ("ZRANGEBYSCORE", Call::command("ZRANGEBYSCORE", &[set, "-inf", "+inf"])),
        ("ZREVRANGEBYSCORE", Call::command("ZREVRANGEBYSCORE", &[set, "+inf", "-inf"])),
        ("PUBLISH", Call::command("PUBLISH", &[&channel, "probe"])),
        ("GET", Call::command("GET", &[&epoch])),
    ];
    if acks {
        attempts.push(("WAIT", Call::command("WAIT", &["0", "1"])));
    }
    let removals = vec![
        ("DEL", Call::command("DEL", &[key])),
        ("ZREM", Call::command("ZREM", &[set, "member"])),
    ];
    [attempts, removals]
}

/// Runs the script on a key that is not there.
fn look(key: &str) -> Call {
    let nobody = ["", "", "0", "look", "0", "0", "0", "0", "0", "", ""];
    Call::script(&SWAP, &[key.to_owned()]).arg(&nobody[..])
}

/// The lines of `INFO`.
fn fields(info: &str) -> HashMap<&str, &str> {
    info.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

fn unless_forbidden<T>(error: Error) -> Result<Option<T>, Error> {
    match error {
        // a command may be forbidden by its name, and is unknown then
        Error::Unavailable(why) if why == NOT_PERMITTED => Ok(None),
        Error::Failed(_) => Ok(None),
        error @ (Error::Unavailable(_)
        | Error::NoReply(_)
        | Error::TooFewReplicas { .. }
        | Error::Unreadable(..)
        | Error::Emptied
        | Error::AttemptExists(_)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(info: &str, save: &str, sync: &str, acks: usize) -> Vec<&'static str> {
        let settings = [Some(save.to_owned()), Some(sync.to_owned())];
        let told = Told { info: Some(fields(info)), settings: &settings };
        told.concerns(acks).iter().map(|concern| concern.code).collect()
    }

    #[test]
    fn a_server_that_syncs_each_write_and_evicts_nothing_is_no_concern() {
        let info = "# Memory\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n\
                    connected_slaves:0\r\n";
        assert_eq!(codes(info, "", "always", 0), Vec::<&str>::new());
        assert_eq!(codes(info, "", "everysec", 0), ["not-synced"]);
    }

    #[test]
    fn every_unsafe_setting_is_named() {
        let info = "maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\nconnected_slaves:2\r\n";
        let all = ["evicting-policy", "no-persistence", "failover-may-lose"];
        assert_eq!(codes(info, "", "everysec", 0), all);
        assert_eq!(codes(info, "3600 1", "everysec", 1), ["evicting-policy", "snapshots-only"]);
        let too_few = ["evicting-policy", "no-persistence", "too-few-replicas"];
        assert_eq!(codes(info, "", "everysec", 3), too_few);
    }
}
