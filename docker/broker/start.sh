#!/bin/sh
# `barnabas`, but a broker starts only with a volume that it can write to. Without one its records
# would be gone with the container, and nobody would notice before.
set -eu

data=/var/lib/barnabas
fail() {
    echo "barnabas: $1" >&2
    exit 1
}
if [ "${1-} ${2-}" = "broker run" ] && [ "${BARNABAS_LOG_DIRS-}" = "$data" ]; then
    grep -q " $data " /proc/self/mounts || fail "no volume is mounted at $data; its records would\
 be lost with the container (docker run --volume NAME:$data)"
    [ -w "$data" ] || fail "the volume at $data cannot be written to by user $(id -u); its owner\
 is $(stat -c %u "$data")"
fi
exec barnabas "$@"
