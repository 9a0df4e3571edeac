//! Finds out what makes a server unsafe: its settings, and commands that it does not permit.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::command::{Command, SWAP};
use super::failure::{CommandError, NotRun};
use super::keys::{Index, Keys, Shard};
use super::records::Redis;
use super::reply::{parts, text};
use crate::store::{Concern, Error, random};
use crate::words::enum_of_words;

/// The number of shards that are read at the same time.
const SHARDS_AT_ONCE: usize = 16;

impl Redis {
    /// Returns all concerns about all servers. All servers are asked at the same time, so that a
    /// slow server does not hide what the others say.
    pub(super) async fn all_concerns(&self) -> Result<Vec<Concern>, Error> {
        let settings = async {
            let shards = self.one_shard_of_each().await;
            try_join_all(shards.into_iter().map(|shard| self.unsafe_settings(shard))).await
        };
        let (missing, settings) = tokio::try_join!(self.missing_permissions(), settings)?;
        let mut concerns: Vec<_> = missing.into_iter().collect();
        for concern in settings.into_iter().flatten() {
            // Nodes of a cluster are usually set up alike.
            if !concerns.contains(&concern) {
                concerns.push(concern);
            }
        }
        Ok(concerns)
    }

    /// Returns one id for each server, whose record would be on that server. In a cluster, every
    /// shard is read first. So if a node cannot be used, this always fails, and not only when
    /// chance picks the node's keys.
    pub(super) async fn one_id_for_each_server(&self) -> Result<Vec<[u8; 16]>, Error> {
        let mut id = random()?;
        if !self.servers.is_cluster() {
            return Ok(vec![id]);
        }
        let reads = stream::iter(Shard::all()).map(|shard| self.read_shard(shard));
        reads.buffer_unordered(SHARDS_AT_ONCE).try_collect::<()>().await?;
        let shards = self.one_shard_of_each().await.into_iter();
        let ids = shards.map(|shard| {
            let [first, ..] = &mut id;
            *first = shard.first_byte();
            id
        });
        Ok(ids.collect())
    }

    /// Reads a key of a shard. A node that does not have the shard names the node that has it.
    async fn read_shard(&self, shard: Shard) -> Result<(), CommandError> {
        self.ask_index(shard, Index::Created, "ZCARD", &[]).await.map(drop)
    }

    /// Returns one shard for each server.
    async fn one_shard_of_each(&self) -> Vec<Shard> {
        if !self.servers.is_cluster() {
            return vec![Shard::first()];
        }
        // These replies teach which node has which shard. Other calls report a node that fails.
        join_all(Shard::all().map(|shard| self.read_shard(shard))).await;
        let mut nodes: Vec<_> =
            Shard::all().map(|shard| (self.servers.node(shard), shard)).collect();
        nodes.sort_by_key(|(node, shard)| (Arc::as_ptr(node), shard.number()));
        nodes.dedup_by(|(one, _), (other, _)| Arc::ptr_eq(one, other));
        nodes.into_iter().map(|(_, shard)| shard).collect()
    }

    /// Tries every command that this program uses, on a key that nobody else uses. `ACL DRYRUN`
    /// would need Redis 7 and a permission of its own.
    async fn missing_permissions(&self) -> Result<Option<Concern>, Error> {
        let shard = Shard::first();
        let mut missing = Vec::new();
        for trials in permission_trials(&self.keys, self.replica_acks > 0) {
            let replies = trials.iter().map(|trial| self.servers.run(shard, &trial.command));
            for (trial, reply) in trials.iter().zip(join_all(replies).await) {
                match reply {
                    Err(CommandError::NotRun(NotRun::NotPermitted)) => missing.push(trial.name),
                    // Any other failure concerns the server as a whole, and fails the probe too.
                    Err(CommandError::NotRun(_) | CommandError::Failed(_)) | Ok(_) => {}
                }
            }
        }
        Ok((!missing.is_empty()).then(|| {
            let text = format!("the server does not permit its user: {}", missing.join(", "));
            let hint = format!("give the user what this line grants: `{}`", self.keys.acl_line());
            Concern::new(Code::NotPermitted.as_str(), text, hint)
        }))
    }

