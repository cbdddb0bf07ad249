#!/usr/bin/env bash
# Runs continuous integration on a machine that has nothing: fresh.sh FOLDER [STEP...]
#
# Makes a Debian with Python, a C++ compiler and git alone in FOLDER (about 600 MB, kept and used again),
# clones this checkout's HEAD into it, and runs `bash .ci/run STEP...` there as root. Programs that a step
# installs are gone at the next run: each run works on a copy-on-write layer over the base.
#
# Needs Linux, root, debootstrap (`apt-get install debootstrap`), and FOLDER on a file system that can be the
# upper layer of an overlay (ext4, xfs). Takes this machine's settings of pip,
# npm and apt, its certificates and its variables for networks; FRESH_BIND names folders that these settings
# point to, separated by colons. FRESH_SUITE is the release of Debian (bookworm).
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" && exit 2; }
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
base=$folder/base suite=${FRESH_SUITE:-bookworm}

if [ ! -e "$folder/made" ]; then # the base
    [ "$(id -u)" = 0 ] || { echo "fresh.sh: debootstrap and chroot need root" >&2 && exit 2; }
    type -P debootstrap > /dev/null || { echo "fresh.sh: first apt-get install debootstrap" >&2 && exit 2; }
    rm -rf "$base"
    debootstrap --variant=minbase --include=ca-certificates,git,g++,python3,python3-dev,python3-venv \
        "$suite" "$base" > "$folder/debootstrap.log" 2>&1 || { tail -n 5 "$folder/debootstrap.log" >&2 && exit 2; }
    touch "$folder/made"
fi

# The layer of this run: settings, and the checkout.
rm -rf "$folder/layer" "$folder/work" && mkdir -p "$folder/layer" "$folder/work" "$folder/root"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/xdg/pip /etc/npmrc /etc/ssl/certs/ca-certificates.crt \
    /etc/apt/apt.conf.d /etc/apt/sources.list.d ~/.npmrc ~/.config/pip; do
    [ ! -e "$file" ] || { mkdir -p "$folder/layer$(dirname "$file")" && cp -rL "$file" "$folder/layer$(dirname "$file")/"; }
done
git clone -q --no-hardlinks . "$folder/layer/checkout"
echo "fresh.sh: $(git log -1 --format='%h %s') on $(cat "$base/etc/debian_version"), $(date -u +%FT%TZ)"
names=$(compgen -e | grep -E '^(PIP_|NPM_CONFIG_|npm_config_|NODE_EXTRA_CA_CERTS$|SSL_CERT_|GIT_SSL_|REQUESTS_CA|CURL_CA|ZEROSTRIDE_)|_proxy$|_PROXY$' || true)
settings=()
for name in $names; do settings+=("$name=${!name}"); done

# In a mount and process namespace of its own: all of it ends with this script.
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --mount --pid --fork --kill-child bash -euc '
    folder=$1 bind=$2
    shift 2
    root=$folder/root
    mount --make-rprivate /
    mount -t overlay overlay -o "lowerdir=$folder/base,upperdir=$folder/layer,workdir=$folder/work" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    IFS=:
    for one in $bind; do mkdir -p "$root$one" && mount --bind "$one" "$root$one"; done
    unset IFS
    exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 CI=true \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
' fresh.sh "$folder" "${FRESH_BIND:-}" "${settings[@]}" bash -c 'cd /checkout && exec bash .ci/run "$@"' .ci/run "$@"
