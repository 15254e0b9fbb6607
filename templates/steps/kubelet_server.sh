# Leads the kubelet to another server. SERVER: its URL.
# The file may hold a key: it is never shown, nor kept.
conf=/etc/kubernetes/kubelet.conf
grep -qE '^[[:space:]]+server:' "$conf" || die "$conf names no server"
_scratch="$_scratch $conf.k8sup"
(umask 077 && sed "s#^\([[:space:]]*server:\).*#\1 $SERVER#" "$conf" >"$conf.k8sup")
chmod --reference="$conf" "$conf.k8sup"
sync "$conf.k8sup"
mv -T "$conf.k8sup" "$conf"
systemctl restart kubelet
wait_until 60 "the kubelet" systemctl -q is-active kubelet || die "the kubelet does not start (journalctl -u kubelet)"
