# Kernel modules and settings, now and at every boot.
# MODULES_FILE, SYSCTL_FILE: contents; MODULES_FILE may be empty (load balancers need none). SYSCTL_PATH: the file's name.
load() {
  modprobe "$1" || die "the kernel has no module $1 (with Ubuntu's kernel: apt install linux-modules-extra-$(uname -r))"
}
if [ -n "$MODULES_FILE" ]; then
  put /etc/modules-load.d/k8sup.conf 644 "$MODULES_FILE"
  lines "$(printf '%s\n' "$MODULES_FILE" | grep -v '^#')" load
fi
# The values that reset puts back.
before() {
  _name=$(printf '%s' "$1" | cut -d= -f1 | tr -d ' ')
  grep -q "^$_name=" "$record/entries/sysctl" 2>/dev/null || note sysctl "$_name=$(sysctl -n "$_name" 2>/dev/null || true)"
}
lines "$(printf '%s\n' "$SYSCTL_FILE" | grep '=')" before
put "$SYSCTL_PATH" 644 "$SYSCTL_FILE"
sysctl -q -p "$SYSCTL_PATH"
