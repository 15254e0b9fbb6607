# Rules in the firewall that a host has: each is recorded, and only recorded ones are taken back. It is never switched
# off, and nothing else in it is touched.

# forget KIND LINE: it is undone.
forget() {
  grep -qxF -- "$2" "$record/entries/$1" 2>/dev/null || return 0
  grep -vxF -- "$2" "$record/entries/$1" >"$record/forget.new" || true
  if [ -s "$record/forget.new" ]; then mv "$record/forget.new" "$record/entries/$1"; else rm -f "$record/forget.new" "$record/entries/$1"; fi
}

# A rule of ufw is the words that it is told: `allow from …`, `route allow from …`. It comes before a `deny` of others:
# it is about the cluster's own hosts only.
open_ufw() {
  note ufw "$1"
  # shellcheck disable=SC2086 # words
  case $1 in
  'route '*) ufw route prepend ${1#route } comment k8sup ;;
  *) ufw prepend $1 comment k8sup ;;
  esac >/dev/null || die "ufw does not take the rule: $1"
  say "ufw $1"
}
close_ufw() {
  if command -v ufw >/dev/null; then
    # shellcheck disable=SC2086 # words
    case $1 in
    'route '*) ufw route delete ${1#route } ;;
    *) ufw delete $1 ;;
    esac >/dev/null || die "ufw does not let go of the rule: $1"
    say "ufw: deleted $1"
  fi
  forget ufw "$1"
}

# firewalld ZONE ARGUMENT: told now and for the next start.
firewalld() {
  if firewall-cmd -q --state 2>/dev/null; then
    firewall-cmd -q --permanent --zone="$1" "$2" && firewall-cmd -q --zone="$1" "$2"
  else
    firewall-offline-cmd -q --zone="$1" "$2"
  fi
}
# open_firewalld RULE, in the zone $zone; close_firewalld ZONE RULE. A rule is a rich one, or `source CIDR` to trust.
open_firewalld() {
  case $1 in
  'source '*) _zone=trusted _arg=--add-source=${1#source } ;;
  *) _zone=$zone _arg=--add-rich-rule=$1 ;;
  esac
  note firewalld "$_zone $1"
  firewalld "$_zone" "$_arg" || die "firewalld does not take into its zone $_zone: $1"
  say "firewalld, zone $_zone: $1"
}
close_firewalld() {
  _zone=${1%% *} _rule=${1#* }
  case $_rule in
  'source '*) _arg=--remove-source=${_rule#source } ;;
  *) _arg=--remove-rich-rule=$_rule ;;
  esac
  if command -v firewall-cmd >/dev/null; then
    firewalld "$_zone" "$_arg" || die "firewalld does not let go of what is in its zone $_zone: $_rule"
    say "firewalld, zone $_zone: removed $_rule"
  fi
  forget firewalld "$1"
}
