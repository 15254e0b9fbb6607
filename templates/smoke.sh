#!/bin/sh
# shellcheck disable=SC2317,SC2016 # `check` calls the functions; the variables of pods and of perl
# A smoke test of a live cluster, in a namespace of its own; src/execute/smoke.rs reads what it prints:
# `begin CHECK`, `said LINE` for each line of evidence, then `passed|skipped|failed CHECK`. smoke_end.sh cleans up.
# SPACE: the namespace. IMAGE: has sh, httpd, wget, nslookup and sleep. DOMAIN: the cluster's. OUTSIDE: a name outside of it.
# LIMIT: seconds in which pods must have started.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A signal alone does not run what stands above.
trap 'exit 143' TERM HUP INT
kube() { kubectl --kubeconfig /etc/kubernetes/admin.conf -n "$SPACE" "$@"; }
missed=75 # nothing can be said

check() { # NAME FUNCTION
  echo "begin $1"
  if "$2" >"$work/said" 2>&1; then
    state=passed
  elif [ $? = "$missed" ]; then
    state=skipped
  else
    state=failed
  fi
  tail -n 20 "$work/said" | cut -c1-300 | sed 's/^/said /'
  echo "$state $1"
  [ "$state" != failed ]
}

# Old ones are of runs that were killed.
clear_old() {
  oldest=$(($(date +%s) - 1800))
  kube get namespaces -l k8sup.dev/smoke-test -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.creationTimestamp}{"\n"}{end}' |
    while read -r name made; do
      if [ "$(date -d "$made" +%s)" -lt "$oldest" ]; then kube delete namespace "$name" --wait=false; fi
    done
}

pod_template() { # NAME
  cat <<EOF
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      tolerations: [{operator: Exists}]
      securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}}
      volumes: [{name: www, emptyDir: {}}]
      containers:
      - name: probe
        image: '$IMAGE'
        imagePullPolicy: IfNotPresent
        command: [sh, -c, 'echo "\$NODE" >/www/index.html; echo "here is \$NODE"; exec httpd -f -p 8080 -h /www']
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 10m, memory: 16Mi}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: www, mountPath: /www}]
EOF
}

pods_start() {
  clear_old
  {
    cat <<EOF
apiVersion: v1
kind: Namespace
metadata: {name: $SPACE, labels: {k8sup.dev/smoke-test: 'true'}}
---
apiVersion: v1
kind: Service
metadata: {name: probe, namespace: $SPACE}
spec: {selector: {app: probe}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: probe, namespace: $SPACE}
spec:
  selector: {matchLabels: {app: probe}}
  template:
EOF
    pod_template probe
    cat <<EOF
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: moved, namespace: $SPACE}
spec:
  replicas: 1
  selector: {matchLabels: {app: moved}}
  template:
EOF
    pod_template moved
  } | kube apply -f - || return 1
  for what in ds/probe deploy/moved; do
    kube rollout status "$what" --timeout="${LIMIT}s" && continue
    kube get pods -o wide
    kube get events --field-selector type=Warning -o 'jsonpath={range .items[*]}{.message}{"\n"}{end}' | sort -u | tail -n 8 >"$work/events"
    cat "$work/events"
    if grep -q 'pull image' "$work/events"; then echo "$IMAGE cannot be pulled: --image names another one"; fi
    return 1
  done
}

# One a line: node, pod, address.
list_pods() {
  kube get pods -l app=probe -o 'jsonpath={range .items[*]}{.spec.nodeName} {.metadata.name} {.status.podIP}{"\n"}{end}'
}

# every SCRIPT: runs it in the pod of each node, side by side; what it prints is what is wrong.
every() {
  {
    while read -r node pod _; do
      kube exec "$pod" -- sh -c "$1" >"$work/on-$node" 2>&1 </dev/null || echo "it ended with $?" >>"$work/on-$node" &
    done <"$work/pods"
    wait
  }
  wrong=0
  while read -r node _; do
    if [ -s "$work/on-$node" ]; then sed "s/^/from $node: /" "$work/on-$node"; wrong=1; fi
  done <"$work/pods"
  return "$wrong"
}

