//! `onceward completions`: completions for a shell and the man page, from the same definitions as
//! the help.

use clap_complete::Shell;

use super::output::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onceward completions bash > /etc/bash_completion.d/onceward")]
pub(super) struct Args {
    /// The shell, or `man` for the man page.
    #[arg(value_enum)]
    target: Target,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Target {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
    Man,
}

/// Writes them for this command.
pub(super) fn run(args: &Args, mut command: clap::Command) -> Exit {
    let mut page = Vec::new();
    let shell = match args.target {
        Target::Bash => Shell::Bash,
        Target::Elvish => Shell::Elvish,
        Target::Fish => Shell::Fish,
        Target::Powershell => Shell::PowerShell,
        Target::Zsh => Shell::Zsh,
        Target::Man => {
            return match clap_mangen::Man::new(command).render(&mut page) {
                Ok(()) => Exit::done(String::from_utf8_lossy(&page)),
                Err(error) => Exit::failed(&error),
            };
        }
    };
    clap_complete::generate(shell, &mut command, "onceward", &mut page);
    Exit::done(String::from_utf8_lossy(&page))
}
