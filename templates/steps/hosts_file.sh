# The endpoint's name in /etc/hosts, where nothing else resolves it. HOSTS: new content.
put /etc/hosts - "$HOSTS"
