#!/bin/sh
# Starts kotad in a root as its systemd unit says, without systemd, and asks it. Called by
# fresh-machine.sh, in a network of its own.
#
#   sh tests/fresh-unit.sh ROOT
#
# ExecStart is read from the unit that the package installed. The rest of what systemd would do is
# done by hand: a user that nobody else is (DynamicUser), the state directory, Type=notify's socket.

set -eu

root=${1:?usage: fresh-unit.sh ROOT}
unit=$(ls "$root"/lib/systemd/system/kotad.service "$root"/usr/lib/systemd/system/kotad.service \
    2>/dev/null | head -n 1)
[ -n "$unit" ] || { echo "no kotad.service was installed" >&2; exit 1; }
uid=61184 # the first of those that DynamicUser gives
command=$(sed -n 's/^ExecStart=[-@:+!]*//p' "$unit" | sed 's|%S|/var/lib|g; s|%t|/run|g')
case $command in
/usr/bin/kotad*) ;;
*) echo "ExecStart is: $command" >&2; exit 1 ;;
esac

for folder in $(sed -n 's/^StateDirectory=//p' "$unit"); do
    install -d -o "$uid" -g "$uid" -m 700 "$root/var/lib/$folder"
    state=/var/lib/$folder
done
for folder in $(sed -n 's/^RuntimeDirectory=//p' "$unit"); do
    install -d -o "$uid" -g "$uid" "$root/run/$folder"
done
environment=$(sed -n 's/^Environment=//p' "$unit")

echo "\$ $command"
# shellcheck disable=SC2086 # words of the unit
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin ${state:+STATE_DIRECTORY="$state"} $environment chroot "$root" setpriv \
    --reuid="$uid" --regid="$uid" --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all $command >"$root/tmp/unit.log" 2>&1 &
pid=$!
trap 'kill -TERM "$pid" 2>/dev/null || true' EXIT
tries=0
until [ "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:7420/readyz)" = 200 ]; do
    tries=$((tries + 1))
    if ! kill -0 "$pid" 2>/dev/null || [ "$tries" -gt 300 ]; then
        cat "$root/tmp/unit.log"
        exit 1
    fi
    sleep 0.2
done
curl -sf http://127.0.0.1:7420/readyz
echo
chroot "$root" kota ls >/dev/null
kill -TERM "$pid"
trap - EXIT
wait "$pid" || { echo "kotad ended with $?" >&2; cat "$root/tmp/unit.log"; exit 1; }
echo "   started as its unit says, asked, drained, ended with 0"
