//! Whole command lines: `tests/transcripts/`. Nothing in them needs a network.

#[test]
fn transcripts() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().to_str().unwrap();
    trycmd::TestCases::new()
        .env("HOME", home)
        .env("XDG_STATE_HOME", format!("{home}/state"))
        .env("XDG_CACHE_HOME", format!("{home}/cache"))
        .env("SSH_AUTH_SOCK", "")
        .env("USER", "me")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/transcripts/*.trycmd");
}
