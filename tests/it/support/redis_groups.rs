//! Redis servers that belong together: a master with replicas and sentinels, a cluster.

use std::process::Stdio;

use onceward::store::redis::{Mode, Settings};
use tempfile::TempDir;
use tokio::process::Command;

use super::redis::{RedisServer, free_port, settings};
use super::until;

/// What sentinels and nodes take for death.
const SILENCE_MILLIS: &str = "2000";

/// A master and its replicas, in step.
#[derive(Debug)]
pub struct Replicated {
    pub master: RedisServer,
    pub replicas: Vec<RedisServer>,
}

/// The same, watched by three sentinels.
#[derive(Debug)]
pub struct Guarded {
    pub servers: Replicated,
    sentinels: Vec<RedisServer>,
    _files: TempDir,
}

/// Three masters, each with a replica.
#[derive(Debug)]
pub struct RedisCluster {
    pub nodes: Vec<RedisServer>,
}

impl Replicated {
    /// A master with so many replicas.
    pub async fn start(replicas: usize) -> Self {
        let master = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]).await;
        let port = master.port.to_string();
        let mut started = Vec::new();
        for _ in 0..replicas {
            let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).await;
            until("the replica is in step", async || {
                replica.tells("INFO replication").await.contains("master_link_status:up")
            })
            .await;
            started.push(replica);
        }
        // a replica hears nothing until a second after that, when it first says where it is
        let mut connection = master.connection().await;
        loop {
            let mut set = redis::cmd("SET");
            let () = set.arg("begun").arg(1).query_async(&mut connection).await.unwrap();
            let mut wait = redis::cmd("WAIT");
            let heard = wait.arg(replicas).arg(200).query_async::<usize>(&mut connection).await;
            if heard.unwrap() == replicas {
                break;
            }
        }
        master.does("DEL begun").await;
        Self { master, replicas: started }
    }
}

impl Guarded {
    /// One master and two replicas, in step.
    pub async fn start() -> Self {
        let servers = Replicated::start(2).await;
        let files = TempDir::new().unwrap();
        let mut sentinels = Vec::new();
        for n in 0..3 {
            let (file, port) = (files.path().join(format!("{n}.conf")), free_port());
            let written = format!(
                "port {port}\n\
                 sentinel monitor orders 127.0.0.1 {} 2\n\
                 sentinel down-after-milliseconds orders {SILENCE_MILLIS}\n\
                 sentinel failover-timeout orders 6000\n",
                servers.master.port
            );
            std::fs::write(&file, written).unwrap();
            let file = file.to_str().unwrap();
            sentinels.push(RedisServer::launch("redis-sentinel", port, &[file], None).await);
        }
        for sentinel in &sentinels {
            until("the sentinels know all", async || {
                let info = sentinel.tells("INFO sentinel").await;
                info.contains("slaves=2,sentinels=3")
            })
            .await;
        }
        Self { servers, sentinels, _files: files }
    }

    /// How a store uses them.
    pub fn settings(&self) -> Settings {
        let urls: Vec<String> = self.sentinels.iter().map(RedisServer::url).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        Settings { mode: Mode::Sentinel { master: "orders".to_owned() }, ..settings(&urls) }
    }

    /// A replica shall take the master's place; the old one stays, as a replica.
    pub async fn is_told_to_fail_over(&self) {
        self.sentinels[0].does("SENTINEL FAILOVER orders").await;
    }

    /// Another server is the master now.
    pub async fn has_failed_over(&self) {
        let old = self.servers.master.port.to_string();
        until("another is the master", async || {
            let asked = "SENTINEL GET-MASTER-ADDR-BY-NAME orders";
            let [_, port]: [String; 2] =
                redis::from_redis_value(self.sentinels[0].does(asked).await).unwrap();
            port != old
        })
        .await;
    }
}

impl RedisCluster {
    pub async fn start() -> Self {
        let mut nodes = Vec::new();
        for _ in 0..6 {
            let bus = free_port().to_string();
            let arguments = [
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-node-timeout",
                SILENCE_MILLIS,
                "--repl-diskless-sync-delay",
                "0",
            ];
            nodes.push(RedisServer::start_with(&arguments).await);
        }
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]);
        create.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
        create.args(["--cluster-replicas", "1", "--cluster-yes"]).stdout(Stdio::null());
        assert!(create.status().await.unwrap().success(), "the cluster is made");
        let cluster = Self { nodes };
        for node in &cluster.nodes {
            until("the cluster is up", async || {
                let info = node.tells("CLUSTER INFO").await;
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:6")
            })
            .await;
        }
        for node in &cluster.nodes {
            until("the replicas are in step", async || {
                let info = node.tells("INFO replication").await;
                !info.contains("role:slave") || info.contains("master_link_status:up")
            })
            .await;
        }
        cluster
    }

    /// How a store uses it: by two of the nodes.
    pub fn settings(&self) -> Settings {
        let urls = [self.nodes[0].url(), self.nodes[5].url()];
        Settings { mode: Mode::Cluster, ..settings(&[&urls[0], &urls[1]]) }
    }

    /// The master that has a slot, and another one.
    pub async fn holder_of(&self, slot: u16) -> (&RedisServer, &RedisServer) {
        let (mut holder, mut other) = (None, None);
        for node in &self.nodes {
            let known = node.tells("CLUSTER NODES").await;
            let own = known.lines().find(|line| line.contains("myself")).unwrap();
            if !own.contains("master") {
                continue;
            }
            let has = has(own, slot);
            *(if has { &mut holder } else { &mut other }) = Some(node);
        }
        (holder.expect("the slot has a holder"), other.expect("there are more masters"))
    }

    /// Every node has heard that this one has a slot.
    pub async fn all_know(&self, id: &str, slot: u16) {
        for node in &self.nodes {
            until("all know who has the slot", async || {
                let known = node.tells("CLUSTER NODES").await;
                known.lines().any(|line| line.starts_with(id) && has(line, slot))
            })
            .await;
        }
    }
}

/// Whether a line about a node names a slot as its own.
fn has(line: &str, slot: u16) -> bool {
    line.split(' ').skip(8).any(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let parsed = from.parse::<u16>().ok().zip(to.parse::<u16>().ok());
        parsed.is_some_and(|(from, to)| (from..=to).contains(&slot))
    })
}
