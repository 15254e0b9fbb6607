//! Every key that an inventory may have, with what it means: the reader knows no other, and `k8sup schema` and
//! docs/inventory.md are made of this.

/// What may stand behind a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// One text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number between these.
    Number(u64, u64),
    /// True or false.
    Switch,
    /// A list of texts; one text counts as a list of one.
    Texts,
    /// Another part's keys.
    Part(&'static str),
    /// Another part's keys, or one of these texts.
    PartOr(&'static str, &'static [&'static str]),
    /// Hosts by name: an address, or a host's keys.
    Hosts,
    /// Texts by text.
    Map,
    /// Lists of texts by text.
    Lists,
    /// Taints: `key=value:Effect`, or a taint's keys.
    Taints,
    /// A document of somebody else's format.
    Document,
    /// Such documents by text.
    Documents,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// It has to be there.
    pub(crate) required: bool,
    /// What it means, in a sentence or two.
    pub(crate) about: &'static str,
    /// What holds without it, as it could be written; empty where that cannot be written.
    pub(crate) default: &'static str,
    /// As somebody may write it.
    pub(crate) example: &'static str,
}

const fn key(name: &'static str, form: Form, about: &'static str) -> Key {
    Key {
        name,
        form,
        required: false,
        about,
        default: "",
        example: "",
    }
}

impl Key {
    const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }
    const fn such_as(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
    const fn needed(self) -> Self {
        Self { required: true, ..self }
    }
}

/// Keys that stand together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// `cluster`; `HOST` is any host, the inventory itself has no name.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
}

const HOST: Key = key(
    "host",
    Form::Text,
    "Address or name that is dialled, where it is not the host's `address`.",
)
.such_as("pi1.example.com");
const USER: Key = key(
    "user",
    Form::Text,
    "Login name; without it the name of whoever runs k8sup.",
)
.such_as("pi");
const PORT: Key = key("port", Form::Number(1, 65_535), "TCP port of the SSH server.")
    .or("22")
    .such_as("2222");
const KEY: Key = key(
    "key",
    Form::Text,
    "Private key file. An agent's keys are tried after it.",
)
.such_as("~/.ssh/id_ed25519");
const KEYS: Key = key(
    "keys",
    Form::Texts,
    "Several private key files, tried in this order; instead of `key`.",
)
.or("[~/.ssh/id_ed25519, ~/.ssh/id_ecdsa, ~/.ssh/id_rsa]");
const BASTION: Key = key(
    "bastion",
    Form::PartOr("ssh.bastion", &["none"]),
    "A host in between, through which the others are reached; `none` for a host that is reached directly.",
)
.such_as("{ host: gateway.example.com, user: me }");
const SUDO_PASSWORD: Key = key(
    "sudoPassword",
    Form::PartOr("ssh.sudoPassword", &["prompt", "none"]),
    "Where sudo's password comes from, for users whom sudo asks. `prompt` asks once for all hosts. It never stands in the \
     inventory itself.",
)
.such_as("prompt");
const HOST_KEYS: Key = key(
    "hostKeys",
    Form::OneOf(&["ask", "strict", "accept-new"]),
    "What happens with a host key that is not known yet: show and ask, refuse, or accept and remember. A key that has \
     changed is refused always.",
)
.or("ask");
const KNOWN_HOSTS: Key = key(
    "knownHosts",
    Form::Text,
    "File with known host keys, in OpenSSH's format.",
)
.or("~/.ssh/known_hosts");
const CONFIG: Key = key(
    "config",
    Form::Text,
    "OpenSSH client configuration, which says what the inventory leaves open (`ssh -G` is asked): a file instead of \
     `~/.ssh/config` and the system's, or `none`.",
)
.such_as("none");

/// The whole vocabulary.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "",
        about: "The inventory of one cluster: what it is to be, and which machines are to be it.",
        keys: &[
            key("cluster", Form::Part("cluster"), "What is decided for the cluster as a whole.").needed(),
            key("ssh", Form::Part("ssh"), "How hosts are logged in to; a host's own `ssh` goes before it."),
            key("loadBalancers", Form::Hosts, "The host in front of the API servers; haproxy is set up on it.")
                .such_as("{ lb-0: 192.168.7.140 }"),
            key("controllers", Form::Hosts, "Hosts with the control plane and etcd. An odd number: 1, 3 or 5.")
                .needed()
                .such_as("{ controller-0: 192.168.7.201 }"),
            key("workers", Form::Hosts, "Hosts that run pods.").such_as("{ worker-0: 192.168.7.204 }"),
            key("flannel", Form::Part("flannel"), "The pod network."),
            key("packages", Form::Part("packages"), "Where packages come from."),
            key("images", Form::Part("images"), "Where container images come from."),
            key("dns", Form::Part("dns"), "Name resolution of pods."),
            key("proxy", Form::Part("proxy"), "A proxy for what hosts fetch."),
            key("kubeadm", Form::Document, "Laid over kubeadm's ClusterConfiguration (v1beta4).")
                .such_as("{ apiServer: { extraArgs: [{ name: audit-log-maxage, value: \"7\" }] } }"),
            key("kubelet", Form::Document, "Laid over the KubeletConfiguration of all nodes.").such_as("{ maxPods: 200 }"),
            key("kubeProxy", Form::Document, "Laid over the KubeProxyConfiguration.").such_as("{ mode: nftables }"),
            key("allow", Form::Texts, "Codes of checks whose refusal you take on yourself; docs/checks.md lists them.")
                .such_as("[K8S-RES-001]"),
        ],
    },
    Part {
        name: "cluster",
        about: "What is decided for the cluster as a whole. Most of it cannot be changed later.",
        keys: &[
            key("name", Form::Text, "Its name, also of the context in your kubeconfig. A DNS label.").needed().such_as("homelab"),
            key("kubernetes", Form::Text, "Exact version of Kubernetes, v1.31 to v1.34.").needed().such_as("v1.34.4"),
            key(
                "podCidr",
                Form::Text,
                "Network of the pods; every node gets a /24 of it. No network that your hosts can reach may lie in it.",
            )
            .or("10.244.0.0/16"),
            key("serviceCidr", Form::Text, "Network of the services' addresses.").or("10.96.0.0/12"),
            key("dnsDomain", Form::Text, "DNS domain of services.").or("cluster.local"),
            key(
                "endpoint",
                Form::Text,
                "Where nodes and clients reach the API, as NAME:PORT or ADDRESS:PORT. Without it: the load balancer's address \
                 (or the only controller's) and port 6443.",
            )
            .such_as("k8s.example.com:6443"),
            key("certSans", Form::Texts, "Further names and addresses in the API server's certificate.")
                .such_as("[k8s.example.com]"),
            key(
                "keyAlgorithm",
                Form::OneOf(&["RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"]),
                "Keys of the certificates that kubeadm makes.",
            )
            .such_as("ECDSA-P256"),
            key("setHostnames", Form::Switch, "Give each host the name that the inventory has for it.").or("false"),
        ],
    },
    Part {
        name: "ssh",
        about: "How hosts are logged in to.",
        keys: &[USER, PORT, KEY, KEYS, BASTION, SUDO_PASSWORD, HOST_KEYS, KNOWN_HOSTS, CONFIG],
    },
    Part {
        name: "HOST",
        about: "One host. Its key is the name of its Node; an address alone is short for `{ address: … }`.",
        keys: &[
            key("address", Form::Text, "Its IPv4 address, by which the others of the cluster reach it.")
                .needed()
                .such_as("192.168.7.201"),
            key("ssh", Form::Part("HOST.ssh"), "How this host is logged in to, where that differs."),
            key("labels", Form::Map, "Labels of its Node.").such_as("{ disk: ssd }"),
            key(
                "taints",
                Form::Taints,
                "Taints of its Node, beside kubeadm's own. `[]` on a controller lets ordinary pods run there.",
            )
            .such_as("[\"dedicated=storage:NoSchedule\"]"),
            key("interface", Form::Text, "Network interface with its address, where several have it.").such_as("eth0"),
        ],
    },
    Part {
        name: "HOST.ssh",
        about: "How one host is logged in to; what is not here holds as in `ssh`.",
        keys: &[HOST, USER, PORT, KEY, KEYS, BASTION, SUDO_PASSWORD, HOST_KEYS, KNOWN_HOSTS, CONFIG],
    },
    Part {
        name: "ssh.bastion",
        about: "A host in between, or with a `bastion` of its own a chain of them. Its user and keys are those of the section it \
                stands in, unless it says otherwise.",
        keys: &[HOST.needed(), USER, PORT, KEY, KEYS, BASTION, HOST_KEYS, KNOWN_HOSTS],
    },
    Part {
        name: "ssh.sudoPassword",
        about: "One of the two.",
        keys: &[
            key("env", Form::Text, "Environment variable, on your machine, that holds it.").such_as("SUDO_PASSWORD"),
            key("file", Form::Text, "File, on your machine, whose first line it is.").such_as("./sudo.password"),
        ],
    },
    Part {
        name: "HOST.taints",
        about: "A taint in its parts.",
        keys: &[
            key("key", Form::Text, "Key of the taint.").needed().such_as("dedicated"),
            key("value", Form::Text, "Its value; may be left out.").such_as("storage"),
            key(
                "effect",
                Form::OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"]),
                "What it does to pods that do not tolerate it.",
            )
            .needed()
            .such_as("NoSchedule"),
        ],
    },
    Part {
        name: "flannel",
        about: "The pod network. Flannel's own manifest is used, checked by its SHA-256 and patched.",
        keys: &[
            key("version", Form::Text, "Version of Flannel. Another one needs `sha256`, too.").or("v0.28.10"),
            key("manifest", Form::Text, "URL or file of its manifest, instead of upstream's.").such_as("./kube-flannel.yml"),
            key("sha256", Form::Text, "SHA-256 of the manifest, 64 hexadecimal digits; has to be there for a URL of your own.")
                .such_as("944a3c1f925f117727a1b7272a323c80965da642498397ec7e6ea9bef0f9e6c5"),
            key(
                "backend",
                Form::OneOf(&["vxlan", "host-gw", "wireguard"]),
                "How packets get from node to node. `host-gw` is quicker, where all nodes are in one network.",
            )
            .or("vxlan"),
            key("vni", Form::Number(1, 16_777_215), "Identifier of the VXLAN.").or("1"),
            key("port", Form::Number(1, 65_535), "UDP port of VXLAN; without it the kernel's, 8472.").such_as("4789"),
            key("mtu", Form::Number(576, 65_535), "Largest packet of the pod network, in bytes, where Flannel cannot tell.")
                .such_as("1370"),
            key("interface", Form::Text, "Interface between the nodes, the same on all; a host's own goes before it.")
                .such_as("eth0"),
            key("imageRepository", Form::Text, "Registry and path instead of `ghcr.io/flannel-io`.")
                .such_as("mirror.example.com/flannel-io"),
            key("patches", Form::Documents, "JSON merge patches for objects of the manifest, by `Kind/name`.")
                .such_as("{ DaemonSet/kube-flannel-ds: { spec: { template: { metadata: { labels: { team: net } } } } } }"),
        ],
    },
    Part {
        name: "packages",
        about: "Where packages come from.",
        keys: &[
            key("repository", Form::Text, "Base URL of Kubernetes' package repository.").or("https://pkgs.k8s.io"),
            key("revision", Form::Text, "Debian revision of kubeadm, kubelet and kubectl; without it the newest.").such_as("\"1.1\""),
            key("containerd", Form::Part("packages.containerd"), "Another repository for containerd than the distribution's."),
        ],
    },
    Part {
        name: "packages.containerd",
        about: "Another repository for containerd.",
        keys: &[
            key("source", Form::Text, "URL, suite and components, as in a line of apt's.")
                .needed()
                .such_as("https://download.docker.com/linux/debian trixie stable"),
            key("key", Form::Text, "URL of the key that signs it.")
                .needed()
                .such_as("https://download.docker.com/linux/debian/gpg"),
            key("package", Form::Text, "Name of the package.").or("containerd.io"),
        ],
    },
    Part {
        name: "images",
        about: "Where container images come from.",
        keys: &[
            key("repository", Form::Text, "Registry and path of Kubernetes' own images.").or("registry.k8s.io"),
            key("mirrors", Form::Lists, "Mirrors by registry, tried in order; `\"*\"` is every registry.")
                .such_as("{ docker.io: [https://mirror.example.com] }"),
        ],
    },
    Part {
        name: "dns",
        about: "Name resolution of pods.",
        keys: &[
            key("resolvers", Form::Texts, "Resolvers that CoreDNS asks for names outside of the cluster; without them the node's.")
                .such_as("[192.168.7.1]"),
        ],
    },
    Part {
        name: "proxy",
        about: "A proxy for what hosts fetch: packages, images, Flannel's manifest.",
        keys: &[
            key("http", Form::Text, "Proxy for http URLs.").such_as("http://proxy.example.com:3128"),
            key("https", Form::Text, "Proxy for https URLs.").such_as("http://proxy.example.com:3128"),
            key("noProxy", Form::Texts, "Never proxied, beside the cluster's own hosts and networks.").such_as("[.example.com]"),
        ],
    },
];

/// The part of that name.
pub(crate) fn part(name: &str) -> Option<&'static Part> {
    PARTS.iter().find(|part| part.name == name)
}

#[cfg(test)]
mod tests;
