//! Completions and the man page, from the same definitions as the help.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Arguments;
use super::output::Ended;

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

pub(super) fn run(args: &Args) -> Ended {
    let mut command = Arguments::command();
    let mut page = Vec::new();
    let shell = match args.target {
        Target::Bash => Shell::Bash,
        Target::Elvish => Shell::Elvish,
        Target::Fish => Shell::Fish,
        Target::Powershell => Shell::PowerShell,
        Target::Zsh => Shell::Zsh,
        Target::Man => {
            return match clap_mangen::Man::new(command).render(&mut page) {
                Ok(()) => Ended::done(String::from_utf8_lossy(&page)),
                Err(error) => Ended::failed(&error),
            };
        }
    };
    clap_complete::generate(shell, &mut command, "onceward", &mut page);
    Ended::done(String::from_utf8_lossy(&page))
}
