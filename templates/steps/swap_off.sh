# Turns swap off and keeps it off after a reboot: the sources are disabled, not only the areas.
# FSTAB: new content of /etc/fstab, empty to leave it. UNITS, MAKERS: units to mask and disable, one a line.
# ZRAM: configuration that silences systemd's zram generator, or empty. RPI: drop-in for rpi-swap, or empty. ACTIVE: 1 when swap is on now.
if [ -n "$FSTAB" ]; then put /etc/fstab - "$FSTAB"; fi
mask() {
  note swap-masked "$1"
  systemctl -q mask --now "$1" || systemctl -q mask "$1"
  say "masked $1"
}
disable() {
  note swap-disabled "$1"
  systemctl -q disable --now "$1" || systemctl -q disable "$1"
  say "disabled $1"
}
lines "$UNITS" mask
lines "$MAKERS" disable
# An empty file in /etc hides the distribution's configuration.
if [ -n "$ZRAM" ]; then put /etc/systemd/zram-generator.conf 644 "$ZRAM"; fi
if [ -n "$RPI" ]; then put /etc/rpi/swap.conf.d/99-k8sup.conf 644 "$RPI"; fi
systemctl daemon-reload
if [ "$ACTIVE" = 1 ]; then
  # What is on now comes back at reset, where its source does.
  awk 'NR > 1 { print $1 }' /proc/swaps | while IFS= read -r area; do
    note swap-active "$area"
    swapoff "$area" || die "swapoff $area failed: is there too little memory to take back what is swapped out? (free -m)"
  done
fi
