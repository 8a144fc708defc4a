#!/bin/sh
# Pins the base images of the Dockerfile to what their versions are now: NAME:VERSION becomes NAME:VERSION@sha256:...
#
#   deploy/setup/image-digests.sh [DOCKERFILE]
#
# It asks the registry through docker, and changes nothing where one of the images cannot be asked for.
set -eu
file=${1:-Dockerfile}
stop() {
    echo "image-digests: $1; $file stays as it is, and its images are named by their versions alone" >&2
    echo "image-digests: $2" >&2
    exit 1
}
command -v docker >/dev/null || stop "docker is not installed" "install docker with its plugin buildx, and run this again"
docker buildx version >/dev/null 2>&1 ||
    stop "docker has no plugin buildx" "install it (package docker-buildx or docker-buildx-plugin), and run this again"
pinned=$(mktemp "$file.XXXXXX")
trap 'rm -f "$pinned"' EXIT
cp "$file" "$pinned"
for argument in $(sed -n 's/^ARG \([A-Z_]*_IMAGE\)=.*/\1/p' "$file"); do
    image=$(sed -n "s/^ARG $argument=\([^@]*\).*/\1/p" "$file")
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image") || 
        stop "no registry could be asked for $image" \
            "run this on a machine that reaches the registry, or write the digest yourself: ARG $argument=$image@sha256:..."
    case $digest in
        sha256:????????????????????????????????????????????????????????????????) ;;
        *) stop "$image has no digest but '$digest'" "look at the image in its registry, and run this again" ;;
    esac
    sed -i "s|^ARG $argument=.*|ARG $argument=$image@$digest|" "$pinned"
    echo "$image@$digest"
done
chmod --reference="$file" "$pinned"
mv "$pinned" "$file"