    /// Returns the concerns about the settings of one server.
    async fn unsafe_settings(&self, shard: Shard) -> Result<Vec<Concern>, Error> {
        let setting = |name: &'static str| async move {
            let command = Command::new("CONFIG", &["GET", name]);
            match self.servers.run(shard, &command).await {
                Ok(value) => {
                    let found = parts(value)?;
                    Ok(found.get(1).and_then(|setting| text(setting).ok()))
                }
                Err(error) => unless_forbidden(&error),
            }
        };
        let info = async {
            match self.servers.run(shard, &Command::new("INFO", &[])).await {
                Ok(value) => Ok(Some(text(&value)?)),
                Err(error) => unless_forbidden(&error),
            }
        };
        let (info, save, appendfsync) =
            tokio::try_join!(info, setting("save"), setting("appendfsync"))?;
        let settings = ServerSettings { info: info.as_deref().map(info_fields), save, appendfsync };
        Ok(settings.concerns(self.replica_acks))
    }
}

/// The settings that a server reported. A setting is none if the server did not permit the
/// question.
struct ServerSettings<'a> {
    /// The lines of `INFO`.
    info: Option<HashMap<&'a str, &'a str>>,
    save: Option<String>,
    appendfsync: Option<String>,
}

impl ServerSettings<'_> {
    fn concerns(&self, replica_acks: usize) -> Vec<Concern> {
        let save = self.save.as_deref();
        let sync = self.appendfsync.as_deref();
        let mut concerns = Vec::new();
        if self.info.is_none() || save.is_none() || sync.is_none() {
            concerns.push(not_checked());
        }
        let Some(info) = &self.info else { return concerns };
        let policy = info.get("maxmemory_policy").copied().unwrap_or_default();
        // `volatile-*` policies evict only keys with a time to live, and this program sets none.
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
            // Replication is asynchronous, so the master acknowledges a change before a replica has
            // it.
            replicas if replicas > 0 && replica_acks == 0 => concerns.push(failover(replicas)),
            _enough => {}
        }
        concerns
    }
}

enum_of_words! {
    /// The codes of the concerns about a server. They must never change.
    enum Code {
        NotPermitted = "not-permitted",
        NotChecked = "not-checked",
        EvictingPolicy = "evicting-policy",
        NoPersistence = "no-persistence",
        SnapshotsOnly = "snapshots-only",
        NotSynced = "not-synced",
        TooFewReplicas = "too-few-replicas",
        FailoverMayLose = "failover-may-lose",
    }
}

/// Returns the codes of all concerns about a server.
pub(in crate::store) fn concern_codes() -> impl Iterator<Item = &'static str> {
    Code::ALL.into_iter().map(Code::as_str)
}

fn not_checked() -> Concern {
    Concern::new(
        Code::NotChecked.as_str(),
        "the server does not permit its user `INFO` or `CONFIG GET`, so this process could not \
         check whether the server's settings are safe",
        "grant `+info +config|get`, or check by hand: no eviction, append-only file on",
    )
}

fn evicting(policy: &str) -> Concern {
    let text = format!(
        "the server's `maxmemory-policy` is `{policy}`: under pressure it forgets operations, \
         which then run again"
    );
    Concern::new(Code::EvictingPolicy.as_str(), text, "set `maxmemory-policy noeviction`")
}

fn not_kept() -> Concern {
    let text = "the server writes nothing to disk: a restart forgets all operations, which then \
                run again";
    Concern::new(Code::NoPersistence.as_str(), text, "set `appendonly yes`")
}

fn kept_at_times() -> Concern {
    let text = "the server writes only snapshots: a crash loses all changes after the last one";
    Concern::new(Code::SnapshotsOnly.as_str(), text, "set `appendonly yes`")
}

