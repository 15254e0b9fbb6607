//! Integration tests, one binary: what a module promises to the others, tried from outside.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, also in its helpers"
)]
#![expect(
    clippy::format_push_string,
    clippy::too_many_lines,
    reason = "tables and their texts read best in one place"
)]

mod checks;
mod converge;
mod differences;
mod docs;
mod executor;
mod fuzz;
mod identity;
mod leftovers;
mod lock;
mod machine;
mod openssh;
mod page;
mod paths;
mod plans;
mod reboot;
mod rendered;
mod reported;
mod root;
mod saved;
mod scripts;
mod secrets;
mod shell;
mod simulate;
mod ssh;
mod standing;
mod transcripts;
mod world;
