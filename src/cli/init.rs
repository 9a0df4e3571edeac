//! `onceward init`: a configuration to start with.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::output::Exit;
use super::providers::Unknown;
use crate::config::{Config, Problems};
use crate::provider::{Provider, signature};

/// The configuration without a provider. `docs/getting-started.md` shows the same file.
const STARTING: &str = include_str!("../../config/minimal.toml");

/// Writes a configuration to start with
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward init --provider stripe --output onceward.toml")]
pub(super) struct Args {
    /// The sender; see `onceward providers`
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// A file that does not exist yet; without it, standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("`{}` was not written", .0.display())]
    NotWritten(PathBuf, #[source] io::Error),
    #[error("`{}` exists already, and is left as it is", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A test shows that this does not happen: every preset makes a valid route.
    #[error("the preset cannot be used")]
    Preset(#[from] Problems),
}

pub(super) fn run(args: &Args) -> Exit {
    match write(args) {
        Ok(text) => Exit::done(text),
        Err(Error::Unknown(unknown)) => (&unknown).into(),
        Err(error @ Error::Exists(_)) => {
            Exit::failed(&error).with_hint("name another file, or move this one away")
        }
        Err(error @ (Error::NotWritten(..) | Error::Preset(_))) => Exit::failed(&error),
    }
}

/// Writes the configuration to the file, if there is one. Gives the text to print.
fn write(args: &Args) -> Result<String, Error> {
    let text = match &args.provider {
        None => STARTING.to_owned(),
        Some(name) => starting_for(name)?,
    };
    match &args.output {
        None => Ok(text),
        Some(path) => match write_new(path, &text) {
            Ok(()) => Ok(format!("wrote `{}`\n", path.display())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::Exists(path.clone()))
            }
            Err(error) => Err(Error::NotWritten(path.clone(), error)),
        },
    }
}

/// The configuration for one sender.
fn starting_for(name: &str) -> Result<String, Error> {
    let unknown = || Unknown::named(name);
    let route = Config::of_preset(name).ok_or_else(unknown)??;
    let provider = route.provider.ok_or_else(unknown)?;
    let Provider { title, signature, facts, .. } = &*provider;
    // A sender that signs the URL signs the one that it calls. Behind a TLS proxy only the
    // configuration knows that URL.
    let signs_url = signature.as_ref().is_some_and(signature::Settings::needs_public_url);
    let public_url = if signs_url {
        "public_url = \"https://hooks.example.com\"   # as it is registered with the sender, up to the path\n"
    } else {
        ""
    };
    // The secret stands in a variable and not in the file, which is copied and committed.
    let secret = if signature.is_some() {
        let variable = provider.secret_variable();
        let found = facts.secret.as_deref().unwrap_or("the sender's page of the webhook");
        format!("# {found}\nsecrets = [{{ env = \"{variable}\" }}]\n")
    } else {
        "# it does not sign: see `onceward providers`\n".to_owned()
    };
    Ok(format!(
        "\
# Forwards each event of {title} to your application once.
# `onceward providers {name}` says what is known of this sender; `onceward check --config FILE` checks
# this file, and shows every value in use with `--effective`.

[server]
listen = \"127.0.0.1:8080\"            # point the sender here, through TLS
{public_url}
[store.embedded]
path = \"onceward-data\"               # remembers what was done, through crashes and power loss

[routes.{name}]
path = \"/webhooks/{name}\"
upstream = \"http://127.0.0.1:3000\"   # your application; it gets the same path
provider = \"{name}\"
{secret}"
    ))
}

/// Writes a new file. A file that exists is never overwritten, not even one that another program
/// creates at this moment: `create_new` checks and creates in one step.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::presets;

    #[test]
    fn a_file_that_exists_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onceward.toml");
        let args = Args { provider: None, output: Some(path.clone()) };
        assert_eq!(write(&args).unwrap(), format!("wrote `{}`\n", path.display()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), STARTING);

        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(write(&args).unwrap_err(), Error::Exists(there) if there == path));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn without_a_file_it_is_printed() {
        assert_eq!(write(&Args { provider: None, output: None }).unwrap(), STARTING);
    }

    #[test]
    fn what_is_written_for_a_sender_needs_its_secret_and_nothing_else() {
        // A text, hexadecimal, base64, and what these senders give out: Wise a public RSA key.
        let secrets = [
            "00112233445566778899aabbccddeeff",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "arn:aws:sns:us-east-1:123456789012:topic",
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
            "-----BEGIN PUBLIC KEY-----\n\
             MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtWHt+ekFUiMk2OwKOZk+\n\
             0yEru/YhSFJmm4+i7Y3RtP9SIyNupI1K4uCgDt6BzL2KYGT9RG6JFf1tQqG0E+zn\n\
             bkBgkiuIcNkl+IpO2KdpqiJc6PbOuMpgstWuVRrk8EQaaEukqTDAEsk9IfK83/Ip\n\
             8LSzguWGZ95EVgdSOEFptAQrlPlv8vPn3t7PcTWe34QSgZP6J+TXFLZKuelBY+g1\n\
             e0pqVXcDszBwCtGr4KVmsSYkcT9JfuwLN0OICZRvgZhFTis1py8SRr1JSjFtw2UW\n\
             mbwA7RPdVbjjkDURgSP+3KTcntAQeOROHiQ0t3/gJG9uDLThm3wUnIVOz+QxDngU\n\
             rwIDAQAB\n\
             -----END PUBLIC KEY-----",
        ];
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("onceward.toml");
        for preset in presets() {
            let text = starting_for(preset.name).unwrap();
            assert!(!text.contains("config/"), "who has no source has no such file: {text}");
            std::fs::write(&file, text).unwrap();
            let variable = preset.name.to_ascii_uppercase().replace('-', "_");
            let configured = secrets.iter().any(|secret| {
                let variable = (format!("{variable}_WEBHOOK_SECRET").into(), (*secret).into());
                Config::from_file(&file, [variable]).is_ok()
            });
            assert!(configured, "{}: {:?}", preset.name, Config::from_file(&file, []));
        }
    }

    #[test]
    fn an_unknown_sender_is_named() {
        let error = starting_for("strpe").unwrap_err();
        assert_eq!(error.to_string(), "no provider `strpe` is built in");
    }
}
