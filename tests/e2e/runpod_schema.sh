#!/bin/bash
# runpod_schema.sh - every REST request that the RunPod translator's own tests provoke, held against the vendor's published
# OpenAPI file: the path and method exist, each query parameter is known there, the body fits its schema. Skipped, and said
# so, where that file (OPENAPI=FILE, else ../shared/reference/runpod-openapi-v2.json) or python3's jsonschema is missing.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
BURST=${BURST:-$here/build/asan/burst}
tests=$(for source in "$here"/tests/unit/test_runpod_*.c; do basename "$source" .c; done)
openapi=${OPENAPI:-$here/../shared/reference/runpod-openapi-v2.json}
[ -r "$openapi" ] || { echo "skip runpod_schema: no $openapi"; exit 0; }
for test in $tests; do
	[ -x "$(dirname "$BURST")/unit/$test" ] || { echo "FAILED runpod_schema/t_build: $test was not built"; exit 1; }
done
for python in python3 /usr/bin/python3; do
	"$python" -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null && break
	python=
done
[ -n "$python" ] || { echo "skip runpod_schema: python3 has no jsonschema with Draft 2020-12"; exit 0; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/burst-schema.XXXXXX")
trap 'rm -rf "$dir"' EXIT
for test in $tests; do
	BURST_REQUESTS_TO=$dir/requests timeout 120 "$(dirname "$BURST")/unit/$test" >"$dir/log" 2>&1 ||
		{ echo "FAILED runpod_schema/t_requests: $test"; exit 1; }
done
timeout 120 "$python" - "$openapi" "$dir/requests" <<'END'
import json, re, sys
from urllib.parse import urlsplit, parse_qsl
import jsonschema

doc = json.load(open(sys.argv[1]))
checker = jsonschema.Draft202012Validator

def resolve(node):
    while "$ref" in node:
        at = doc
        for part in node["$ref"][2:].split("/"):
            at = at[part.replace("~1", "/").replace("~0", "~")]
        node = at
    return node

def rooted(schema):
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": doc["components"], **schema}

def route(path):
    for template, item in sorted(doc["paths"].items(), key=lambda kv: kv[0].count("{")):
        if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), path):
            return template, item
    return None, None

def problem(method, url, body):
    parts = urlsplit(url)
    template, item = route(parts.path)
    if not item:
        return f"no such path: {parts.path}"
    op = item.get(method.lower())
    if not op:
        return f"{template} takes no {method}"
    known = {p["name"]: p for p in map(resolve, item.get("parameters", []) + op.get("parameters", [])) if p["in"] == "query"}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "cursor" and template in ("/v2/pods", "/v2/network-volumes"):
            continue  # sent to a server that has named one, which this version of the file's does not
        if name not in known:
            return f"{template} knows no parameter {name}"
        schema = resolve(known[name].get("schema", {}))
        typed = value.split(",") if schema.get("type") == "array" else int(value) if schema.get("type") == "integer" else value
        for e in checker(rooted(schema)).iter_errors(typed):
            return f"{template}?{name}={value}: {e.message}"
    want = op.get("requestBody")
    if body is None:
        return "a body is required" if want and resolve(want).get("required") else None
    if not want:
        return f"{method} {template} takes no body"
    schema = resolve(want)["content"]["application/json"]["schema"]
    for e in checker(rooted(schema)).iter_errors(body):
        return f"{method} {template}: {'/'.join(map(str, e.absolute_path)) or '$'}: {e.message[:200]}"

# The validator itself must be able to say no.
pods = "https://x/v2/pods"
for wrong in [{"image": "i"}, {"name": "n", "interruptible": True}, {"name": "n", "gpu": {"count": 1}},
              {"name": "n", "mounts": {"network": [{"volumeId": "v"}]}}]:
    if not problem("POST", pods, wrong):
        print(f"FAILED runpod_schema/t_closed: {wrong} was accepted")
        sys.exit(1)
print("ok runpod_schema/t_closed")

kinds, bad, later = {}, 0, 0
for line in open(sys.argv[2]):
    r = json.loads(line)
    path = urlsplit(r["url"]).path
    if not path.startswith("/v2/"):
        continue
    # members that came after this file was published, sent only where the config says so
    if r["body"] and any(k in r["body"].get("gpu", {}) for k in ("minRamPerGpu", "minVcpuCountPerGpu")):
        later += 1
        continue
    why = problem(r["method"], r["url"], r["body"])
    kind = f'{r["method"]} {route(path)[0] or path}'
    kinds[kind] = kinds.get(kind, 0) + 1
    if why:
        bad += 1
        print(f"FAILED runpod_schema/t_requests: {kind}: {why}")
wanted = ["POST /v2/pods", "GET /v2/pods", "DELETE /v2/pods/{id}", "PATCH /v2/pods/{id}", "POST /v2/pods/{id}/action",
          "GET /v2/pods/{id}/logs", "GET /v2/catalog/gpus", "GET /v2/catalog/datacenters", "POST /v2/network-volumes",
          "DELETE /v2/network-volumes/{id}", "GET /v2/billing/pods"]
for kind in wanted:
    if kind not in kinds:
        bad += 1
        print(f"FAILED runpod_schema/t_requests: no {kind} was seen")
if not bad:
    print(f"ok runpod_schema/t_requests ({sum(kinds.values())} requests of {len(kinds)} kinds; {later} with later members left out)")
sys.exit(1 if bad else 0)
END
