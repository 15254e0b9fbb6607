//! Files on a real disk: what is kept, what is replaced, what is refused.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const SERVER: &str = "https://192.168.7.140:6443";

fn admin(ca: &str) -> Secret {
    Secret::new(format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: kubernetes-admin@kubernetes\nclusters:\n\
         - name: kubernetes\n  cluster:\n    certificate-authority-data: {ca}\n    server: https://10.0.0.1:6443\n\
         contexts:\n- name: kubernetes-admin@kubernetes\n  context: {{cluster: kubernetes, user: kubernetes-admin}}\n\
         users:\n- name: kubernetes-admin\n  user:\n    client-certificate-data: Q0VSVA==\n    client-key-data: S0VZ\n"
    ))
}

fn value(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn names(config: &Value, list: &str) -> Vec<String> {
    config[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

const OTHERS: &str = "\
apiVersion: v1
kind: Config
# a comment
preferences: {colors: true}
current-context: work
extensions:
- {name: mine, extension: {answer: 42, ratio: 0.5, empty: null}}
clusters:
- name: work
  cluster: {server: \"https://work.example\", certificate-authority: /ca.crt, tls-server-name: \"yes\"}
contexts:
- name: work
  context: {cluster: work, user: me, namespace: \"0123\"}
users:
- name: me
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, args: [\"--on\", \"1e3\", \"null\", \"~\", \"a: b #c\"], env: null}
";

#[test]
fn a_missing_file_is_made_with_its_folder() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".kube/config");
    let merged = merge_into(&path, "homelab", SERVER, &admin("Q0E=")).unwrap();
    assert_eq!(
        merged,
        Merged {
            path: path.clone(),
            context: "homelab".into(),
            backup: None,
            changed: true
        }
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777,
        0o700
    );
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap());
    assert_eq!(
        files(path.parent().unwrap()),
        ["config"],
        "neither lock nor temporary file stays"
    );
}

#[test]
fn an_empty_file_is_filled() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    for text in ["", "\n\n", "# nothing\n", "---\n"] {
        fs::write(&path, text).unwrap();
        merge_into(&path, "homelab", SERVER, &admin("Q0E=")).unwrap();
        assert_eq!(names(&value(&path), "contexts"), ["homelab"], "{text:?}");
    }
}

#[test]
fn everything_else_stays() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    fs::write(&path, OTHERS).unwrap();
    let merged = merge_into(&path, "homelab", SERVER, &admin("Q0E=")).unwrap();
    assert_eq!(merged.backup, None);
    let mut after = value(&path);
    assert_eq!(after["current-context"], "homelab");
    for list in ["clusters", "contexts", "users"] {
        assert_eq!(after[list].as_array_mut().unwrap().pop().unwrap()["name"], "homelab");
    }
    after["current-context"] = json!("work");
    assert_eq!(after, serde_saphyr::from_str::<Value>(OTHERS).unwrap());
}

#[test]
fn a_second_time_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    fs::write(&path, OTHERS).unwrap();
    merge_into(&path, "homelab", SERVER, &admin("Q0E=")).unwrap();
    let (text, time) = (
        fs::read(&path).unwrap(),
        fs::metadata(&path).unwrap().modified().unwrap(),
    );
    let merged = merge_into(&path, "homelab", SERVER, &admin("Q0E=")).unwrap();
    assert!(!merged.changed);
    assert_eq!(
        (text, time),
        (
            fs::read(&path).unwrap(),
            fs::metadata(&path).unwrap().modified().unwrap()
        )
    );
}

#[test]
fn the_same_cluster_keeps_what_the_user_added() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    merge_into(&path, "homelab", "https://old:6443", &admin("Q0E=")).unwrap();
    let mut config = value(&path);
    config["contexts"][0]["context"]["namespace"] = json!("web");
    config["clusters"][0]["cluster"]["proxy-url"] = json!("socks5://localhost:1080");
    fs::write(&path, serde_saphyr::to_string(&config).unwrap()).unwrap();
    let merged = merge_into(&path, "homelab", SERVER, &admin("Q0E=")).unwrap();
    assert_eq!(merged.backup, None);
    let after = value(&path);
    assert_eq!(after["contexts"][0]["context"]["namespace"], "web");
    assert_eq!(after["clusters"][0]["cluster"]["proxy-url"], "socks5://localhost:1080");
    assert_eq!(after["clusters"][0]["cluster"]["server"], SERVER);
}

#[test]
fn another_ca_replaces_and_leaves_a_backup() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    merge_into(&path, "homelab", SERVER, &admin("T0xE")).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    let merged = merge_into(&path, "homelab", SERVER, &admin("TkVX")).unwrap();
    let backup = merged.backup.unwrap();
    assert_eq!(backup.file_name().unwrap(), "config.k8sup-backup-1");
    assert_eq!(fs::read_to_string(&backup).unwrap(), before);
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        value(&path)["clusters"][0]["cluster"]["certificate-authority-data"],
        "TkVX"
    );
    assert_eq!(names(&value(&path), "clusters"), ["homelab"]);
    let again = merge_into(&path, "homelab", SERVER, &admin("T0xE")).unwrap();
    assert_eq!(again.backup.unwrap().file_name().unwrap(), "config.k8sup-backup-2");
}

#[test]
fn a_context_of_that_name_that_leads_elsewhere_is_backed_up() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    fs::write(&path, OTHERS).unwrap();
    let merged = merge_into(&path, "work", SERVER, &admin("Q0E=")).unwrap();
    assert_eq!(fs::read_to_string(merged.backup.unwrap()).unwrap(), OTHERS);
    assert_eq!(
        value(&path)["contexts"][0]["context"],
        json!({"cluster": "work", "user": "work"})
    );
    assert_eq!(names(&value(&path), "users"), ["me", "work"]);
}

