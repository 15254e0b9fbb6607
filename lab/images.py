#!/usr/bin/env python3
"""Makes the container images of the lab from static binaries.

usage: images.py BINARIES ROOT OUT VERSION…

Writes one OCI layout per image below OUT and prints "LAYOUT NAME:TAG" for each
name that the image goes by, for a caller that pushes them to the registry.
The images have the names, tags and commands that kubeadm and Flannel's own
manifest expect, so that a registry mirror needs no renaming.
"""
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

# kubeadm config images list --kubernetes-version VERSION says these tags.
TAGS = {
    "v1.34.4": {"etcd": ("3.6", "3.6.5-0"), "coredns": "v1.12.1", "pause": "3.10.1"},
    "v1.33.13": {"etcd": ("3.5", "3.5.24-0"), "coredns": "v1.12.0", "pause": "3.10"},
}
FLANNEL = "v0.28.10"
FLANNEL_CNI = "v1.9.1-flannel3"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")

# The kube-proxy of a host that is no real machine: in a network namespace
# nf_conntrack_max cannot be written, and kube-proxy ends when it fails to.
KUBE_PROXY = """#!/bin/sh
for a in "$@"; do
  case $a in --config=*) sed 's/^\\( *maxPerCore:\\).*/\\1 0/; s/^\\( *min:\\).*/\\1 0/' "${a#*=}" >/tmp/config.conf ;; esac
done
for a in "$@"; do
  shift
  case $a in --config=*) a=--config=/tmp/config.conf ;; esac
  set -- "$@" "$a"
done
exec /usr/local/libexec/kube-proxy "$@"
"""

# Flannel's CNI plugin that can be built from Go modules speaks CNI 0.4.0 at most,
# while Flannel's configuration says 1.0.0.
INSTALL_CONF = """#!/bin/sh
# install-conf SOURCE TARGET: writes the file in one step, as the original does
new=$(dirname "$2")/.lab-install-conf
sed 's/"cniVersion": *"1[.0-9]*"/"cniVersion": "0.3.1"/' "$1" >"$new" && mv "$new" "$2"
"""

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Layer:
    """A layer, compressed with zstd: six hosts unpack the same layer at once on
    two cores, and gzip would cost them four times as long."""

    made = 0

    def __init__(self, out, fill):
        Layer.made += 1
        self.path = os.path.join(out, f"layer-{Layer.made}.tar")
        with tarfile.open(self.path, "w", format=tarfile.GNU_FORMAT) as tar:
            self.tar = tar
            self.known = set()
            fill(self)
        self.diff = sha256(self.path)
        subprocess.run(["zstd", "-q", "-3", "-T0", "--rm", self.path], check=True)
        self.path += ".zst"
        self.size = os.path.getsize(self.path)
        self.digest = sha256(self.path)

    def _add(self, info, data=None):
        info.name = info.name.lstrip("/")
        parent = os.path.dirname(info.name)
        if parent:
            self.directory(parent)
        self.tar.addfile(info, data)

    def directory(self, path, mode=0o755):
        path = path.lstrip("/")
        if path in self.known:
            return
        self.known.add(path)
        info = tarfile.TarInfo(path)
        info.type, info.mode = tarfile.DIRTYPE, mode
        self._add(info)

    def file(self, source, path):
        info = tarfile.TarInfo(path)
        info.size, info.mode = os.path.getsize(source), 0o755
        with open(source, "rb") as f:
            self._add(info, f)

    def text(self, path, text, mode=0o644):
        data = text.encode()
        info = tarfile.TarInfo(path)
        info.size, info.mode = len(data), mode
        self._add(info, io.BytesIO(data))

    def link(self, path, target):
        info = tarfile.TarInfo(path)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._add(info)

    def tree(self, root):
        def keep(info):
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            return info

        for name in sorted(os.listdir(root)):
            self.known.add(name)
            self.tar.add(os.path.join(root, name), name, filter=keep)


