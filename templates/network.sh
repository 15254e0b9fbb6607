# What Flannel, kube-proxy and the CNI made in the kernel: links, network namespaces, rules. Never a flush.

# clear_network LINKS OURS: OURS are the beginnings of the chains' names, as `KUBE|CNI|FLANNEL`.
clear_network() {
  ours="($2)-"
  clear_services
  lines "$1" gone
  case $2 in *CNI*)
    for space in /var/run/netns/cni-*; do if [ -e "$space" ]; then ip netns delete "${space##*/}" || true; fi; done
    ;;
  esac
  clear_rules
}
gone() { if [ -e "/sys/class/net/$1" ]; then ip link delete "$1" && say "removed link $1"; fi; }
# Services of kube-proxy in IPVS mode: only those on its own link.
clear_services() {
  if [ -e /sys/class/net/kube-ipvs0 ] && command -v ipvsadm >/dev/null; then
    ip -o -4 addr show dev kube-ipvs0 | awk '{ sub("/.*", "", $4); print $4 }' | while IFS= read -r address; do
      ipvsadm -Sn | awk -v a="$address:" '$1 == "-A" && index($3, a) == 1 { print $2, $3 }' | while read -r kind service; do
        ipvsadm -D "$kind" "$service"
      done
    done
  fi
}

# Only chains of kube-proxy, the kubelet, the CNI and Flannel, and the rules that lead to them,
# each table in one transaction.
clean_rules() { # SAVE RESTORE
  command -v "$1" >/dev/null || return 0
  "$1" 2>/dev/null | awk -v ours="$ours" '
    /^\*/ { table = $0; cut = ""; chains = ""; next }
    $0 ~ "^:" ours { sub("^:", "", $1); chains = chains "-F " $1 "\n"; drop = drop "-X " $1 "\n"; next }
    $0 ~ "^-A " ours { next }
    /^-A/ && $0 ~ "-[jg] " ours { sub("^-A", "-D"); cut = cut $0 "\n"; next }
    /^COMMIT/ { if (cut chains != "") printf "%s\n%s%s%sCOMMIT\n", table, cut, chains, drop; drop = "" }
  ' >/run/k8sup/rules
  if [ -s /run/k8sup/rules ]; then
    "$2" --noflush </run/k8sup/rules && say "removed rules of Kubernetes ($1)"
  fi
  rm -f /run/k8sup/rules
}
clear_rules() {
  clean_rules iptables-save iptables-restore
  clean_rules ip6tables-save ip6tables-restore
  if iptables-save --version 2>/dev/null | grep -q nf_tables; then
    clean_rules iptables-legacy-save iptables-legacy-restore
    clean_rules ip6tables-legacy-save ip6tables-legacy-restore
  fi
  if command -v nft >/dev/null; then
    nft list tables 2>/dev/null | awk '$3 == "kube-proxy" || $3 ~ "^flannel-ipv[46]$" { print $2, $3 }' | while read -r family name; do
      nft delete table "$family" "$name" && say "removed nft table $family $name"
    done
  fi
}
