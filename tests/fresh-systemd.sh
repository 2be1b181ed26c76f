#!/bin/sh
# Boots systemd in a root that has the packages, and looks at kotad as an operator does: enabled,
# ready, sandboxed, reloaded, hung, restarted, removed. Called by fresh-machine.sh.
#
#   sh tests/fresh-systemd.sh ROOT
#
# Process 1 is the root's own systemd, in namespaces of its own (processes, mounts, network with
# loopback alone, cgroups), so that no container engine and no virtual machine is needed. ROOT needs
# systemd, curl, kotad, kota, and the packages in /debs. Needs root and a kernel with cgroup v2; where
# namespaces are not to be had the script says so and exits with 77.

set -eu

root=$(cd "${1:?usage: fresh-systemd.sh ROOT}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/kota-systemd.XXXXXX")
cgroups=$work/cgroups
group=$cgroups/kota-test-$$
unshare='' first=''

skip()
{
    echo "fresh-systemd: skipped: $*"
    exit 77
}

fail()
{
    echo "fresh-systemd: $*" >&2
    [ -z "$first" ] || inside journalctl --no-pager -b -u kotad -u kotad.socket 2>/dev/null | tail -n 40 >&2
    exit 1
}

leave()
{
    status=$?
    trap '' INT TERM
    if [ -n "$unshare" ]; then
        kill -KILL "$unshare" 2>/dev/null || true # --kill-child: systemd goes with it
        wait "$unshare" 2>/dev/null || true
    fi
    tries=0
    while [ -d "$group" ] && [ "$tries" -lt 50 ]; do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
        tries=$((tries + 1))
    done
    umount "$cgroups" 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}

