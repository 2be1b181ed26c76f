#!/bin/sh
# Run once by the image of PostgreSQL when its volume is empty (docker-entrypoint-initdb.d): the role
# that the standby streams as, and that a commit waits for the standby. The latter is written down and
# not set at once, since no standby is there while this runs.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$REPLICATION_PASSWORD" --username "$POSTGRES_USER" \
    --dbname "$POSTGRES_DB" <<'END'
CREATE ROLE standby WITH REPLICATION LOGIN PASSWORD :'password';
SELECT pg_create_physical_replication_slot('standby');
END
echo 'host replication standby all scram-sha-256' >>"$PGDATA/pg_hba.conf"
cat >>"$PGDATA/postgresql.conf" <<'END'
wal_level = replica
synchronous_standby_names = 'standby'
max_slot_wal_keep_size = '4GB'
END
