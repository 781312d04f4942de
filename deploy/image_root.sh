#!/usr/bin/env bash
# deploy/image_root.sh FOLDER: makes FOLDER, which holds the programs in usr/local/bin, the root of
# a container: their shared libraries, a user, and the folders that are mounted over.
#
# What an image does not hold needs no update and helps nobody who gets in. Everything is copied from
# the system that this runs on, the one that the programs were built on.
set -euo pipefail

root=${1:?the folder that becomes the root of the container}
# Loaded while running, so that no program names it.
loaded=(libopenblas.so.0)

mkdir -p "$root"/{etc,models,proc,sys,dev,tmp,usr/lib,usr/lib64,var/cache/reprise}
ln -sfn usr/lib "$root/lib"
ln -sfn usr/lib64 "$root/lib64"
# Whoever the container runs as may write there; both are there to be mounted.
chmod 1777 "$root/tmp" "$root/var/cache/reprise"

# libraries_of FILE: the paths of all shared libraries that it needs, the loader included.
libraries_of() {
  ldd "$1" | awk '/not found/ { exit 1 } $2 == "=>" { print $3 } $1 ~ /^\// { print $1 }'
}

{
  for program in "$root"/usr/local/bin/*; do
    libraries_of "$program"
  done
  for name in "${loaded[@]}"; do
    path=$(ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')
    [ -n "$path" ] || { echo "image_root.sh: there is no $name" >&2; exit 1; }
    echo "$path"
    libraries_of "$path"
  done
} | sed 's#^/lib#/usr/lib#; s#^/usr/usr/#/usr/#' | sort -u | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp --dereference "$library" "$root$library"
done

printf 'root:x:0:0:root:/:/sbin/nologin\nreprise:x:10001:10001:Reprise:/:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nreprise:x:10001:\n' >"$root/etc/group"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
# Engines put their own over it; where one does not, the health check still finds localhost.
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
install -D --mode 644 "$(dirname "$0")/LICENSE" "$root/usr/share/doc/reprise/LICENSE"
