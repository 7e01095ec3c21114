#!/usr/bin/env bash
# Makes sure the image debian:bookworm-slim exists: the one that is here, or the one that can be
# pulled, or else one made by debootstrap under that name. The Dockerfile cannot tell them apart.
# DEBIAN_MIRROR names another mirror than debootstrap's own.
set -euo pipefail

image=debian:bookworm-slim
docker=${DOCKER:-docker}

if "$docker" image inspect "$image" >/dev/null 2>&1; then
    exit 0
fi
if timeout "${PULL_TIMEOUT:-60}" "$docker" pull "$image" 2>/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "$image can be neither pulled nor made (that takes root and debootstrap)" >&2
    exit 1
fi

echo "$image cannot be pulled; making it with debootstrap"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" \
    ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$root.log" 2>&1 || {
    tail -5 "$root.log" >&2
    exit 1
}
rm -f "$root.log"

# What makes the official image slim.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* \
    "$root"/usr/share/{doc,man,info,locale,lintian}/*
# The host's own certificate authorities, for hosts whose package index stands behind one of theirs.
mkdir -p "$root/etc/ssl/certs"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
tar -C "$root" -c . | "$docker" import --change 'CMD ["bash"]' - "$image" >/dev/null
echo "made $image"
