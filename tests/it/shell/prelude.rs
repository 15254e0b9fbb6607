//! The prelude: files that are put and remembered, notes, waiting, secrets.

use std::os::unix::fs::PermissionsExt;

use crate::root::{Root, good, said};

#[test]
fn put_writes_once_and_remembers_what_stood_there() {
    let root = Root::new();
    root.write("/etc/fstab", "before\n");
    std::fs::set_permissions(root.path("/etc/fstab"), PermissionsExt::from_mode(0o640)).unwrap();
    let put = "put /etc/fstab - 'after\n'; echo changed=$changed";
    assert!(good(&root.prelude(put)).ends_with("changed=1\n"));
    assert_eq!(root.read("/etc/fstab"), "after\n");
    assert_eq!(
        std::fs::metadata(root.path("/etc/fstab")).unwrap().permissions().mode() & 0o777,
        0o640,
        "the mode is kept"
    );
    let before = flat(&root, "/etc/fstab");
    assert_eq!(root.read(&format!("{before}.before")), "before\n");
    let ours = root.read(&format!("{before}.ours"));
    assert_eq!(good(&root.prelude(put)), "changed=0\n", "again is nothing");
    // Another content later: what stood before stays what it was.
    good(&root.prelude("put /etc/fstab - 'later\n'"));
    assert_eq!(root.read(&format!("{before}.before")), "before\n");
    assert_ne!(root.read(&format!("{before}.ours")), ours);
    let left: Vec<_> = std::fs::read_dir(root.path("/etc"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "no temporary file stays: {left:?}");
}

#[test]
fn put_adopts_a_file_that_is_right_already_without_claiming_it() {
    let root = Root::new();
    root.write("/etc/own.conf", "as wanted\n");
    good(&root.prelude("put /etc/own.conf 644 'as wanted\n'"));
    let key = flat(&root, "/etc/own.conf");
    for ending in ["before", "absent", "ours"] {
        assert!(
            !root.exists(&format!("{key}.{ending}")),
            "{ending}: reset would remove what k8sup did not write"
        );
    }
    // One that k8sup wrote and a power cut left without its mark gets it.
    good(&root.prelude("put /etc/new/deep.conf 600 'x\n'"));
    let key = flat(&root, "/etc/new/deep.conf");
    std::fs::remove_file(root.path(&format!("{key}.ours"))).unwrap();
    good(&root.prelude("put /etc/new/deep.conf 600 'x\n'"));
    assert!(root.exists(&format!("{key}.ours")));
    assert_eq!(
        std::fs::metadata(root.path("/etc/new/deep.conf"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    assert!(
        root.read("/var/lib/k8sup/entries/dir").ends_with("/etc/new\n"),
        "new folders are noted"
    );
}

fn flat(root: &Root, path: &str) -> String {
    let path = root.path(path);
    format!("/var/lib/k8sup/files/{}", path.to_str().unwrap().replace('/', "%"))
}

#[test]
fn note_lines_and_wait_do_what_they_say() {
    let root = Root::new();
    let text = good(&root.prelude(
        "note swap-masked -weird.unit; note swap-masked -weird.unit; note swap-masked b\n\
         show() { printf '<%s>' \"$@\"; cat; }\n\
         lines 'one\n\ntwo words' show fixed\nlines '' show never\n\
         tries=0\nthird() { tries=$((tries + 1)); [ $tries -ge 3 ]; }\nwait_until 60 something third && echo \"after $tries\"\n\
         wait_until 2 nothing false || echo 'gave up'",
    ));
    assert_eq!(root.read("/var/lib/k8sup/entries/swap-masked"), "-weird.unit\nb\n");
    assert!(
        text.starts_with("<fixed><one><fixed><two words>waiting for something, at most 56 s more\n")
            && text.contains("\nafter 3\n"),
        "{text}"
    );
    assert!(text.ends_with("gave up\n"), "{text}");
}

#[test]
fn secrets_are_gone_when_a_step_ends_however_it_ends() {
    for (end, status) in [
        ("true", Some(0)),
        ("exit 3", Some(3)),
        ("die no", Some(1)),
        ("kill -TERM $$", Some(143)),
        ("false", Some(1)),
    ] {
        let root = Root::new();
        let output = root.prelude(&format!("secret /run/k8sup/kubeadm.yaml 'token'; stat -c %a /run/k8sup/kubeadm.yaml; cat /run/k8sup/kubeadm.yaml; echo; {end}"));
        assert_eq!(output.status.code(), status, "{end}: {}", said(&output));
        assert!(said(&output).starts_with("600\ntoken\n"), "{end}: {}", said(&output));
        assert!(!root.exists("/run/k8sup/kubeadm.yaml"), "{end}");
        assert_eq!(
            std::fs::metadata(root.path("/run/k8sup")).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }
}

#[test]
fn a_write_that_fails_leaves_no_scratch_file() {
    let root = Root::new();
    // The record cannot be written.
    root.write("/var/lib/k8sup", "in the way\n");
    let text = format!(
        "{}\nput /etc/modules-load.d/k8sup.conf 644 overlay\n",
        crate::world::read("templates/prelude.sh")
    );
    let output = root.run(&[], &text);
    assert!(!output.status.success());
    let folder = root.path("/etc/modules-load.d");
    let left: Vec<_> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // And with the record, but without room for its last word.
    std::fs::remove_file(root.path("/var/lib/k8sup")).unwrap();
    root.stub("sync", "exit 1");
    assert!(!root.run(&[], &text).status.success());
    let left: Vec<_> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
