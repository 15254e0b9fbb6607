# What labs share: base trees, package mirrors and images, each made once and named
# after a hash of its recipe. Nothing in an entry is changed after it was made.
#
#   CACHE/KIND-HASH        an entry; its modification time says when it was last wanted
#   CACHE/making/          entries in the making
#   CACHE/labs/NETNS       the state folder of each lab that is up
#   DIR/uses               one line for each entry that the lab in DIR uses: KIND PATH
# shellcheck shell=bash disable=SC2154 # dir, netns and cache are set in lab

# Held while entries are looked up, made and dropped. What a process that was
# killed left half made is removed by the next one.
lock_cache() {
  mkdir -p "$cache/labs"
  take 8 "$cache/lock" "$cache"
  unmount_below "$cache/making"
  rm -rf --one-file-system "$cache/making"
  mkdir -p "$cache/making"
}
unlock_cache() { exec 8>&-; }

# The state folders of all labs that are up, other than this one.
labs() {
  local f at
  for f in "$cache"/labs/*; do
    [ -r "$f" ] || continue
    at=$(cat "$f")
    if [ ! -d "$at" ]; then rm -f "$f"; elif [ "$at" != "$dir" ]; then echo "$at"; fi
  done
}

register() {
  local owner
  mkdir -p "$cache/labs"
  owner=$(cat "$cache/labs/$netns" 2>/dev/null || true)
  if [ -n "$owner" ] && [ "$owner" != "$dir" ] && [ -d "$owner" ]; then
    die "the namespace $netns belongs to the lab in $owner: choose another with K8SUP_LAB_NETNS"
  fi
  echo "$dir" >"$cache/labs/$netns"
}
unregister() { rm -f "$cache/labs/$netns" "$dir/uses"; }

# recipe WORD…: a hash of all that decides what an entry is. Words that name a
# function stand for its text, those that name a file for its contents.
recipe() {
  local word
  for word in "$@"; do
    if declare -F "$word" >/dev/null; then declare -f "$word"; elif [ -f "$word" ]; then sha256sum <"$word"; else echo "$word"; fi
  done | sha256sum | cut -c1-12
}

# entry KIND HASH: where the entry is or will be; from now on this lab uses it.
entry() {
  local at=$cache/$1-$2
  sed -i "\\#^$1 #d" "$dir/uses" 2>/dev/null || true
  echo "$1 $at" >>"$dir/uses"
  [ ! -d "$at" ] || touch "$at"
  echo "$at"
}
used() { awk -v k="$1" '$1 == k { print $2 }' "$dir/uses" 2>/dev/null; } # used KIND

# make_entry PATH FUNCTION ARGUMENT…: FUNCTION TREE ARGUMENT… fills the empty
# folder TREE, which then becomes the entry. Nothing to do when it is there. Never
# to be called in a condition: there bash would go on after what fails in FUNCTION.
make_entry() {
  local at=$1 tree function=$2
  shift 2
  [ ! -d "$at" ] || return 0
  tree=$cache/making/$(basename "$at")
  mkdir -p "$tree"
  "$function" "$tree" "$@"
  touch "$tree"
  mv "$tree" "$at"
}

# Drops the entries that no lab uses. Of each kind the one used last stays, so
# that going to and fro between two states of the project costs nothing.
prune_cache() {
  local kept kind at
  kept=$(
    cat "$dir/uses" "$dir"/hosts/*/base 2>/dev/null
    labs | while read -r at; do cat "$at/uses" "$at"/hosts/*/base 2>/dev/null; done
  ) || true
  for kind in $(entries | sed -E 's/-[0-9a-f]{12}$//' | sort -u); do
    # shellcheck disable=SC2012 # the names are our own
    ls -dt "$cache/$kind"-???????????? | while read -r at; do
      if ! grep -qwF -- "$at" <<<"$kept"; then echo "$at"; fi
    done | tail -n +2
  done | while read -r at; do
    say "dropping $(basename "$at"), which no lab uses"
    rm -rf --one-file-system "$at"
  done
}
entries() { find "$cache" -mindepth 1 -maxdepth 1 -type d -regex '.*-[0-9a-f]+' -printf '%f\n' 2>/dev/null; }

purge_cache() {
  local others
  [ -d "$cache" ] || return 0
  others=$(labs)
  [ -z "$others" ] || die "the cache in $cache is in use by: $(paste -sd' ' <<<"$others")"
  unmount_below "$cache/making"
  rm -rf --one-file-system "$cache"
}
