//! `k8sup schema`, `completions` and `man`: what the program can tell of itself.

use clap::CommandFactory;

use super::Ended;
use super::args::{Cli, Completions, Man};
use super::plan::{print, print_json};
use crate::exit;
use crate::inventory::schema;
use crate::report::Console;

/// Prints the JSON schema of the inventory.
///
/// # Errors
/// [`exit::UNEXPECTED`], when standard output cannot be written.
pub fn schema(console: &Console) -> Ended {
    print_json(console, Ok(schema::json()))?;
    Ok(exit::DONE)
}

/// Prints the completions of a shell.
///
/// # Errors
/// [`exit::UNEXPECTED`], when standard output cannot be written.
pub fn completions(args: &Completions, console: &Console) -> Ended {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "k8sup", &mut text);
    print(console, &String::from_utf8_lossy(&text))?;
    Ok(exit::DONE)
}

/// Writes the manual pages.
///
/// # Errors
/// [`exit::UNEXPECTED`], when the folder cannot be written.
pub fn pages(args: &Man, console: &Console) -> Ended {
    let folder = &args.output;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    if let Err(error) = written {
        let error = std::io::Error::other(format!("cannot write manual pages to {}: {error}", folder.display()));
        console.fail(&error, None);
        return Err(exit::UNEXPECTED);
    }
    Ok(exit::DONE)
}
