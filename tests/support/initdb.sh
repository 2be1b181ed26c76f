# initdb for the tests: `sh -s BIN DATA <initdb.sh`, with the rights of whoever runs the server.
#
# One initdb takes nearly a second of processor, a copy of its folder a tenth of that. With
# KOTA_PG_TEMPLATE, a folder that everybody may write (tests/run makes it), it runs once and is copied.
set -eu

fresh()
{
    "$bin/initdb" -D "$1" -U kota -A trust -E UTF8 --locale=C --no-sync --no-instructions
}

bin=$1 data=$2 template=${KOTA_PG_TEMPLATE:-}
if [ ! -w "$template" ]; then
    fresh "$data"
    exit
fi
exec 9>>"$template/lock"
flock 9
if [ ! -d "$template/data" ]; then
    fresh "$template/part"
    mv "$template/part" "$template/data"
fi
flock -u 9
cp -r "$template/data" "$data"
