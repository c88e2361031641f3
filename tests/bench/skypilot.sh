#!/bin/bash
# skypilot.sh FOLDER BED - the peer of the benchmark's part `kubernetes`, with all that it would fetch at a user's: FOLDER/venv (SkyPilot
# from PyPI), FOLDER/tools (nc and socat from Debian, which it calls), FOLDER/wheels (the wheel of itself that it sends to its pods) and
# FOLDER/image.tar, an image for its pods named bed.test/skypilot:1. About three minutes; needs root, PyPI and Debian's packages. BED is what
# tests/cloud/kubernetes/bed_programs.sh made. What exists already is kept.
#
# The image is what SkyPilot's own image has: its Debian packages, uv, and an environment with Ray and SkyPilot's packages. It has three
# advantages besides: that wheel is installed in it, so that nothing is installed when a pod starts, its Python files are compiled, and its
# user is root. Its Python is Debian's 3.11, where SkyPilot's image has 3.10.
set -eu
skypilot=0.14.1 ray=2.9.3 # the version of Ray that this SkyPilot names in sky/skylet/constants.py
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
to=$(cd "$1" && pwd) bed=$(cd "$2" && pwd)
if [ "$(cat "$to/.complete" 2>/dev/null || :)" = "$skypilot" ]; then exit 0; fi
rm -rf "${to:?}"/{.complete,venv,tools,home,wheels,image,image.tar}
certificates=/etc/ssl/certs/ca-certificates.crt

# ---- the client ----

python3 -m venv "$to/venv"
"$to/venv/bin/pip" install --quiet uv
"$to/venv/bin/uv" pip install --quiet --python "$to/venv/bin/python" "skypilot[kubernetes]==$skypilot"
"$to/venv/bin/python" -m compileall -q "$to/venv/lib" >/dev/null || : # also so that no folder is newer than the wheel, which would be built again
mkdir "$to/tools" && cd "$to/tools"
apt-get -qq download netcat-openbsd socat 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
ln -s nc.openbsd bin/nc
HOME=$to/home SKYPILOT_DISABLE_USAGE_COLLECTION=1 "$to/venv/bin/python" -c 'from sky.backends import wheel_utils; wheel_utils.build_sky_wheel()'
mv "$to/home/.sky/wheels" "$to/wheels"
wheel=$(basename "$to"/wheels/*)

# ---- the image ----

root=$to/image
mkdir "$root"
layer=$(tar -xOf "$bed/images/debian.tar" index.json | jq -r '.manifests[0].digest')
layer=$(tar -xOf "$bed/images/debian.tar" "blobs/${layer/://}" | jq -r '.layers[0].digest')
tar -xOf "$bed/images/debian.tar" "blobs/${layer/://}" | tar -xz -C "$root"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
inside() { # COMMAND: a line of shell in the image
	env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
		SSL_CERT_FILE=/tmp/certificates UV_LINK_MODE=copy UV_CACHE_DIR=/tmp/uv VIRTUAL_ENV=/root/skypilot-runtime chroot "$root" bash -ec "cd; $1"
}
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service starts here
chmod 755 "$root/usr/sbin/policy-rc.d"
inside 'apt-get -qq update
	apt-get -qq install -y --no-install-recommends git gcc libc6-dev rsync sudo patch openssh-server openssh-client pciutils nano fuse3 socat \
		netcat-openbsd curl unzip wget procps ca-certificates hostname iproute2 lsof python3 python3-venv >/tmp/log 2>&1 || { tail -n 3 /tmp/log; exit 1; }
	apt-get clean; rm -rf /var/lib/apt/lists/* /usr/sbin/policy-rc.d'
cp $certificates "$root/tmp/certificates"
mkdir -p "$root/root/.local/bin" "$root/root/.sky"
cp "$to/venv/bin/uv" "$root/root/.local/bin/"
cp -r "$to/wheels" "$root/root/.sky/"
# what its set-up of a pod would install: sky/skylet/constants.py, RAY_INSTALLATION_COMMANDS and SKYPILOT_WHEEL_INSTALLATION_COMMANDS
inside "uv=/root/.local/bin/uv
	\$uv -q venv --seed /root/skypilot-runtime --python /usr/bin/python3
	\$uv -q pip install 'ray[default]==$ray' 'setuptools<70' 'click<8.3.0' pydantic-core==2.41.1 \"\$(echo /root/.sky/wheels/$wheel/*.whl)[kubernetes,remote]\"
	echo $wheel >/root/.sky/wheels/current_sky_wheel_hash
	/root/skypilot-runtime/bin/python -m compileall -q /root/skypilot-runtime/lib >/dev/null || :"
rm -rf "${root:?}"/tmp/*
python3 "$here/../cloud/kubernetes/bed_image.py" "$root" bed.test/skypilot:1 "$to/image.tar" /bin/bash
rm -rf "$root" "${to:?}/home"
echo $skypilot >"$to/.complete"