fn not_synced(sync: &str) -> Concern {
    let what =
        if sync == "everysec" { "the last second of changes" } else { "all unsynced changes" };
    let text = format!("the server's `appendfsync` is `{sync}`: a power failure loses {what}");
    let hint = "set `appendfsync always`, if the machine's disk is fast enough";
    Concern::new(Code::NotSynced.as_str(), text, hint)
}

fn too_few(replicas: usize, replica_acks: usize) -> Concern {
    let has = counted(replicas);
    let text =
        format!("the server has {has}, and `replica_acks` is {replica_acks}: no claim is granted");
    let hint = "start replicas, or set `replica_acks` to as many as there are";
    Concern::new(Code::TooFewReplicas.as_str(), text, hint)
}

fn failover(replicas: usize) -> Concern {
    let has = counted(replicas);
    let text = format!(
        "the server has {has}, but no call waits for one: a failover may lose acknowledged changes"
    );
    let hint = "set `replica_acks`; even then, a failover to a replica without a change loses it";
    Concern::new(Code::FailoverMayLose.as_str(), text, hint)
}

fn counted(replicas: usize) -> String {
    match replicas {
        0 => "no replica".to_owned(),
        1 => "1 replica".to_owned(),
        more => format!("{more} replicas"),
    }
}

/// A command that is tried, and the name of the permission that it needs.
struct PermissionTrial {
    name: &'static str,
    command: Command,
}

impl PermissionTrial {
    fn new(name: &'static str, arguments: &[&str]) -> Self {
        Self { name, command: Command::new(name, arguments) }
    }
}

/// Returns every command that this program uses, on keys of their own. The second list has the
/// commands that remove the keys. They are tried after the others.
fn permission_trials(keys: &Keys, acks: bool) -> [Vec<PermissionTrial>; 2] {
    let trial = PermissionTrial::new;
    let key = keys.scratch("hash");
    let set = keys.scratch("set");
    let channel = keys.endings();
    let epoch = keys.epoch(Shard::first());
    let key = key.as_str();
    let set = set.as_str();
    let mut trials = vec![
        PermissionTrial { name: "EVALSHA or SCRIPT LOAD", command: read_nothing(key) },
        trial("TIME", &[]),
        trial("HSET", &[key, "field", "value"]),
        trial("HMGET", &[key, "field"]),
        trial("EXISTS", &[key]),
        trial("ZADD", &[set, "1", "member"]),
        trial("ZCARD", &[set]),
        trial("ZCOUNT", &[set, "-inf", "+inf"]),
        trial("ZRANGEBYSCORE", &[set, "-inf", "+inf"]),
        trial("ZREVRANGEBYSCORE", &[set, "+inf", "-inf"]),
        trial("PUBLISH", &[&channel, "probe"]),
        trial("GET", &[&epoch]),
    ];
    if acks {
        trials.push(trial("WAIT", &["0", "1"]));
    }
    let removals = vec![trial("DEL", &[key]), trial("ZREM", &[set, "member"])];
    [trials, removals]
}

/// Runs the script on a key that does not exist.
fn read_nothing(key: &str) -> Command {
    Command::script(&SWAP, &[key.to_owned()]).arg("")
}

/// The lines of `INFO`.
fn info_fields(info: &str) -> HashMap<&str, &str> {
    info.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

/// Returns none if the server does not permit the command. If the command was renamed
/// (`rename-command`), the server replies that it does not know the command, which counts as the
/// same.
fn unless_forbidden<T>(error: &CommandError) -> Result<Option<T>, Error> {
    match error {
        CommandError::NotRun(NotRun::NotPermitted) | CommandError::Failed(_) => Ok(None),
        CommandError::NotRun(reason) => Err((*reason).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(info: &str, save: &str, sync: &str, acks: usize) -> Vec<&'static str> {
        let settings = ServerSettings {
            info: Some(info_fields(info)),
            save: Some(save.to_owned()),
            appendfsync: Some(sync.to_owned()),
        };
        settings.concerns(acks).iter().map(|concern| concern.code).collect()
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
