# openapi.sh - what NAME_schema.sh needs to hold requests against a vendor's published OpenAPI file.
#
#   schema_begin VENDOR FILE MODULES   or the script is skipped, which it says: FILE is missing, or python3 has not these MODULES.
#                                      What the translator's own tests send is then in $DIR/requests
#   schema_judge                       runs the Python on stdin, with FILE and the requests as its arguments
# shellcheck shell=bash
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
BURST=${BURST:-$ROOT/build/asan/burst}

schema_begin() {
	local tests test
	NAME=$1_schema OPENAPI_FILE=$2
	[ -r "$OPENAPI_FILE" ] || { echo "skip $NAME: no OpenAPI file${OPENAPI_FILE:+ $OPENAPI_FILE} (its first lines say how to name one)"; exit 0; }
	tests=$(for test in "$ROOT"/tests/unit/test_"$1"_*.c; do basename "$test" .c; done)
	for test in $tests; do
		[ -x "$(dirname "$BURST")/unit/$test" ] || { echo "FAILED $NAME/t_build: $test was not built"; exit 1; }
	done
	for PYTHON in python3 /usr/bin/python3 ''; do
		[ -z "$PYTHON" ] || "$PYTHON" -c "import jsonschema; jsonschema.Draft202012Validator; import ${3:-json}" 2>/dev/null && break
	done
	[ -n "$PYTHON" ] || { echo "skip $NAME: python3 has no jsonschema with Draft 2020-12${3:+, or no $3}"; exit 0; }
	DIR=$(mktemp -d "${TMPDIR:-/tmp}/burst-schema.XXXXXX")
	trap 'rm -rf "$DIR"' EXIT
	for test in $tests; do
		BURST_REQUESTS_TO=$DIR/requests timeout 120 "$(dirname "$BURST")/unit/$test" >"$DIR/log" 2>&1 ||
			{ echo "FAILED $NAME/t_requests: $test"; exit 1; }
	done
}
schema_judge() {
	PYTHONPATH=$ROOT/tests/cloud/common PYTHONDONTWRITEBYTECODE=1 timeout 120 "$PYTHON" - "$OPENAPI_FILE" "$DIR/requests"
}
