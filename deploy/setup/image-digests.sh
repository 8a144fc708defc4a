#!/bin/sh
# Pins the base images of the Dockerfile to what their versions are now: NAME:VERSION becomes NAME:VERSION@sha256:...
#
#   deploy/setup/image-digests.sh [DOCKERFILE]
#
# It asks the registry through docker, and changes nothing where one of the images cannot be asked for.
set -eu
file=${1:-Dockerfile}
command -v docker >/dev/null || { echo "image-digests: docker is not installed; install it, and run this again" >&2; exit 1; }
pinned=$(mktemp "$file.XXXXXX")
trap 'rm -f "$pinned"' EXIT
cp "$file" "$pinned"
for argument in $(sed -n 's/^ARG \([A-Z_]*_IMAGE\)=.*/\1/p' "$file"); do
    image=$(sed -n "s/^ARG $argument=\([^@]*\).*/\1/p" "$file")
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image") || {
        echo "image-digests: no registry could be asked for $image; $file stays as it is" >&2
        exit 1
    }
    case $digest in
        sha256:????????????????????????????????????????????????????????????????) ;;
        *) echo "image-digests: $image has no digest but '$digest'; $file stays as it is" >&2; exit 1 ;;
    esac
    sed -i "s|^ARG $argument=.*|ARG $argument=$image@$digest|" "$pinned"
    echo "$image@$digest"
done
chmod --reference="$file" "$pinned"
mv "$pinned" "$file"
