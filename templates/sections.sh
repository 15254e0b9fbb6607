# shellcheck shell=sh
# How probe.sh and cluster.sh print what they see; it stands in front of each.
# NONCE marks the lines that belong to the script and not to a file's content.
#
# A section is
#   @@NONCE begin NAME
#   …
#   @@NONCE end NAME STATUS REASON
# STATUS is 0 for present, 44 for absent, anything else for unknown. The newline before the end
# mark is the mark's own. The last line is `@@NONCE done`; without it the text was cut short.

set -u
LC_ALL=C
export LC_ALL
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# shellcheck disable=SC2034 # for the script behind this one
absent=44

# section NAME COMMAND [ARGUMENT…]: the command's output as a section.
section() {
  section_name=$1
  shift
  printf '@@%s begin %s\n' "$NONCE" "$section_name"
  { reason=$("$@" 2>&1 >&3 3>&-); } 3>&1
  section_status=$?
  if [ "$section_status" -eq 0 ] || [ -z "$reason" ]; then
    reason=
  else
    reason=$(printf '%s' "$reason" | tail -n 3 | tr '\n\r\t' '   ')
  fi
  printf '\n@@%s end %s %s %s\n' "$NONCE" "$section_name" "$section_status" "$reason"
}