#[track_caller]
fn refused(text: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    fs::write(&path, text).unwrap();
    let error = merge_into(&path, "homelab", SERVER, &admin("Q0E="))
        .unwrap_err()
        .to_string();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        text,
        "the file must stand as it was"
    );
    assert_eq!(files(home.path()), ["config"]);
    error.replace(home.path().to_str().unwrap(), "~")
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let error = refused("apiVersion: v1\nkind: Config\nclusters: [\nusers: {{\n");
    assert!(
        error.starts_with("~/config:") && error.contains(" | ") && error.contains("was not changed"),
        "{error}"
    );
    let error = refused("users:\n- name: me\n  user:\n    token: \"canary-secret\n");
    assert!(!error.contains("canary"), "{error}");
    let error = refused("users:\n- name: me\n   user: {token: canary}\n");
    assert!(error.contains("~/config:3") && !error.contains("canary"), "{error}");
}

#[test]
fn another_shape_is_refused() {
    assert!(refused("- a\n").contains("it is not a map"));
    assert!(refused("clusters: {a: b}\n").contains("`clusters` is not a list of maps"));
    assert!(refused("users: [a]\n").contains("`users` is not a list of maps"));
    refused("a: b\n---\nc: d\n");
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("dotfiles")).unwrap();
    let link = home.path().join("config");
    symlink("dotfiles/kube", &link).unwrap();
    for ca in ["Q0E=", "TkVX"] {
        let merged = merge_into(&link, "homelab", SERVER, &admin(ca)).unwrap();
        assert_eq!(merged.path, home.path().join("dotfiles/kube"));
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        value(&link)["clusters"][0]["cluster"]["certificate-authority-data"],
        "TkVX"
    );
    let circle = home.path().join("circle");
    symlink("circle", &circle).unwrap();
    let error = merge_into(&circle, "homelab", SERVER, &admin("Q0E="))
        .unwrap_err()
        .to_string();
    assert!(error.contains("too many symbolic links"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    // Root may write anywhere but into what is no folder, and below /proc.
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    let error = merge_into(&home.path().join("file/config"), "homelab", SERVER, &admin("Q0E=")).unwrap_err();
    assert!(error.to_string().contains("cannot create the folder"), "{error}");
    let error = merge_into(Path::new("/proc/config"), "homelab", SERVER, &admin("Q0E=")).unwrap_err();
    assert!(error.to_string().contains("cannot create /proc/config.lock"), "{error}");
    let error = merge_into(home.path(), "homelab", SERVER, &admin("Q0E=")).unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");
}

#[test]
fn writers_side_by_side_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    fs::write(&path, OTHERS).unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || merge_into(path, &format!("c{number}"), SERVER, &admin("Q0E=")).unwrap());
        }
    });
    assert_eq!(names(&value(&path), "contexts").len(), 9);
    assert_eq!(files(home.path()), ["config"]);
}

#[test]
fn a_lock_of_another_program_is_respected() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    let lock = home.path().join("config.lock");
    fs::write(&lock, "").unwrap();
    let waiter = {
        let path = path.clone();
        std::thread::spawn(move || merge_into(&path, "homelab", SERVER, &admin("Q0E=")))
    };
    std::thread::sleep(Duration::from_millis(100));
    assert!(!path.exists());
    fs::remove_file(&lock).unwrap();
    assert!(waiter.join().unwrap().unwrap().changed);
}

#[test]
fn an_unusable_admin_conf_is_named_and_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config");
    for bad in ["", "canary", "clusters: [{cluster: {server: canary}}]", "a: [canary"] {
        let error = merge_into(&path, "homelab", SERVER, &Secret::new(bad))
            .unwrap_err()
            .to_string();
        assert!(error.contains("admin.conf") && !error.contains("canary"), "{error}");
    }
    assert!(!path.exists());
}

#[test]
fn a_file_of_its_own_replaces_what_is_there() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("homelab.conf");
    fs::write(&path, "not: [yaml").unwrap();
    write_to(&path, "homelab", SERVER, &admin("Q0E=")).unwrap();
    let config = value(&path);
    assert_eq!(names(&config, "users"), ["homelab"]);
    assert_eq!(config["current-context"], "homelab");
    assert_eq!(config["users"][0]["user"]["client-key-data"], "S0VZ");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn text_that_older_readers_take_for_something_else_is_quoted() {
    for word in [
        "yes", "on", "n", "null", "~", "0123", "1e3", "0x1F", "1_000", "true", ".5", "", " a", "a: b", "a #b", "12:30",
    ] {
        let mut config = Value::Null;
        let user = json!({"token": word}).as_object().unwrap().clone();
        lay_in(
            &mut config,
            "homelab",
            SERVER,
            &Credentials {
                ca: "Q0E=".into(),
                user,
            },
        )
        .unwrap();
        let text = render(Path::new("config"), &config).unwrap();
        let line = text.lines().find(|line| line.contains("token:")).unwrap();
        let quoted = line.trim().trim_start_matches("token: ");
        assert!(quoted.starts_with(['"', '\'']), "{word:?} became {line:?}");
    }
    // Long values stay on one line, so that every reader and grep finds them.
    let mut config = json!({"a": "QUJD".repeat(1000), "b": format!("{} x", "word ".repeat(100))});
    let text = render(Path::new("config"), &config).unwrap();
    assert_eq!(text.lines().count(), 2, "{}", &*text);
    config["a"] = json!("line\nline\n");
    render(Path::new("config"), &config).unwrap();
}
