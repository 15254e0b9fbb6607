//! Was a host left alone? Its boot, and the programs that run on it since when.

use std::collections::BTreeSet;

use crate::lab::on;

/// What ran on each host at some moment.
#[derive(Debug)]
pub(crate) struct LifeSigns(Vec<(String, BTreeSet<String>)>);

/// Boot id, and since when the programs run that a restart would start anew.
pub(crate) fn life_signs(hosts: &[&str]) -> LifeSigns {
    let script = r#"echo "boot $(cat /proc/sys/kernel/random/boot_id)"
      for name in containerd kubelet etcd kube-apiserver kube-proxy flanneld haproxy; do
        for pid in $(pgrep -x "$name"); do echo "$name $pid $(cut -d' ' -f22 "/proc/$pid/stat")"; done
      done"#;
    let signs = |host: &&str| {
        let lines = on(host, &["sh", "-c", script]).lines().map(str::to_owned).collect();
        ((*host).to_owned(), lines)
    };
    LifeSigns(hosts.iter().map(signs).collect())
}

impl LifeSigns {
    /// What is only restarted with the control plane itself.
    pub(crate) fn of_control_plane(sign: &str) -> bool {
        ["boot ", "etcd ", "kube-apiserver "]
            .iter()
            .any(|start| sign.starts_with(start))
    }

    /// Everything.
    pub(crate) fn all(_: &str) -> bool {
        true
    }

    /// All that ran then and is `counted` runs still; more may.
    pub(crate) fn go_on(&self, counted: &dyn Fn(&str) -> bool) {
        let hosts: Vec<&str> = self.0.iter().map(|(host, _)| host.as_str()).collect();
        let now = life_signs(&hosts);
        for ((host, before), (_, now)) in self.0.iter().zip(&now.0) {
            let ended: Vec<_> = before.difference(now).filter(|sign| counted(sign)).collect();
            assert!(
                ended.is_empty(),
                "{host} was touched: {ended:?} no longer run, but {now:?}"
            );
        }
    }
}
