//! Parses, runs, exits.

use std::process::ExitCode;

use clap::Parser;
use k8sup::cli::{self, args::Cli};

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(Box::pin(cli::run(Cli::parse())).await)
}
