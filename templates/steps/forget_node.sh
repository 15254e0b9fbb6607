# Takes what is left of a host out of the cluster, before it joins again.
# NODE: its name. ADDRESS: its address.
leave_etcd "$NODE" "$ADDRESS"
kube delete node "$NODE" --ignore-not-found --timeout=60s
