//! What kubeadm and the kubelet left on the host.

use super::super::kube::KubeFacts;
use super::super::{Login, Seen};
use super::Sections;
use super::certificate::{certificate, kubeconfig};

/// Reads everything of Kubernetes but the list of files and etcd's directory, which the caller insists on.
pub(super) fn kube(sections: &Sections) -> KubeFacts {
    let mut facts = KubeFacts {
        ca: pem(sections, "/etc/kubernetes/pki/ca.crt"),
        apiserver: pem(sections, "/etc/kubernetes/pki/apiserver.crt"),
        kubelet: pem(sections, "/var/lib/kubelet/pki/kubelet-client-current.pem"),
        readyz: readyz(sections),
        kubelet_config: owned(sections.get("kubelet-config")),
        kubelet_flags: owned(sections.get("kubelet-flags")),
        ..KubeFacts::default()
    };
    for (path, text) in sections
        .with_prefix("certificate:")
        .filter(|(path, _)| path.starts_with("/etc/kubernetes/pki/"))
    {
        if let Some(Ok(found)) = text.present().map(|text| certificate(text)) {
            facts.certificates.insert(path.to_owned(), found);
        }
    }
    for (path, text) in sections.with_prefix("kubeconfig:") {
        let Some(text) = text.present() else { continue };
        let found = kubeconfig(text);
        let file = path.rsplit('/').next().unwrap_or(path);
        let name = file.strip_suffix(".conf").unwrap_or(file);
        if let Some(client) = found.client {
            // Before it rotates the first time, the kubelet's certificate is inside its kubeconfig.
            if name == "kubelet" && facts.kubelet.is_absent() {
                facts.kubelet = Seen::Present(client.clone());
            }
            facts.certificates.insert(path.to_owned(), client);
        }
        facts.kubeconfigs.insert(name.to_owned(), found.kubeconfig);
    }
    facts
}

/// The probe prints a certificate's section only where there is such a file.
fn pem(sections: &Sections, path: &str) -> Seen<super::super::kube::Certificate> {
    let name = format!("certificate:{path}");
    let Some((_, text)) = sections.with_prefix(&name).find(|(rest, _)| rest.is_empty()) else {
        return Seen::Absent;
    };
    match text {
        Seen::Present(text) => match certificate(text) {
            Ok(found) => Seen::Present(found),
            Err(reason) => Seen::Unknown(format!("{path} {reason}")),
        },
        Seen::Absent => Seen::Absent,
        Seen::Unknown(reason) => Seen::Unknown(reason.clone()),
    }
}

/// An answer is an answer, also a bad one; no answer is unknown.
fn readyz(sections: &Sections) -> Seen<String> {
    match sections.get("readyz") {
        Seen::Present(text) => Seen::Present(text.trim().to_owned()),
        Seen::Absent => Seen::Absent,
        Seen::Unknown(reason) if reason.contains("Error from server") => Seen::Present(reason),
        Seen::Unknown(reason) => Seen::Unknown(reason),
    }
}

fn owned(text: Seen<&str>) -> Seen<String> {
    match text {
        Seen::Present(text) => Seen::Present(text.to_owned()),
        Seen::Absent => Seen::Absent,
        Seen::Unknown(reason) => Seen::Unknown(reason),
    }
}

/// The login user's passwd line and kubeconfig.
pub(super) fn login(passwd: &str, config: Seen<&str>) -> Login {
    let fields: Vec<&str> = passwd.trim().split(':').collect();
    let mut login = Login {
        user: fields.first().copied().unwrap_or_default().to_owned(),
        home: fields.get(5).copied().unwrap_or_default().to_owned(),
        ..Login::default()
    };
    login.kubeconfig_ca = match config {
        Seen::Present(text) => {
            let found = kubeconfig(text).kubeconfig;
            login.kubeconfig_server = Some(found.server).filter(|server| !server.is_empty());
            found.ca_spki_sha256.map_or_else(
                || Seen::Unknown("holds no CA that can be read".to_owned()),
                Seen::Present,
            )
        }
        Seen::Absent => Seen::Absent,
        Seen::Unknown(reason) => Seen::Unknown(reason),
    };
    login
}
