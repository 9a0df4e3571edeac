//! What is sent to a server: a command, or a script by its digest.

use std::sync::LazyLock;

use redis::{Cmd, Script, ToRedisArgs, cmd};

/// A script, and its digest by which servers know it.
pub(super) struct Lua {
    text: &'static str,
    digest: LazyLock<String>,
}

/// Puts one record in the place of another.
pub(super) static SWAP: Lua = Lua {
    text: include_str!("swap.lua"),
    digest: LazyLock::new(|| digest(include_str!("swap.lua"))),
};
/// Removes what is past its retention.
pub(super) static EXPIRE: Lua = Lua {
    text: include_str!("expire.lua"),
    digest: LazyLock::new(|| digest(include_str!("expire.lua"))),
};

fn digest(script: &str) -> String {
    Script::new(script).get_hash().to_owned()
}

/// Something to be done by a server. Done twice, it does what it does once.
pub(super) struct Call {
    pub(super) command: Cmd,
    /// Sends the script, for a server that does not know it (any more). There, nothing was run.
    pub(super) load: Option<Cmd>,
}

impl Call {
    /// One of the server's own commands.
    pub(super) fn command(name: &str, arguments: &[&str]) -> Self {
        let mut command = cmd(name);
        command.arg(arguments);
        Self { command, load: None }
    }

    /// A script on these keys.
    pub(super) fn script(lua: &Lua, keys: &[String]) -> Self {
        let mut command = cmd("EVALSHA");
        command.arg(lua.digest.as_str()).arg(keys.len()).arg(keys);
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(lua.text);
        Self { command, load: Some(load) }
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.command.arg(argument);
        self
    }
}
