#!/bin/sh
# Runs on the host for every command: reads one frame from standard input and runs the script in it.
#
#   sh -c '<this file on one line>' k8sup NONCE
#
# It announces itself with the ready line on both streams, so that the client can tell what login
# files and sudo print from what the script prints. The frame is a line with the number N, then N
# bytes of shell text that end in "#end NONCE"; a frame cut short is not run. The script runs in a
# session of its own with nothing on its standard input. As long as it runs, standard input
# stays open at the client's end; when that end is gone, the script's process group is ended.
#
# This file is sent on one line inside single quotes, through any login shell: comments stand on
# lines of their own, statements end in ";", and there is no single quote, no exclamation mark
# (csh takes it for history even between quotes) and no backslash before a backslash.
LC_ALL=C;
PATH="${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin";
HOME="${HOME:-/}";
# What kubectl remembers of the API is of no use to the user whose home this is.
KUBECACHEDIR=/run/k8sup/kubectl;
export LC_ALL PATH HOME KUBECACHEDIR;
printf "k8sup-ready-%s\n" "$1";
printf "k8sup-ready-%s\n" "$1" >&2;
# Background commands lose standard input, so it moves to descriptor 3.
exec 3<&0 </dev/null;
read -r n <&3 || exit 255;
# The exclamation mark, for the parameter that holds the process id of the last background command.
b=$(printf "\041");
p="";
w="";
f=$(head -c "$n" <&3);
case $f in *"#end $1") ;; *) exit 255 ;; esac;
# printf is part of the shell, so the frame shows in no argument list.
printf "%s\n" "$f" | setsid sh -c "eval \"\$(cat)\"" k8sup 3<&- &
eval "p=\$$b";
unset f n;
# The watcher holds none of the output, so it cannot keep the connection's channel open.
{
while read -r n <&3; do :; done;
trap "" TERM;
exec 3<&-;
kill -TERM -"$p" || kill -TERM "$p";
i=0;
while [ "$i" -lt 50 ] && kill -0 -"$p"; do sleep 0.1; i=$((i + 1)); done;
kill -KILL -"$p";
} >/dev/null 2>&1 &
eval "w=\$$b";
exec 3<&-;
wait "$p" 2>/dev/null;
s=$?;
# A watcher that is ending the group is let finish.
kill "$w" 2>/dev/null;
wait "$w" 2>/dev/null;
exit "$s";
