# kubectl for the user who logs in. LOGIN_USER, LOGIN_HOME.
target=$LOGIN_HOME/.kube/config
group=$(id -g "$LOGIN_USER")
if [ ! -d "$LOGIN_HOME/.kube" ]; then
  note dir "$LOGIN_HOME/.kube"
  install -d -m 750 -o "$LOGIN_USER" -g "$group" "$LOGIN_HOME/.kube"
fi
# The record keeps a copy of another cluster's file, which reset puts back.
put "$target" 600 "$(cat "$admin")
"
chown "$LOGIN_USER:$group" "$target"
