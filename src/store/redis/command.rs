//! What is sent to a server: a command, or a script by its digest.

use std::sync::LazyLock;

use redis::{Cmd, Script, ToRedisArgs, cmd};

/// A script, and the digest by which a server knows it once it was loaded.
pub(super) struct LuaScript {
    text: &'static str,
    digest: LazyLock<String>,
}

/// Replaces one record by another.
pub(super) static SWAP: LuaScript = LuaScript {
    text: include_str!("swap.lua"),
    digest: LazyLock::new(|| digest(include_str!("swap.lua"))),
};
/// Removes records that are past their retention.
pub(super) static EXPIRE: LuaScript = LuaScript {
    text: include_str!("expire.lua"),
    digest: LazyLock::new(|| digest(include_str!("expire.lua"))),
};

fn digest(script: &str) -> String {
    Script::new(script).get_hash().to_owned()
}

/// Something for a server to do. If it is done twice it takes effect once, so it may be sent again
/// after a lost connection.
pub(super) struct Command {
    pub(super) cmd: Cmd,
    /// Loads the script, for a server that does not know it: a new one, or one after a restart or a
    /// `SCRIPT FLUSH`. Such a server has run nothing of the script.
    pub(super) load: Option<Cmd>,
}

impl Command {
    /// One of the server's own commands.
    pub(super) fn new(name: &str, arguments: &[&str]) -> Self {
        let mut cmd = cmd(name);
        cmd.arg(arguments);
        Self { cmd, load: None }
    }

    /// A script on these keys. All keys are named, because a cluster needs that to find the node.
    pub(super) fn script(script: &LuaScript, keys: &[String]) -> Self {
        // By its digest: otherwise every call would carry the text of the script.
        let mut run = cmd("EVALSHA");
        run.arg(script.digest.as_str()).arg(keys.len()).arg(keys);
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(script.text);
        Self { cmd: run, load: Some(load) }
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.cmd.arg(argument);
        self
    }
}
