/* apt.h - a script that installs Debian packages in a container, as text.
 *
 * Packages are kept as files, one folder per release and architecture, so that the next container
 * installs them without the network. The script leaves them in $BURST_KEEP; later they are in
 * $BURST_KEPT, verified by the agent. If the program exists already, the script ends at once. Kept
 * packages are those that another image lacked, so this image may need more. Another install may be
 * running (the image's own start, or burst's install of curl), and apt does not wait for all of its
 * locks. An interrupted install must be repaired first: it leaves unpacked packages that do not
 * work. */
#ifndef BURST_JOBS_TTS_APT_H
#define BURST_JOBS_TTS_APT_H

/* HAVE: body of a shell function that succeeds if the program exists. DEBS: patterns for dpkg-
 * query. WHAT: the name in messages. */
#define APT_INSTALL(WHAT, HAVE, DEBS, PACKAGES)                                                    \
	"have() {\n" HAVE "}\n"                                                                    \
	"half() {\n"                                                                               \
	"	dpkg-query -W -f '${db:Status-Status}\\n' " DEBS                                   \
	" 2>/dev/null | grep -qE '^(half-|unpacked)'\n"                                            \
	"}\n"                                                                                      \
	"have && ! half && exit 0\n"                                                               \
	"command -v apt-get >/dev/null 2>&1 || { echo '" WHAT                                      \
	" is missing and there is no apt-get' >&2; exit 1; }\n"                                    \
	"[ \"$(id -u)\" = 0 ] || { echo '" WHAT                                                    \
	" is missing and only root can install it' >&2; exit 1; }\n"                               \
	"export LC_ALL=C DEBIAN_FRONTEND=noninteractive\n"                                         \
	"release=$(. /etc/os-release; echo \"$ID-$VERSION_ID\")-$(dpkg --print-architecture)\n"    \
	"debs=$BURST_KEPT/$release\n"                                                              \
	"log=$(mktemp) && archives=$(mktemp -d) || exit 1\n"                                       \
	"trap 'rm -rf \"$log\" \"$archives\"' EXIT\n"                                              \
	"apt() {\n"                                                                                \
	"	timeout 300 apt-get -q -y -o Acquire::Retries=2 -o "                                     \
	"APT::Keep-Downloaded-Packages=true \\\n"                                                  \
	"		-o Dir::Cache::archives=\"$archives\" -o APT::Sandbox::User=root \\\n"                  \
	"		-o DPkg::Lock::Timeout=120 --no-install-recommends \"$@\"\n"                            \
	"}\n"                                                                                      \
	"get() {\n"                                                                                \
	"	timeout 120 dpkg --configure -a\n"                                                       \
	"	if [ -n \"$BURST_KEPT\" ] && [ -d \"$debs\" ]; then dpkg -i \"$debs\"/*.deb && "         \
	"have && return; fi\n"                                                                     \
	"	timeout 120 apt-get -q -o Acquire::Retries=2 update &&\n"                                \
	"	mkdir -p \"$archives/partial\" &&\n"                                                     \
	"	{ apt install " PACKAGES " || { apt -f install && apt install " PACKAGES           \
	"; }; }\n"                                                                                 \
	"}\n"                                                                                      \
	"end=$(($(date +%s) + 120))\n"                                                             \
	"until get >\"$log\" 2>&1; do\n"                                                           \
	"	grep -qE 'Could not get lock|Unable to lock|locked by another' \"$log\" &&\n"            \
	"		[ \"$(date +%s)\" -lt \"$end\" ] || { tail -n 5 \"$log\" >&2; exit 1; }\n"              \
	"	sleep 2\n"                                                                               \
	"done\n"                                                                                   \
	"have || { echo '" WHAT " was installed and is still not found' >&2; exit 1; }\n"          \
	"set -- \"$archives\"/*.deb\n"                                                             \
	"if [ -n \"$BURST_KEEP\" ] && [ -e \"$1\" ]; then\n"                                       \
	"	mkdir -p \"$BURST_KEEP/$release\" && cp \"$@\" \"$BURST_KEEP/$release/\"\n"              \
	"fi\n"                                                                                     \
	"rm -rf \"$archives\"\n"                                                                   \
	"exit 0\n"

#endif