# In a pod: a rule of kube-proxy or an endpoint may follow the pod's readiness by a moment.
ASK='ask() { for _ in 1 2 3 4 5 6; do wget -q -T 4 -O - "http://$1/" && return; sleep 1; done 2>/dev/null; return 1; }
find() { for _ in 1 2 3; do nslookup -type=a "$1" >/dev/null 2>&1 && return; sleep 1; done; return 1; }'

exec_works() { every '[ -n "$NODE" ] || echo "the pod has no environment"'; }

pods_reach_pods() {
  targets=$(awk '{ printf "%s=%s ", $1, $3 }' "$work/pods")
  every "$ASK
    for target in $targets; do
      node=\${target%%=*} address=\${target#*=}
      [ \"\$(ask \"\$address:8080\")\" = \"\$node\" ] || echo \"no answer from the pod on \$node (\$address)\"
    done"
}

service_by_address() {
  address=$(kube get service probe -o 'jsonpath={.spec.clusterIP}') && [ -n "$address" ] || return 1
  every "$ASK
    ask $address >/dev/null || echo 'no answer from the service at $address: see kube-proxy on this node'"
}

with_names() { [ "$names" = 1 ] || { echo "no name is resolved, see above"; return "$missed"; }; }

service_by_name() {
  with_names || return
  every "$ASK
    for name in probe probe.$SPACE.svc.$DOMAIN; do ask \$name >/dev/null || echo \"no answer from the service by the name \$name\"; done"
}

names_inside() {
  every "$ASK
    find kubernetes.default.svc.$DOMAIN. || echo 'kubernetes.default.svc.$DOMAIN is not resolved'" || {
    for what in deployments pods; do
      kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get "$what" -l k8s-app=kube-dns -o wide
    done
    return 1
  }
}

names_outside() {
  with_names || return
  if [ -z "$OUTSIDE" ] || ! getent hosts "$OUTSIDE" >/dev/null; then
    echo "${OUTSIDE:-no name} is not resolved by this host either, so nothing can be said of pods"
    return "$missed"
  fi
  every "$ASK
    find $OUTSIDE. || echo '$OUTSIDE is not resolved, though the controller resolves it: see dns.resolvers in the inventory'"
}

logs_come() {
  wrong=0
  while read -r node pod _; do
    kube logs "$pod" | grep -qxF "here is $node" || { echo "no log from the pod on $node: the API server does not reach its kubelet"; wrong=1; }
  done <"$work/pods"
  return "$wrong"
}

port_is_forwarded() {
  read -r node pod _ <"$work/pods" || return 1
  kube port-forward "pod/$pod" :8080 >"$work/forward" 2>&1 &
  forward=$!
  tries=0
  until port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$work/forward") && [ -n "$port" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || ! kill -0 "$forward" 2>/dev/null; then cat "$work/forward"; kill "$forward" 2>/dev/null; return 1; fi
    sleep 0.1
  done
  # Nothing but perl is on every Debian.
  answer=$(timeout 10 perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => shift, Timeout => 5) or die "$!\n";
    print $s "GET / HTTP/1.0\r\n\r\n"; local $/; print <$s>;' "$port" 2>&1)
  kill "$forward" 2>/dev/null
  case $answer in *"$node"*) ;; *) echo "no answer from the pod on $node through port $port: $answer"; return 1 ;; esac
}

moved_pods() { kube get pods -l app=moved -o name; }
pod_comes_back() {
  gone=$(moved_pods | head -n 1)
  [ -n "$gone" ] && kube delete "$gone" --timeout=30s || return 1
  new() { moved_pods | grep -vxF "$gone"; }
  tries=0
  until [ -n "$(new)" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ]; then echo "no pod in the place of $gone"; return 1; fi
    sleep 0.1
  done
  kube wait "$(new | head -n 1)" --for=condition=Ready --timeout="${LIMIT}s"
}

failed=0 names=1
check "a pod starts on every node" pods_start || exit 1
list_pods >"$work/pods"
check "exec" exec_works || failed=1
check "logs" logs_come || failed=1
check "every pod reaches every other" pods_reach_pods || failed=1
check "a service by its address" service_by_address || failed=1
check "names inside the cluster" names_inside || failed=1 names=0
check "a service by its name" service_by_name || failed=1
check "names outside the cluster" names_outside || failed=1
check "port-forward" port_is_forwarded || failed=1
check "a deleted pod comes back" pod_comes_back || failed=1
exit "$failed"
