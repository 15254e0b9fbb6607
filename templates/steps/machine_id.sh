# Gives the host an identity of its own, where its image left that to the first boot.
systemd-machine-id-setup
[ -s /etc/machine-id ] || die "systemd-machine-id-setup made no /etc/machine-id"
