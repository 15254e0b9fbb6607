//! One file per command; each reads as the story of what it does.
//!
//! A command returns its exit code. `Err` is an exit code, too: the message that belongs to it
//! has been shown by then.

pub mod apply;
pub mod args;
pub mod check;
pub mod exec;
pub mod facts;
pub mod fleet;
pub mod init;
pub mod interrupt;
pub mod kubeconfig;
mod login;
pub mod manual;
pub mod plan;
pub mod render;
pub mod reset;
pub mod status;
pub mod support;
pub mod test;

use crate::report::{Console, LogFile, Settings};
use args::{Cli, Command};

/// An exit code of [`crate::exit`] whose message has been shown.
pub type Ended = Result<u8, u8>;

/// Runs a command to its exit code.
pub async fn run(cli: Cli) -> u8 {
    let mut settings = Settings::decide(cli.global.log_format, cli.global.color, cli.global.verbose);
    let name = cli.command.name();
    let log = LogFile::create(name);
    if let Ok(log) = &log {
        settings.log = Some(log.clone());
    }
    let console = Console::new(settings);
    if let Err(error) = &log {
        console.warn(&crate::report::console::chain(error));
    }
    let ended = match cli.command {
        Command::Init(args) => Box::pin(init::run(&args, &console)).await,
        Command::Check(args) => check::run(&args, &console).await,
        Command::Plan(args) => plan::run(&args, &console).await,
        Command::Apply(args) => Box::pin(apply::run(&args, &console)).await,
        Command::Status(args) => status::run(&args, &console).await,
        Command::Test(args) => Box::pin(test::run(&args, &console)).await,
        Command::Facts(args) => facts::run(&args, &console).await,
        Command::Kubeconfig(args) => kubeconfig::run(&args, &console).await,
        Command::Reset(args) => Box::pin(reset::run(&args, &console)).await,
        Command::Render(args) => Box::pin(render::run(&args, &console)).await,
        Command::Exec(args) => exec::run(&args, &console).await,
        Command::Schema => manual::schema(&console),
        Command::Completions(args) => manual::completions(&args, &console),
        Command::Man(args) => manual::pages(&args, &console),
    };
    let code = ended.unwrap_or_else(|code| code);
    if let Ok(log) = log {
        log.settle(
            name,
            code == crate::exit::USAGE || ["schema", "completions", "man"].contains(&name),
        );
    }
    code
}
