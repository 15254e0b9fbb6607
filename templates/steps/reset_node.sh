# kubeadm reset and everything that it leaves: pods, mounts, links, rules, kubeconfigs. Never a flush,
# never a restart of the network: the way in must survive.
# ETCD_DATA_DIR: kubeadm's etcd data, empty when there is none of kubeadm's. CNI_FILES, LINKS, HOMES: one a line.
# KEEP: files of somebody else's etcd, one a line. KEEP_MEMBER: 1 when the member list is nobody's business any more.
ca=/etc/kubernetes/pki/ca.crt

# kubeconfigs of this cluster, while its CA is still here to compare with.
own_kubeconfig() {
  _file=$1/.kube/config
  # One that k8sup wrote is put back with the other files; one made by hand goes here, unless it knows others, too.
  if [ ! -s "$_file" ] || [ ! -s "$ca" ] || [ -e "$record/files/$(flat "$_file").ours" ]; then return 0; fi
  if ! grep -qF "$(base64 -w 0 "$ca")" "$_file"; then return 0; fi
  if [ "$(grep -cE '^[[:space:]]*(- )?server:' "$_file")" -gt 1 ]; then
    say "kept $_file: it has other clusters than this one"
  else
    rm -f "$_file"
    say "removed $_file"
  fi
}
lines "$HOMES" own_kubeconfig

# In a whole cluster's end each controller takes itself out of etcd; the last one cannot.
if [ -n "$ETCD_DATA_DIR" ] && [ "$KEEP_MEMBER" = 0 ]; then
  list=$(in_etcd member list 2>/dev/null) || list=''
  if [ "$(printf '%s\n' "$list" | grep -c .)" -gt 1 ]; then
    self=$(sed -n 's/^ *- --name=//p' /etc/kubernetes/manifests/etcd.yaml | head -n 1)
    member=$(printf '%s\n' "$list" | awk -F', ' -v name="$self" '$3 == name { print $1 }')
    if [ -n "$member" ]; then in_etcd member remove "$member" || say "etcd did not let go of $self; its data goes all the same"; fi
  fi
fi

lines "$KEEP" keep
if [ -n "$ETCD_DATA_DIR" ]; then
  clear_etcd "$ETCD_DATA_DIR"
  rmdir "$ETCD_DATA_DIR" 2>/dev/null || true
fi
if command -v kubeadm >/dev/null && systemctl -q is-active containerd; then
  undo_kubeadm
else
  systemctl -q stop kubelet 2>/dev/null || true
fi
systemctl -q stop kubelet 2>/dev/null || true
systemctl -q reset-failed kubelet 2>/dev/null || true
# The pods are gone, their empty control groups would stay until the next boot.
systemctl -q stop kubepods.slice 2>/dev/null || true

# What is still mounted must not be deleted through its mount point.
mounted=$(awk '$2 ~ "^/var/lib/kubelet/" { print $2 }' /proc/mounts | sort -r)
lines "$mounted" umount -l
if grep -q ' /var/lib/kubelet/' /proc/mounts; then die "still mounted: $(awk '$2 ~ "^/var/lib/kubelet/" { print $2 }' /proc/mounts | head -n 3)"; fi

# What kubeadm made; other files beside them (an audit policy, say) are somebody's own.
rm -rf /etc/kubernetes/tmp /etc/kubernetes/pki
for name in admin super-admin kubelet bootstrap-kubelet controller-manager scheduler; do rm -f "/etc/kubernetes/$name.conf"; done
rm -f /etc/kubernetes/manifests/*.yaml
rm -rf /var/lib/kubelet/pki /var/lib/kubelet/pods /var/lib/kubelet/plugins /var/lib/kubelet/plugins_registry \
  /var/lib/kubelet/device-plugins /var/lib/kubelet/checkpoints /var/lib/kubelet/pod-resources
rm -f /var/lib/kubelet/*.yaml /var/lib/kubelet/*_state /var/lib/kubelet/kubeadm-flags.env

lines "$CNI_FILES" rm -f
rm -rf /var/lib/cni /run/flannel /var/log/pods /var/log/containers
# Flannel's init container brings its plugin along; those of a package stay with their package.
plugin=/opt/cni/bin/flannel
if [ -e "$plugin" ] && ! dpkg-query -S "$plugin" >/dev/null 2>&1; then rm -f "$plugin"; fi
clear_network "$LINKS" 'KUBE|CNI|FLANNEL'
kept_back
