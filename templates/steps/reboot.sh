# Reboots the host, unless somebody has done so since it was looked at. k8sup waits for the new boot id.
# BOOT_ID: of the boot that was looked at.
if [ "$(cat /proc/sys/kernel/random/boot_id)" != "$BOOT_ID" ]; then
  say "it was rebooted since it was looked at"
  exit 0
fi
sync
say "rebooting"
# It returns when the reboot has begun.
systemctl reboot
