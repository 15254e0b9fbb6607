# The host's name becomes its Node's name. NAME.
note hostname "$(cat /proc/sys/kernel/hostname)"
hostnamectl set-hostname "$NAME"
