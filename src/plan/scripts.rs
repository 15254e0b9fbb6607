//! The scripts of the steps: name and text of each file of `templates/steps`.

/// What every step may use; it stands in front of each script.
pub(super) const PRELUDE: &str = include_str!("../../templates/prelude.sh");

/// A file of `templates/steps`: its name without `.sh`, and its text.
pub(super) type Script = (&'static str, &'static str);

pub(super) const SWAP_OFF: Script = ("swap_off", include_str!("../../templates/steps/swap_off.sh"));
pub(super) const FIREWALL: Script = (
    "firewall",
    concat!(
        include_str!("../../templates/firewall.sh"),
        include_str!("../../templates/steps/firewall.sh")
    ),
);
pub(super) const KUBELET_FLAGS: Script = ("kubelet_flags", include_str!("../../templates/steps/kubelet_flags.sh"));
pub(super) const KUBELET_SERVER: Script = (
    "kubelet_server",
    include_str!("../../templates/steps/kubelet_server.sh"),
);
pub(super) const LINK_SETTINGS: Script = ("link_settings", include_str!("../../templates/steps/link_settings.sh"));
pub(super) const MACHINE_ID: Script = ("machine_id", include_str!("../../templates/steps/machine_id.sh"));
pub(super) const BOOT_LINE: Script = ("boot_line", include_str!("../../templates/steps/boot_line.sh"));
pub(super) const REBOOT: Script = ("reboot", include_str!("../../templates/steps/reboot.sh"));
pub(super) const AWAIT_CLOCK: Script = ("await_clock", include_str!("../../templates/steps/await_clock.sh"));
pub(super) const KERNEL: Script = ("kernel", include_str!("../../templates/steps/kernel.sh"));
pub(super) const HOSTNAME: Script = ("hostname", include_str!("../../templates/steps/hostname.sh"));
pub(super) const PACKAGES: Script = (
    "packages",
    concat!(
        include_str!("../../templates/apt.sh"),
        include_str!("../../templates/steps/packages.sh")
    ),
);
pub(super) const CONTAINERD: Script = ("containerd", include_str!("../../templates/steps/containerd.sh"));
pub(super) const HOSTS_FILE: Script = ("hosts_file", include_str!("../../templates/steps/hosts_file.sh"));
pub(super) const RESOLV_CONF: Script = ("resolv_conf", include_str!("../../templates/steps/resolv_conf.sh"));
pub(super) const HAPROXY: Script = ("haproxy", include_str!("../../templates/steps/haproxy.sh"));
pub(super) const REACH: Script = ("reach", include_str!("../../templates/steps/reach.sh"));
pub(super) const PULL_IMAGES: Script = ("pull_images", include_str!("../../templates/steps/pull_images.sh"));
pub(super) const CLEAR_HALF_MADE: Script = (
    "clear_half_made",
    include_str!("../../templates/steps/clear_half_made.sh"),
);
pub(super) const FOUND: Script = ("found", include_str!("../../templates/steps/found.sh"));
pub(super) const AWAIT_API: Script = ("await_api", include_str!("../../templates/steps/await_api.sh"));
pub(super) const PUBLISH: Script = ("publish", include_str!("../../templates/steps/publish.sh"));
pub(super) const ISSUE_TOKEN: Script = ("issue_token", include_str!("../../templates/steps/issue_token.sh"));
pub(super) const FLANNEL: Script = ("flannel", include_str!("../../templates/steps/flannel.sh"));
pub(super) const ETCD_TURN: Script = ("etcd_turn", include_str!("../../templates/steps/etcd_turn.sh"));
pub(super) const JOIN: Script = ("join", include_str!("../../templates/steps/join.sh"));
pub(super) const FINISH_JOIN: Script = ("finish_join", include_str!("../../templates/steps/finish_join.sh"));
pub(super) const FORGET_NODE: Script = ("forget_node", include_str!("../../templates/steps/forget_node.sh"));
pub(super) const NODE_SETTINGS: Script = ("node_settings", include_str!("../../templates/steps/node_settings.sh"));
pub(super) const RESOLVERS: Script = ("resolvers", include_str!("../../templates/steps/resolvers.sh"));
pub(super) const USER_KUBECONFIG: Script = (
    "user_kubeconfig",
    include_str!("../../templates/steps/user_kubeconfig.sh"),
);
pub(super) const REVOKE: Script = ("revoke", include_str!("../../templates/steps/revoke.sh"));
pub(super) const LEAVE_CLUSTER: Script = ("leave_cluster", include_str!("../../templates/steps/leave_cluster.sh"));
pub(super) const RESET_NODE: Script = (
    "reset_node",
    concat!(
        include_str!("../../templates/network.sh"),
        include_str!("../../templates/steps/reset_node.sh")
    ),
);
pub(super) const CLEAR_LEFT: Script = (
    "clear_left",
    concat!(
        include_str!("../../templates/network.sh"),
        include_str!("../../templates/steps/clear_left.sh")
    ),
);
pub(super) const RESET_LOAD_BALANCER: Script = (
    "reset_load_balancer",
    include_str!("../../templates/steps/reset_load_balancer.sh"),
);
pub(super) const RESTORE_HOST: Script = (
    "restore_host",
    concat!(
        include_str!("../../templates/apt.sh"),
        include_str!("../../templates/firewall.sh"),
        include_str!("../../templates/steps/restore_host.sh")
    ),
);
