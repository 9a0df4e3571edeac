//! The messages to a server. Each is a command, or a script that is named by its digest.

use std::sync::LazyLock;

use redis::{Cmd, Script, ToRedisArgs, cmd};

/// A script, and its digest. A server knows a loaded script by its digest.
pub(super) struct LuaScript {
    text: &'static str,
    digest: String,
}

/// The script that replaces one record by another.
pub(super) static SWAP: LazyLock<LuaScript> =
    LazyLock::new(|| LuaScript::new(include_str!("swap.lua")));
/// The script that removes records past their retention.
pub(super) static EXPIRE: LazyLock<LuaScript> =
    LazyLock::new(|| LuaScript::new(include_str!("expire.lua")));

/// A command to a server. A command that is run twice takes effect once, so it may be sent again
/// after a lost connection.
pub(super) struct Command {
    pub(super) cmd: Cmd,
    /// The script that it runs.
    pub(super) script: Option<&'static LuaScript>,
    /// Whether it does not wait behind other calls.
    pub(super) is_urgent: bool,
}

impl LuaScript {
    fn new(text: &'static str) -> Self {
        Self { text, digest: Script::new(text).get_hash().to_owned() }
    }

    /// Makes the command that loads the script. A new server does not know the script, nor does a
    /// server after a restart or a `SCRIPT FLUSH`. Such a server has run nothing of the script.
    pub(super) fn load(&self) -> Cmd {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(self.text);
        load
    }
}

impl Command {
    /// Makes one of the server's own commands.
    pub(super) fn new(name: &str, arguments: &[&str]) -> Self {
        let mut cmd = cmd(name);
        cmd.arg(arguments);
        Self { cmd, script: None, is_urgent: false }
    }

    /// Makes a command that runs a script on these keys. It names all keys, because a cluster needs
    /// them to find the node.
    pub(super) fn script(script: &'static LuaScript, keys: &[String]) -> Self {
        // The command names the script by its digest. Otherwise every call would carry the text of
        // the script.
        let mut run = cmd("EVALSHA");
        run.arg(&script.digest).arg(keys.len()).arg(keys);
        Self { cmd: run, script: Some(script), is_urgent: false }
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.cmd.arg(argument);
        self
    }
}
