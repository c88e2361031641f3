#!/bin/bash
# bed_programs.sh FOLDER [PART...] - the programs of a real Kubernetes, KWOK (which plays nodes) and two images for
# tests/cloud/kubernetes/bed.sh: FOLDER/bin, FOLDER/images; and the API's published description, FOLDER/openapi. PART: etcd, kubernetes,
# kwok, openapi, images; all of them if none is named.
# About 14 minutes of compiling and 6 GB for the time being. Needs Go 1.26, its module proxy or the modules already on this machine, and
# Debian's debootstrap; nothing is installed. What exists already is kept.
set -eu
etcd=v3.7.3 kubernetes=1.37.2 kwok=v0.8.0
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/bin" "$1/images"
to=$(cd "$1" && pwd)
shift
parts=" ${*:-etcd kubernetes kwok openapi images} "
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS=-mod=mod
command -v go >/dev/null || { echo "burst: Go is not installed" >&2; exit 1; }
missing() { # PART PROGRAM...: it is wanted, and one of its programs is not there
	local name
	[[ $parts = *" $1 "* ]] || return 1
	shift
	for name; do [ -x "$to/bin/$name" ] || return 0; done
	return 1
}

# A module that imports PACKAGE..., so that `go mod tidy` finds what they need.
tools() { # PACKAGE...
	{
		printf '//go:build tools\n\npackage tools\n\nimport (\n'
		printf '\t_ "%s"\n' "$@"
		echo ')'
	} >tools.go
	go mod tidy 2>go.log || { tail -n 3 go.log >&2; exit 1; }
}
if missing etcd etcd; then
	mkdir "$work/etcd" && cd "$work/etcd"
	printf 'module bed/etcd\n\ngo 1.26.0\n\nrequire go.etcd.io/etcd/server/v3 %s\n' $etcd >go.mod
	tools go.etcd.io/etcd/server/v3
	nice -n 19 go build -trimpath -ldflags '-s -w' -o "$to/bin/etcd" go.etcd.io/etcd/server/v3
fi
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet)
if missing kubernetes "${programs[@]}"; then
	mkdir "$work/kube" && cd "$work/kube"
	printf 'module bed/kube\n\ngo 1.26.0\n' >go.mod
	go mod download "k8s.io/kubernetes@v$kubernetes"
	source=$(go env GOMODCACHE)/k8s.io/kubernetes@v$kubernetes
	# its go.mod names its own parts v0.0.0; each is published as v0.MINOR.PATCH
	{
		printf 'module bed/kube\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' $kubernetes
		awk -v version="v0.${kubernetes#1.}" '$2 == "v0.0.0" && $1 ~ /^k8s\.io\// { print "\t" $1 " => " $1 " " version }' "$source/go.mod"
		echo ')'
	} >go.mod
	cat "$source/go.sum" >go.sum
	tools "${programs[@]/#/k8s.io/kubernetes/cmd/}"
	version=k8s.io/component-base/version # without it the programs call themselves v0.0.0
	for program in "${programs[@]}"; do
		nice -n 19 go build -trimpath -ldflags "-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=37" \
			-o "$to/bin/$program" "k8s.io/kubernetes/cmd/$program"
	done
fi
if missing kwok kwok; then
	mkdir "$work/kwok" && cd "$work/kwok"
	printf 'module bed/kwok\n\ngo 1.26.0\n\nrequire sigs.k8s.io/kwok %s\n' $kwok >go.mod
	tools sigs.k8s.io/kwok/cmd/kwok
	nice -n 19 go build -trimpath -ldflags '-s -w' -o "$to/bin/kwok" sigs.k8s.io/kwok/cmd/kwok
fi
if [[ $parts = *" openapi "* ]] && [ ! -e "$to/openapi/api__v1_openapi.json" ]; then
	mkdir -p "$work/openapi" "$to/openapi" && cd "$work/openapi"
	printf 'module bed/openapi\n\ngo 1.26.0\n' >go.mod
	go mod download "k8s.io/kubernetes@v$kubernetes"
	cp "$(go env GOMODCACHE)/k8s.io/kubernetes@v$kubernetes"/api/openapi-spec/v3/{api__v1,apis__authorization.k8s.io__v1}_openapi.json "$to/openapi/"
	chmod u+w "$to"/openapi/*
fi

# ---- images, as archives that containerd imports ----

[[ $parts = *" images "* ]] || exit 0
if [ ! -e "$to/images/pause.tar" ]; then
	mkdir "$work/pause"
	# every pod's first container: it holds the namespaces
	printf '%s\n' '#include <signal.h>' '#include <unistd.h>' 'static void end(int s) { (void)s; _exit(0); }' \
		'int main(void) { signal(SIGTERM, end); signal(SIGINT, end); for (;;) pause(); }' >"$work/pause.c"
	cc -static -Os -o "$work/pause/pause" "$work/pause.c"
	python3 "$here/bed_image.py" "$work/pause" bed.test/pause:1 "$to/images/pause.tar" /pause
fi
if [ ! -e "$to/images/debian.tar" ]; then
	command -v debootstrap >/dev/null || { echo "burst: debootstrap is not installed" >&2; exit 1; }
	debootstrap --variant=minbase --include=openssh-server,procps bookworm "$work/debian" >"$work/log" || { tail -n 3 "$work/log" >&2; exit 1; }
	rm -f "$work/debian"/var/cache/apt/archives/*.deb
	python3 "$here/bed_image.py" "$work/debian" bed.test/debian:12 "$to/images/debian.tar"
fi