class Images:
    def __init__(self, binaries, root, out):
        self.binaries, self.root, self.out = binaries, root, out
        os.makedirs(out, exist_ok=True)
        self.common = self.layer(self.fill_common)
        self.net = self.layer(lambda layer: layer.tree(root))

    def layer(self, fill):
        return Layer(self.out, fill)

    def binary(self, name, *paths):
        """A layer with one binary, under one or more paths."""

        def fill(layer):
            layer.file(os.path.join(self.binaries, name), paths[0])
            for path in paths[1:]:
                layer.link(path, paths[0])

        return self.layer(fill)

    @staticmethod
    def fill_common(layer):
        layer.directory("tmp", 0o1777)
        layer.text("etc/passwd", "root:x:0:0:root:/root:/sbin/nologin\n")
        layer.text("etc/group", "root:x:0:\n")
        layer.text("etc/nsswitch.conf", "hosts: files dns\n")

    def image(self, layers, entrypoint, *names, cmd=None):
        layout = os.path.join(self.out, names[0].replace("/", "_").replace(":", "_"))
        blobs = os.path.join(layout, "blobs", "sha256")
        os.makedirs(blobs, exist_ok=True)

        def blob(value):
            data = json.dumps(value).encode()
            digest = hashlib.sha256(data).hexdigest()
            with open(os.path.join(blobs, digest), "wb") as f:
                f.write(data)
            return {"digest": f"sha256:{digest}", "size": len(data)}

        for layer in layers:
            target = os.path.join(blobs, layer.digest)
            if not os.path.exists(target):
                os.link(layer.path, target)
        config = {"Entrypoint": entrypoint, "Env": [PATH]}
        if cmd:
            config["Cmd"] = cmd
        config = blob({
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.diff}" for layer in layers]},
        })
        oci = "application/vnd.oci.image"
        manifest = blob({
            "schemaVersion": 2,
            "mediaType": f"{oci}.manifest.v1+json",
            "config": {"mediaType": f"{oci}.config.v1+json", **config},
            "layers": [
                {"mediaType": f"{oci}.layer.v1.tar+zstd", "digest": f"sha256:{layer.digest}", "size": layer.size}
                for layer in layers
            ],
        })
        manifest["mediaType"] = f"{oci}.manifest.v1+json"
        with open(os.path.join(layout, "index.json"), "w", encoding="utf-8") as f:
            json.dump({"schemaVersion": 2, "manifests": [manifest]}, f)
        with open(os.path.join(layout, "oci-layout"), "w", encoding="utf-8") as f:
            f.write('{"imageLayoutVersion":"1.0.0"}')
        for name in names:
            print(layout, name, flush=True)

    def kubernetes(self, version):
        tags = TAGS[version]
        # All of Kubernetes in one file, as the lab's own build has it, is one layer that
        # the images share; the binaries as upstream publishes them are a layer each.
        multicall = f"kubernetes-{version[1:]}"
        shared = None
        if os.path.exists(os.path.join(self.binaries, multicall)):
            paths = ["/usr/local/bin/kubernetes", *(f"/usr/local/bin/{c}" for c in COMPONENTS)]
            shared = self.binary(multicall, *paths, "/usr/local/bin/kubectl", "/usr/local/libexec/kube-proxy")
        for component in COMPONENTS:
            path = f"/usr/local/bin/{component}"
            layer = shared or self.binary(f"{component}-{version[1:]}", path)
            self.image([self.common, layer], [path], f"{component}:{version}")
        core = shared or self.binary(f"kube-proxy-{version[1:]}", "/usr/local/libexec/kube-proxy")
        proxy = self.layer(lambda layer: layer.text("usr/local/bin/kube-proxy", KUBE_PROXY, 0o755))
        self.image([self.net, self.common, core, proxy], ["/usr/local/bin/kube-proxy"], f"kube-proxy:{version}")

        series, tag = tags["etcd"]

        def etcd(layer):
            for name in ("etcd", "etcdctl", "etcdutl"):
                source = os.path.join(self.binaries, f"{name}-{series}")
                if os.path.exists(source):
                    layer.file(source, f"/usr/local/bin/{name}")

        self.image([self.common, self.layer(etcd)], ["/usr/local/bin/etcd"], f"etcd:{tag}")
        self.image([self.common, self.binary("coredns", "/coredns")], ["/coredns"], f"coredns/coredns:{tags['coredns']}")
        self.image([self.binary("pause", "/pause")], ["/pause"], f"pause:{tags['pause']}")

    def others(self):
        def flannel(layer):
            layer.file(os.path.join(self.binaries, "flanneld"), "/opt/bin/flanneld")
            layer.text("/opt/bin/install-conf", INSTALL_CONF, 0o755)

        self.image([self.net, self.common, self.layer(flannel)], ["/opt/bin/flanneld"],
                   f"flannel-io/flannel:{FLANNEL}", f"flannel:{FLANNEL}")
        self.image([self.net, self.common, self.binary("flannel-cni", "/flannel")], ["/bin/sh"],
                   f"flannel-io/flannel-cni-plugin:{FLANNEL_CNI}", f"flannel-cni-plugin:{FLANNEL_CNI}")
        self.image([self.net, self.common], None, "library/busybox:1.37", "busybox:1.37", cmd=["sh"])
        page = self.layer(lambda layer: layer.text("www/index.html", "k8sup lab\n"))
        self.image([self.net, self.common, page], ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/www"],
                   "library/web:1", "web:1")


def main():
    binaries, root, out, *versions = sys.argv[1:]
    images = Images(binaries, root, out)
    for version in versions:
        images.kubernetes(version)
    images.others()


main()
