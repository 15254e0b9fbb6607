use std::path::Path;

use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey};

use super::{HostKey, KnownHost, Verdict, glob, remember, replace};

const ONE: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN4gm2hcPljFRGZo9hG093QWUenTQ9sesLVYGKbgs4pA";
const TWO: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkElA6ipuXnI7n4IxlYvU85J+nL4ik3s1VjI3HjDFrq";
const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHYmgP6JeQOUOcLmEqVZ6BQOsv1fgv7L7WX1U47uHCneeX7wcYJys5v4xnfteOevS6s+i+mzvCH3nmaNnFcZH4Y=";

fn key(text: &str) -> PublicKey {
    text.parse().unwrap()
}

fn known(file: &str, host: &str, port: u16) -> KnownHost {
    let mut known = KnownHost::default();
    known.read(Path::new("known_hosts"), file, host, port);
    known
}

fn judge(file: &str, host: &str, port: u16, offered: &str) -> Verdict {
    known(file, host, port).judge(&key(offered))
}

fn changed(file: &str, host: &str, port: u16, offered: &str) -> Vec<usize> {
    match judge(file, host, port, offered) {
        Verdict::Changed(keys) => keys.into_iter().map(|key| key.line).collect(),
        other => panic!("{other:?} in place of a changed key"),
    }
}

#[test]
fn plain_names_ports_and_several_lines() {
    let file = format!(
        "# a comment\n\ncp1.lab,192.168.7.201   {ONE}  a comment of two words\n[cp1.lab]:2222\t{TWO}\ncp1.lab {ECDSA}\nbroken\ncp2 ssh-ed25519 !!!\n"
    );
    assert_eq!(judge(&file, "cp1.lab", 22, ONE), Verdict::Known);
    assert_eq!(judge(&file, "CP1.lab", 22, ECDSA), Verdict::Known);
    assert_eq!(judge(&file, "192.168.7.201", 22, ONE), Verdict::Known);
    assert_eq!(changed(&file, "cp1.lab", 22, TWO), [3, 5]);
    assert_eq!(judge(&file, "cp1.lab", 2222, TWO), Verdict::Known);
    // Under another port the bare name vouches, as in OpenSSH, but contradicts nothing.
    assert_eq!(judge(&file, "cp1.lab", 2022, ONE), Verdict::Known);
    assert_eq!(judge(&file, "cp1.lab", 2022, TWO), Verdict::Unknown);
    assert_eq!(judge(&file, "cp2", 22, ONE), Verdict::Unknown);
    assert_eq!(judge(&file, "cp1", 22, ONE), Verdict::Unknown);
    assert_eq!(judge("", "cp1", 22, ONE), Verdict::Unknown);
}

#[test]
fn a_key_of_another_kind_is_a_change() {
    assert_eq!(changed(&format!("cp1 {ECDSA}\n"), "cp1", 22, ONE), [1]);
}

#[test]
fn hashed_names() {
    // Made by `ssh-keygen -H`.
    let file = format!(
        "|1|U+2HG69EZZNzH6LM2TuKG45D3mk=|hvTJUThzbJSnQ5O9BVsWCzslvi0= {ONE}\n|1|k+tUV1MXYwg1c4pvr1AHJhCtpPI=|FML65+LuXcTEBoinL9Jo0edAFdA= {TWO}\n"
    );
    assert_eq!(judge(&file, "cp1.lab", 22, ONE), Verdict::Known);
    assert_eq!(changed(&file, "cp1.lab", 22, TWO), [1]);
    assert_eq!(judge(&file, "cp1.lab", 2222, TWO), Verdict::Known);
    assert_eq!(judge(&file, "cp2.lab", 22, ONE), Verdict::Unknown);
}

#[test]
fn wildcards_and_negation() {
    let file = format!("*.lab,!w?.lab {ONE}\n");
    assert_eq!(judge(&file, "cp1.lab", 22, ONE), Verdict::Known);
    assert_eq!(judge(&file, "w1.lab", 22, ONE), Verdict::Unknown);
    assert_eq!(judge(&file, "lab", 22, ONE), Verdict::Unknown);
    assert_eq!(
        judge(&format!("!w1.lab,*.lab {ONE}\n"), "w1.lab", 22, ONE),
        Verdict::Unknown
    );
    for (pattern, name, expected) in [
        ("*", "", true),
        ("a*c*e", "abcde", true),
        ("a*c*e", "abcdef", false),
        ("[*.lab]:2222", "[cp1.lab]:2222", true),
        ("?", "", false),
        ("**b", "aab", true),
    ] {
        assert_eq!(glob(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
    }
}

#[test]
fn marked_lines() {
    let file = format!("cp1 {ONE}\n@revoked * {ONE}\n@cert-authority *.lab {TWO}\n");
    assert_eq!(judge(&file, "cp1", 22, ONE), Verdict::Revoked("known_hosts".into(), 2));
    assert_eq!(judge(&file, "cp1.lab", 22, TWO), Verdict::Unknown);
}

#[test]
fn known_kinds_are_asked_for_first() {
    let ecdsa = Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP256,
    };
    let rsa = Algorithm::Rsa {
        hash: Some(HashAlg::Sha512),
    };
    let all = [Algorithm::Ed25519, ecdsa.clone(), rsa.clone()];
    let known = known(&format!("cp1 {ECDSA}\n"), "cp1", 22);
    assert_eq!(known.prefer(&all), [ecdsa, Algorithm::Ed25519, rsa]);
}

#[test]
fn remembering_adds_once_and_keeps_the_rest() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/known_hosts");
    let one = HostKey::new("192.168.7.201", 22, &key(ONE));
    let two = HostKey::new("cp1.lab", 2222, &key(TWO));
    remember(&path, &one).unwrap();
    remember(&path, &one).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("192.168.7.201 {ONE}\n")
    );
    std::fs::write(&path, "# mine, without a newline").unwrap();
    remember(&path, &two).unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        format!("# mine, without a newline\n[cp1.lab]:2222 {TWO}\n")
    );
    assert_eq!(one.fingerprint, "SHA256:nQCS8/lRPjBC8ATUhMRhop7CqgK3TUAGLI+YNjjxDPo");
}

#[test]
fn many_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("known_hosts");
    std::thread::scope(|scope| {
        for number in 0..16 {
            let path = &path;
            scope.spawn(move || remember(path, &HostKey::new(&format!("host-{}", number / 2), 22, &key(ONE))).unwrap());
        }
    });
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 8);
}

#[test]
fn replacing_takes_the_old_lines_out() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    let path = dir.path().join("known_hosts");
    std::os::unix::fs::symlink(&real, &path).unwrap();
    std::fs::write(
        &real,
        format!(
            "# top\ncp1.lab {ECDSA}\ncp2,cp1.lab {ONE} note\n|1|U+2HG69EZZNzH6LM2TuKG45D3mk=|hvTJUThzbJSnQ5O9BVsWCzslvi0= {ONE}\n*.lab {ONE}\n[cp1.lab]:2222 {ONE}"
        ),
    )
    .unwrap();
    let new = HostKey::new("cp1.lab", 22, &key(TWO));
    assert_eq!(replace(&path, &new).unwrap(), 3);
    assert_eq!(
        std::fs::read_to_string(&real).unwrap(),
        format!("# top\ncp2 {ONE} note\n*.lab {ONE}\n[cp1.lab]:2222 {ONE}\ncp1.lab {TWO}\n")
    );
    assert!(path.is_symlink());
    assert_eq!(
        judge(&std::fs::read_to_string(&path).unwrap(), "cp1.lab", 22, TWO),
        Verdict::Known
    );
}