# What process 1 finds: its own proc, dev, run, tmp and cgroups; nothing of the machine but ROOT.
cat >"$work/boot" <<'END'
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
    mknod -m 666 "dev/${node%% *}" c ${node#* }
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir run/old
pivot_root . run/old
umount -l run/old
mount --make-rshared / # credentials are mounted in a namespace of their own and seen from others
exec env -i container=kota-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd \
    systemd.unit=multi-user.target
END

# The command runs beside process 1, in all that it has.
inside()
{
    nsenter --target "$first" --all --root="/proc/$first/root" --wd="/proc/$first/root" env -i \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C "$@"
}

boot()
{
    rm -rf "$root"/var/log/journal/* # of a boot before this one
    mkdir "$cgroups"
    mount -t cgroup2 cgroup2 "$cgroups" 2>/dev/null || skip "no cgroup v2 can be mounted"
    mkdir "$group" 2>/dev/null || skip "no cgroup can be made"
    unshare --mount --pid --fork --uts --ipc --cgroup --net true 2>/dev/null ||
        skip "no namespaces can be made"
    sh -c 'echo $$ >"$1/cgroup.procs" && exec unshare --mount --pid --fork --kill-child --uts --ipc \
        --cgroup --net sh -eu "$2" "$3"' sh "$group" "$work/boot" "$root" >"$work/log" 2>&1 &
    unshare=$!
    until_true "systemd boots" process_one
    until_true "systemd is up" is_up
}

process_one()
{
    first=$(pgrep -P "$unshare" | head -n 1)
    [ -n "$first" ] && [ "$(cat "/proc/$first/comm")" = systemd ]
}

is_up()
{
    case $(inside systemctl is-system-running 2>/dev/null) in
    running) true ;;
    degraded) fail "units failed: $(inside systemctl --failed --no-legend --plain)" ;;
    *) false ;;
    esac
}

# until_true WHAT COMMAND…: asks for a minute.
until_true()
{
    what=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ] || ! kill -0 "$unshare" 2>/dev/null; then
            cat "$work/log" >&2
            fail "not within a minute: $what"
        fi
        sleep 0.2
    done
}

of_unit() # of_unit PROPERTY
{
    inside systemctl show --value -p "$1" kotad.service
}

want() # want WHAT EXPECTED GOT
{
    [ "$2" = "$3" ] || fail "$1: $3, not $2"
}

said() # said WORDS: in the journal of the unit
{
    inside journalctl --no-pager -b -o cat -u kotad | grep -qF "$1"
}

ready()
{
    [ "$(inside curl -s -m 5 -o /dev/null -w '%{http_code}' http://127.0.0.1:7420/readyz)" = 200 ]
}

limit_is() # limit_is NAME NUMBER
{
    inside curl -s -m 30 http://127.0.0.1:7420/v1/limits | grep -q "\"$1\":$2[,}]"
}

# ---- what an operator sees ----------------------------------------------------------------------

starts()
{
    want "enabled" "enabled enabled" "$(inside systemctl is-enabled kotad.socket kotad.service | xargs)"
    until_true "kotad is ready after the boot" ready
    want "ActiveState" active "$(of_unit ActiveState)"
    of_unit StatusText | grep -q '^serving' || fail "StatusText: $(of_unit StatusText)"
    inside systemctl is-active -q kotad.socket || fail "the socket is not active"
    echo "   enabled by the package, started at the boot: $(of_unit StatusText)"
}

is_confined()
{
    pid=$(of_unit MainPID)
    status=$(inside cat "/proc/$pid/status" | tr '\t' ' ')
    for line in 'NoNewPrivs: 1' 'Seccomp: 2' 'CapEff: 0000000000000000' \
        'CapBnd: 0000000000000000'; do
        echo "$status" | grep -qxF "$line" || fail "not in /proc/$pid/status: $line"
    done
    case $(inside stat -c %u "/proc/$pid") in
    0) fail "it runs as root" ;;
    esac
    want "the state directory" "700 private/kota" \
        "$(inside stat -L -c %a /var/lib/kota) $(inside readlink /var/lib/kota)"
    rated=$(inside systemd-analyze security --no-pager kotad.service |
        sed -n 's/.*exposure level for kotad.service: \([0-9.]*\).*/\1/p')
    awk -v rated="$rated" 'BEGIN { exit !(rated > 0 && rated < 2.0) }' || fail "rated at $rated"
    echo "   no root, no capability, seccomp; systemd-analyze security rates it at $rated"
}

reloads()
{
    pid=$(of_unit MainPID)
    inside sh -c 'echo "max-items = 4321" >>/etc/kotad.conf'
    inside systemctl reload kotad || fail "systemctl reload failed"
    until_true "the new max-items is in force" limit_is items_max 4321
    inside sh -c 'echo "max-items = many" >>/etc/kotad.conf'
    inside systemctl reload kotad || fail "systemctl reload of a bad file failed"
    until_true "the log tells of the bad file" said 'everything stays as it was'
    limit_is items_max 4321 || fail "a bad file has changed max-items"
    inside sed -i '/^max-items = /d' /etc/kotad.conf
    inside systemctl reload kotad
    until_true "max-items is the default again" limit_is items_max 10000
    want "the process after three reloads" "$pid" "$(of_unit MainPID)"
    echo "   reloaded, its limits are new; a bad file changes nothing; the process is the same"
}

# Nobody is refused while it restarts: the socket is systemd's.
restarts()
{
    inside kota import yard --title Yard >/dev/null || fail "a locale could not be made"
    inside sh -c 'while [ ! -e /tmp/stop ]; do
        curl -sf -m 30 http://127.0.0.1:7420/v1/locales/yard >/dev/null || echo "refused: $?"
        done' >"$work/refused" 2>&1 &
    asking=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        pid=$(of_unit MainPID)
        inside systemctl reset-failed kotad # more than five starts in ten seconds are too many for it
        inside systemctl restart kotad || fail "systemctl restart failed"
        [ "$(of_unit MainPID)" != "$pid" ] || fail "it did not restart"
    done
    inside touch /tmp/stop
    wait "$asking"
    [ ! -s "$work/refused" ] || fail "while it restarted: $(sort "$work/refused" | uniq -c | xargs)"
    inside kota --json ls | grep -q '"id":"yard"' || fail "the locale is gone after a restart"
    echo "   restart, ten times while a client asks: nobody is refused, what was written stays"
}

is_activated()
{
    inside systemctl reset-failed kotad
    inside systemctl stop kotad.service || fail "systemctl stop failed"
    want "Result of the stop" "success 0" "$(of_unit Result) $(of_unit ExecMainStatus)"
    want "after the stop" inactive "$(of_unit ActiveState)"
    inside curl -sf -m 60 http://127.0.0.1:7420/readyz >/dev/null ||
        fail "a connection to the socket did not start it"
    want "after a connection" active "$(of_unit ActiveState)"
    echo "   stopped, it ends with 0; the next connection to the socket starts it"
}

is_watched()
{
    inside mkdir -p /run/systemd/system/kotad.service.d
    inside sh -c 'printf "[Service]\nWatchdogSec=2\n" >/run/systemd/system/kotad.service.d/test.conf'
    inside systemctl daemon-reload
    inside systemctl reset-failed kotad
    inside systemctl restart kotad
    before=$(of_unit NRestarts)
    inside sh -c "kill -STOP $(of_unit MainPID)"
    until_true "the watchdog ends and restarts what hangs" restarted_since "$before"
    said 'Watchdog timeout' || fail "the journal does not tell of the watchdog"
    until_true "it is ready again" ready
    sleep 5 # two and a half times the watchdog's: what does not hang is left alone
    want "restarts of what does not hang" $((before + 1)) "$(of_unit NRestarts)"
    inside rm -r /run/systemd/system/kotad.service.d
    inside systemctl daemon-reload
    echo "   hung, it is ended by the watchdog and started again; else left alone"
}

restarted_since()
{
    [ "$(of_unit NRestarts)" -gt "$1" ] && [ "$(of_unit ActiveState)" = active ]
}

refuses()
{
    inside sh -c 'echo "max-items = many" >>/etc/kotad.conf'
    inside systemctl stop kotad.socket kotad.service
    inside systemctl reset-failed kotad
    if inside systemctl start kotad.service 2>/dev/null; then
        fail "it started with a bad configuration"
    fi
    said 'max-items' || fail "the journal does not name the key"
    inside sed -i '/^max-items = /d' /etc/kotad.conf
    inside systemctl reset-failed kotad.service kotad.socket
    inside systemctl start kotad.socket kotad.service || fail "it does not start again"
    ready || fail "it is not ready when systemctl start returns"
    echo "   a bad configuration: systemctl start fails, the journal names the key"
}

drop_in() # drop_in UNIT LINES: as `systemctl edit` does
{
    inside mkdir -p "/etc/systemd/system/$1.d"
    printf '%s\n' "$2" | inside sh -c "cat >/etc/systemd/system/$1.d/override.conf"
}

# As docs/life-cycle.md says it. The other machine is an address that is not loopback's.
is_opened()
{
    nsenter --target "$first" --net ip addr add 10.9.9.9/32 dev lo
    drop_in kotad.socket '[Socket]
ListenStream=
ListenStream=0.0.0.0:7420'
    printf 'edit %s\n' 0123456789abcdef0123456789abcdef | inside sh -c 'umask 077; cat >/etc/kota.tokens'
    inside sh -c 'echo "token-file = /run/credentials/kotad.service/tokens" >>/etc/kotad.conf'
    drop_in kotad.service '[Service]
LoadCredential=tokens:/etc/kota.tokens'
    inside systemctl daemon-reload
    inside systemctl stop kotad.socket kotad.service
    inside systemctl reset-failed kotad
    inside systemctl start kotad.socket kotad.service || fail "it does not start with tokens"
    until_true "it is ready with tokens" ready
    if inside curl -s -m 2 http://10.9.9.9:7420/v1/limits >/dev/null; then
        fail "another address is answered without IPAddressAllow"
    fi
    drop_in kotad.socket '[Socket]
ListenStream=
ListenStream=0.0.0.0:7420
IPAddressAllow=any'
    inside systemctl daemon-reload
    inside systemctl stop kotad.socket kotad.service
    inside systemctl reset-failed kotad
    inside systemctl start kotad.socket kotad.service
    until_true "it is ready for all" ready
    want "a question from elsewhere" 200 "$(status_of http://10.9.9.9:7420/v1/limits)"
    put='-X PUT -d {} -H Content-Type:application/json http://10.9.9.9:7420/v1/locales/far'
    # shellcheck disable=SC2086 # words
    want "a write without a token" 401 "$(status_of $put)"
    # shellcheck disable=SC2086
    want "a write with a token" 201 \
        "$(status_of -H 'Authorization: Bearer 0123456789abcdef0123456789abcdef' $put)"
    echo "   opened as docs/life-cycle.md says: before that the kernel answers nobody from elsewhere"
}

status_of()
{
    inside curl -s -m 30 -o /dev/null -w '%{http_code}' "$@"
}

is_upgraded()
{
    pid=$(of_unit MainPID)
    inside sh -c 'dpkg -i /debs/kotad_*.deb' >"$work/dpkg" 2>&1 || fail "dpkg -i: $(cat "$work/dpkg")"
    until_true "it is ready after the upgrade" ready
    [ "$(of_unit MainPID)" != "$pid" ] || fail "the upgrade left the old process"
    pid=$(of_unit MainPID)
    inside dpkg -P kotad >"$work/dpkg" 2>&1 || fail "dpkg -P: $(cat "$work/dpkg")"
    ! inside test -d "/proc/$pid" || fail "it runs after the package was removed"
    for left in /etc/kotad.conf /lib/systemd/system/kotad.service /usr/lib/systemd/system/kotad.service; do
        [ ! -e "$root$left" ] || fail "left behind: $left"
    done
    inside test -f /var/lib/private/kota/kota.db || fail "the worlds went with the package"
    echo "   upgraded, it is the new process; removed, it is gone, but for the worlds"
}

[ "$(id -u)" -eq 0 ] || skip "needs root"
for tool in unshare nsenter pivot_root pgrep ip; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
trap leave EXIT
trap 'exit 130' INT TERM
boot
echo "   booted: $(inside systemctl --version | head -n 1)"
starts
is_confined
reloads
restarts
is_activated
is_watched
refuses
is_opened
is_upgraded
