# Opens what the cluster needs in the host's firewall, and closes what it does not need any more.
# TOOL: ufw or firewalld. OPEN: rules, one a line; CLOSE: recorded ones. INTERFACE: the one with the cluster's address.
if [ "$TOOL" = firewalld ]; then
  zone=$(firewall-cmd --get-zone-of-interface="$INTERFACE" 2>/dev/null) || zone=$(firewall-cmd --get-default-zone)
fi
lines "$OPEN" "open_$TOOL"
lines "$CLOSE" "close_$TOOL"
