#!/bin/bash
# vast_schema.sh - every request that the Vast.ai translator's own tests provoke, and every request and reply of the stand-in, held
# against the vendor's published OpenAPI file: the path and method exist, each query parameter is known there, bodies fit their schemas
# and have no member that it lacks. Skipped, and said so, where that file (VAST_OPENAPI=FILE, YAML or JSON), python3's jsonschema or,
# for YAML, PyYAML is missing.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
BURST=${BURST:-$here/build/asan/burst}
tests=$(for source in "$here"/tests/unit/test_vast_*.c; do basename "$source" .c; done)
openapi=${VAST_OPENAPI:-$here/../shared/reference/vast-openapi.yaml}
[ -r "$openapi" ] || { echo "skip vast_schema: no $openapi"; exit 0; }
for test in $tests; do
	[ -x "$(dirname "$BURST")/unit/$test" ] || { echo "FAILED vast_schema/t_build: $test was not built"; exit 1; }
done
for python in python3 /usr/bin/python3; do
	"$python" -c 'import jsonschema; jsonschema.Draft202012Validator; import yaml' 2>/dev/null && break
	python=
done
[ -n "$python" ] || { echo "skip vast_schema: python3 has no yaml, or no jsonschema with Draft 2020-12"; exit 0; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/burst-schema.XXXXXX")
trap 'rm -rf "$dir"' EXIT
for test in $tests; do
	BURST_REQUESTS_TO=$dir/requests timeout 120 "$(dirname "$BURST")/unit/$test" >"$dir/log" 2>&1 ||
		{ echo "FAILED vast_schema/t_requests: $test"; exit 1; }
done
# the stand-in's own replies, by one call of each endpoint
if command -v node >/dev/null; then
	coproc SERVER { exec node "$here/tests/cloud/vast/server.js" --state "$dir/cloud" --fast --tied 2>"$dir/stderr"; }
	read -rt 20 url <&"${SERVER[0]}" && key=$(cat "$dir/cloud/account.key")
	n=0
	ask() { # METHOD PATH [BODY]
		n=$((n + 1))
		curl -qsS -g --max-time 20 -o "$dir/reply" -w '%{http_code}' -X "$1" -H "Authorization: Bearer $key" ${3+-H "Content-Type: application/json"} \
			${3+--data-binary "$3"} "$url$2" >"$dir/status"
		jq -c --arg method "$1" --arg url "$url$2" --arg status "$(cat "$dir/status")" --argjson body "${3:-null}" \
			'{method: $method, url: $url, status: $status, body: $body, reply: .}' "$dir/reply" >>"$dir/requests"
	}
	ask POST /api/v0/bundles/ '{"type":"ondemand","gpu_name":{"in":["RTX 4090"]}}'
	ask PUT /api/v0/asks/7000000/ '{"image":"nowhere/x","label":"x","runtype":"args","args":["true"],"env":"-p 22:22 -e A=b"}'
	ask PUT /api/v0/asks/1/ '{"image":"nowhere/x","runtype":"args"}'
	ask GET '/api/v1/instances/?limit=25'
	ask GET /api/v0/instances/30000000/
	ask PUT /api/v0/instances/30000000/ '{"state":"running"}'
	ask PUT /api/v0/instances/request_logs/30000000/ '{"tail":"10"}'
	ask GET '/api/v0/charges/?select_filters=%7B%22day%22%3A%7B%22gte%22%3A0%2C%22lte%22%3A4102444800%7D%7D'
	ask GET /api/v0/users/current/
	ask DELETE /api/v0/instances/30000000/
	ask DELETE /api/v0/instances/1/
	kill "$SERVER_PID" 2>/dev/null
fi
timeout 120 "$python" - "$openapi" "$dir/requests" <<'END'
import json, re, sys
from urllib.parse import urlsplit, parse_qsl
import jsonschema, yaml

doc = yaml.load(open(sys.argv[1]), getattr(yaml, "CSafeLoader", yaml.SafeLoader))

def resolve(node):
    while "$ref" in node:
        at = doc
        for part in node["$ref"][2:].split("/"):
            at = at[part.replace("~1", "/").replace("~0", "~")]
        node = at
    return node

def closed(schema, deep=True):
    """The schema, in which an object takes no member that is not listed. 3.0's "nullable" becomes a type."""
    if not isinstance(schema, dict):
        return schema
    out = dict(resolve(schema))
    if out.pop("nullable", False) and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    if "properties" in out:
        out["properties"] = {k: closed(v, deep) for k, v in out["properties"].items()}
        out.setdefault("additionalProperties", False)
    if "items" in out:
        out["items"] = closed(out["items"], deep)
    return out

def opened(schema):
    """The schema of a filter: it lists some operators of all that the description has."""
    out = closed(schema)
    for v in out.get("properties", {}).values():
        if v.get("type") == "object":
            v["additionalProperties"] = True
    return out

def route(path):
    for template, item in sorted(doc["paths"].items(), key=lambda kv: kv[0].count("{")):
        if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template.rstrip("/")), path.rstrip("/")):
            return template, item
    return None, None

