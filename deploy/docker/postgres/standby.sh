#!/bin/sh
# The standby's container: copies the primary when its volume is empty, then streams from it. It runs
# as the user postgres. After a promotion it is a primary like any other; to make a standby of what was
# the primary, empty that one's volume and run this there with the two names exchanged.
set -eu
: "${PGDATA:?}" "${PRIMARY_HOST:?}" "${REPLICATION_PASSWORD:?}"
export PGPASSWORD="$REPLICATION_PASSWORD"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    until pg_basebackup -D "$PGDATA" -R -X stream -c fast -S standby \
        -d "host=$PRIMARY_HOST port=${PRIMARY_PORT:-5432} user=standby application_name=standby"; do
        echo "standby: the primary at $PRIMARY_HOST cannot be copied yet; again in 2 s" >&2
        sleep 2
    done
    # Promoted, it stands alone: it must not wait for a standby that is not there.
    echo "synchronous_standby_names = ''" >>"$PGDATA/postgresql.conf"
    chmod 700 "$PGDATA"
fi
exec postgres -D "$PGDATA" "$@"
