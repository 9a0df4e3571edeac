//! `[admin]`: the control plane.

use std::net::SocketAddr;

use super::reader::Reported;
use super::shown::quoted;
use super::table::Table;
use crate::secret::Secret;

/// What was read of `[admin]`.
pub(super) struct AdminTable {
    /// The address as it was written: a stand-in would be compared with other addresses.
    pub(super) listen: Result<SocketAddr, Reported>,
    pub(super) token: Result<Option<Secret>, Reported>,
}

/// Reads `[admin]`.
pub(super) fn admin(table: &mut Table<'_, '_>) -> AdminTable {
    let listen = table.needed::<SocketAddr>("listen", None);
    let token = table.secret("token");
    // A token that could not be read was at least meant to be there.
    if let Ok(address) = listen
        && !address.ip().to_canonical().is_loopback()
        && matches!(token, Ok(None))
    {
        let hint = "`token = { env = \"ONCEWARD_ADMIN_TOKEN\" }` in `[admin]` opens it to others";
        let expected = "a loopback address where there is no `admin.token`";
        let key = table.key("listen");
        table.reader.report(&key, expected, quoted(&address.to_string()), Some(hint));
    }
    AdminTable { listen, token }
}
