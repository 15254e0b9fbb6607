# The kernel's command line of a Raspberry Pi: one line, in the file that the firmware reads.
# FILE: the file. CONTENT: the line.
there "$FILE" || die "$FILE is gone"
# The firmware's partition may be mounted for reading only.
_mount=$(dirname "$FILE")
if ! touch "$_mount/.k8sup" 2>/dev/null; then die "nothing can be written to $_mount: is it mounted for reading only? (mount -o remount,rw $_mount)"; fi
rm -f "$_mount/.k8sup"
put "$FILE" - "$CONTENT"
