//! sudo itself: passwords from everywhere, and every refusal.

use k8sup::cluster::SecretSource;
use k8sup::remote::RunError;

use super::sshd::{PASSWORD, Sshd, can_run};
use super::{connected, program, script};

async fn as_root(server: &Sshd, user: &str, password: Option<&str>) -> Result<String, RunError> {
    let mut login = server.login(user);
    if let Some(password) = password {
        std::fs::write(server.path("password"), format!("{password}\n")).unwrap();
        login.sudo_password = Some(SecretSource::File(server.path("password")));
    }
    let output = connected(&login).await.run(&script("id -un", true), None).await?;
    Ok(output.stdout)
}

#[tokio::test]
async fn a_password_from_a_file_and_none_where_none_is_asked_for() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    assert_eq!(as_root(&server, "pi", Some(PASSWORD)).await.unwrap(), "root\n");
    assert_eq!(as_root(&server, "free", None).await.unwrap(), "root\n");
    // It is not run as the script either.
    assert_eq!(as_root(&server, "free", Some("touch /pwned")).await.unwrap(), "root\n");
}

#[test]
fn a_password_from_the_environment_or_from_a_prompt_serves_all_hosts() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    let login = "user: pi, key: ./id, config: none";
    let inventory = program::inventory(&server, 2, &format!("{login}, sudoPassword: {{ env: THEIR_WORD }}"));
    let run = |variable: &str| {
        let mut command = program::exec(&inventory, &["--root"], "id -un");
        let output = command.env(variable, PASSWORD).output().unwrap();
        (output.status.success(), program::text(&output))
    };
    let (done, text) = run("THEIR_WORD");
    assert!(done && text.matches("root").count() == 2, "{text}");
    let (done, text) = run("ANOTHER_WORD");
    assert!(!done && text.contains("THEIR_WORD is not set"), "{text}");

    let inventory = program::inventory(&server, 2, &format!("{login}, sudoPassword: prompt"));
    let output = program::on_a_terminal(&inventory, "--root", "id -un", &format!("{PASSWORD}\n"));
    let text = program::text(&output);
    assert!(output.status.success() && text.matches("│ root").count() == 2, "{text}");
    assert_eq!(text.matches("Password for sudo").count(), 1, "{text}");
    let output = program::exec(&inventory, &["--root"], "id -un").output().unwrap();
    assert!(
        program::text(&output).contains("no terminal"),
        "{}",
        program::text(&output)
    );
}

#[tokio::test]
async fn every_refusal_says_what_to_do() {
    if !can_run() {
        return;
    }
    let server = Sshd::start("");
    for (user, password, words) in [
        ("pi", None, ["password is required", "sudoPassword"]),
        ("pi", Some("wrong"), ["password is wrong", "sudoPassword"]),
        ("tty", None, ["tty", "requiretty"]),
        ("outsider", Some(PASSWORD), ["outsider", "sudoers"]),
    ] {
        let error = as_root(&server, user, password).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RunError::Sudo(_)), "{user}: {text}");
        for word in words {
            assert!(text.contains(word), "{user}: {word} is not in: {text}");
        }
        assert!(!text.contains(PASSWORD));
    }
}
