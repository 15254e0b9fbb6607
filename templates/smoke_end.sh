#!/bin/sh
# Takes away what smoke.sh has made. SPACE: its namespace.
set -eu
kubectl --kubeconfig /etc/kubernetes/admin.conf delete namespace "$SPACE" --ignore-not-found --timeout=90s
