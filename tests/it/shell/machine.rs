//! The machine itself: the command line of a Raspberry Pi, the reboot, the clock, swap of Raspberry Pi OS.

use k8sup::plan::Step;

use crate::root::{Root, bad, good};

const BEFORE: &str = "console=tty1 root=PARTUUID=4e0e1c4a-02 rootwait\n";
const AFTER: &str = "console=tty1 root=PARTUUID=4e0e1c4a-02 rootwait cgroup_enable=memory cgroup_memory=1\n";

fn line(root: &Root, file: &str) -> Step {
    Step::BootLine {
        path: root.path(file).to_str().unwrap().to_owned(),
        content: AFTER.to_owned(),
    }
}

#[test]
fn the_command_line_is_written_in_its_place_and_put_back() {
    for file in [
        "/boot/firmware/current/cmdline.txt",
        "/boot/firmware/cmdline.txt",
        "/boot/cmdline.txt",
    ] {
        let root = Root::new();
        root.write(file, BEFORE);
        good(&root.step(&line(&root, file)));
        assert_eq!(root.read(file), AFTER, "{file}");
        // Nothing else is left on the firmware's partition.
        let folder = root.path(file).parent().unwrap().to_owned();
        let left: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["cmdline.txt"]);
        // Again: as before the first time is what counts.
        good(&root.step(&line(&root, file)));
        good(&root.step(&Step::RestoreHost { purge: false }));
        assert_eq!(root.read(file), BEFORE, "{file}");
    }
}

#[test]
fn a_line_that_somebody_changed_since_is_kept_by_reset() {
    let root = Root::new();
    let file = "/boot/firmware/cmdline.txt";
    root.write(file, BEFORE);
    good(&root.step(&line(&root, file)));
    root.write(
        file,
        "console=tty1 root=/dev/nvme0n1p2 cgroup_enable=memory cgroup_memory=1\n",
    );
    let said = good(&root.step(&Step::RestoreHost { purge: false }));
    assert!(said.contains("it was changed since k8sup wrote it"), "{said}");
    assert!(root.read(file).contains("nvme0n1p2"));
}

#[test]
fn a_command_line_that_is_gone_or_cannot_be_written_is_told() {
    let root = Root::new();
    let file = "/boot/firmware/cmdline.txt";
    assert!(bad(&root.step(&line(&root, file))).contains("cmdline.txt is gone"));
    root.write(file, BEFORE);
    root.program("bin/touch", "#!/bin/sh\necho 'Read-only file system' >&2\nexit 1\n");
    let said = bad(&root.step(&line(&root, file)));
    assert!(said.contains("is it mounted for reading only?"), "{said}");
    assert_eq!(root.read(file), BEFORE);
    assert!(!root.exists("/var/lib/k8sup"), "nothing was recorded");
}

#[test]
fn a_host_is_rebooted_once() {
    let root = Root::new();
    root.write("/proc/sys/kernel/random/boot_id", "first\n");
    let step = Step::Reboot {
        boot_id: "first".to_owned(),
    };
    good(&root.step(&step));
    assert_eq!(root.commands(), ["systemctl reboot"]);
    root.write("/proc/sys/kernel/random/boot_id", "second\n");
    let said = good(&root.step(&step));
    assert!(said.contains("it was rebooted since"), "{said}");
    assert_eq!(root.commands(), [""; 0]);
}

#[test]
fn the_clock_is_waited_for_and_never_ends_a_run() {
    let root = Root::new();
    // The kernel says no, until the time service says yes.
    root.program("bin/perl", "#!/bin/sh\nexit 1\n");
    let said = good(&root.step(&Step::AwaitClock));
    assert!(
        said.contains("waiting for the time service to set the clock, at most")
            && said.contains("is not set after a minute"),
        "{said}"
    );
    root.write("/run/systemd/timesync/synchronized", "");
    let said = good(&root.step(&Step::AwaitClock));
    assert_eq!(said, "the clock is set\n");
    std::fs::remove_file(root.path("/run/systemd/timesync/synchronized")).unwrap();
    root.program("bin/perl", "#!/bin/sh\nexit 0\n");
    assert_eq!(good(&root.step(&Step::AwaitClock)), "the clock is set\n");
}

#[test]
fn swap_of_raspberry_pi_os_is_switched_off_by_its_own_setting() {
    let root = Root::new();
    root.write("/etc/rpi/swap.conf", "[Main]\n#Mechanism=auto\n");
    root.write(
        "/proc/swaps",
        "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 5\n",
    );
    let step = Step::SwapOff {
        fstab: None,
        units: vec!["dev-zram0.swap".to_owned()],
        makers: Vec::new(),
        zram: Some("# none\n".to_owned()),
        rpi: Some("[Main]\nMechanism=none\n".to_owned()),
        active: true,
    };
    good(&root.step(&step));
    let drop_in = "/etc/rpi/swap.conf.d/99-k8sup.conf";
    assert_eq!(root.read(drop_in), "[Main]\nMechanism=none\n");
    // Before the generators run again.
    assert_eq!(
        root.commands(),
        [
            "systemctl -q mask --now dev-zram0.swap",
            "systemctl daemon-reload",
            "swapoff /dev/zram0"
        ]
    );
    good(&root.step(&Step::RestoreHost { purge: false }));
    assert!(!root.exists(drop_in) && !root.exists("/etc/rpi/swap.conf.d"));
    assert_eq!(root.read("/etc/rpi/swap.conf"), "[Main]\n#Mechanism=auto\n");
}