def errors(schema, value):
    for e in jsonschema.Draft202012Validator(schema).iter_errors(value):
        return f"{'/'.join(map(str, e.absolute_path)) or '$'}: {e.message[:200]}"

# In these the published file contradicts itself or Vast's other pages: the rule that is left out, by the start of what it says.
KNOWN = (
    "order: [['dph_total', 'asc']] is too short",  # the file means each pair, not the list of pairs
    "type: 'on-demand' is not one of ",  # the file's own example, and Vast's client
    "env: {'-p 22:22': '1'",  # the page on creating instances has an object, and Vast's client sends one
    "$: Additional properties are not allowed ('credit' ",  # the page on authentication has it
    "$: Additional properties are not allowed ('instance_api_key' ",  # the page "hello world" has it
)

def problem(r):
    parts = urlsplit(r["url"])
    template, item = route(parts.path)
    op = item and item.get(r["method"].lower())
    if not op:
        return f"no {r['method']} {parts.path}"
    known = {p["name"] for p in map(resolve, item.get("parameters", []) + op.get("parameters", [])) if p["in"] == "query"}
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if name not in known:
            return f"{template} knows no parameter {name}"
    want = op.get("requestBody")
    if r.get("body") is not None:
        if not want:
            return f"{r['method']} {template} takes no body"
        schema = resolve(want)["content"]["application/json"]["schema"]
        why = errors(opened(schema) if template.endswith("bundles") or template.endswith("bundles/") else closed(schema), r["body"])
        if why and not why.startswith(KNOWN):
            return f"{r['method']} {template}: {why}"
    if "reply" in r:
        answer = op["responses"].get(r["status"])
        if not answer:
            return f"{r['method']} {template} has no answer {r['status']}"
        schema = resolve(answer).get("content", {}).get("application/json", {}).get("schema")
        why = schema and errors(closed(schema), r["reply"])
        if why and not why.startswith(KNOWN):
            return f"{r['method']} {template}: the stand-in's reply {r['status']}: {why}"

ask = "https://x/api/v0/asks/1/"
for wrong in [{"image": 1}, {"image": "i", "zebra": 1}, {"image": "i", "env": {"A": "b"}}, {"image": "i", "runtype": "zebra"}]:
    if not problem({"method": "PUT", "url": ask, "body": wrong}):
        print(f"FAILED vast_schema/t_closed: {wrong} was accepted")
        sys.exit(1)
print("ok vast_schema/t_closed")
kinds, bad = {}, set()
for line in open(sys.argv[2]):
    r = json.loads(line)
    if "/api/v" not in r["url"]:
        continue
    kind = f'{r["method"]} {route(urlsplit(r["url"]).path)[0]}'
    kinds[kind] = kinds.get(kind, 0) + 1
    why = problem(r)
    if why:
        bad.add(f"{kind}: {why}")
for why in sorted(bad):
    print(f"FAILED vast_schema/t_requests: {why}")
wanted = ["POST /api/v0/bundles", "PUT /api/v0/asks/{id}", "GET /api/v1/instances", "GET /api/v0/instances/{id}", "DELETE /api/v0/instances/{id}",
          "PUT /api/v0/instances/request_logs/{id}", "GET /api/v0/charges", "GET /api/v0/users/current"]
for kind in wanted:
    if kind not in {k.rstrip("/") for k in kinds}:
        bad.add(kind)
        print(f"FAILED vast_schema/t_requests: no {kind} was seen")
if not bad:
    print(f"ok vast_schema/t_requests ({sum(kinds.values())} requests of {len(kinds)} kinds)")
sys.exit(1 if bad else 0)
END
