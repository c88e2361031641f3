#!/bin/bash
# vast_schema.sh - every request that the Vast.ai translator's own tests provoke, and requests and replies of the stand-in, held against the
# vendor's published OpenAPI file (VAST_OPENAPI=FILE, YAML or JSON): the path and method exist, each query parameter is known there,
# bodies fit their schemas and have no member that it lacks.
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cloud/common/openapi.sh"
schema_begin vast "${VAST_OPENAPI:-}" yaml
# the stand-in's own replies, by one call of each endpoint
if command -v node >/dev/null; then
	coproc SERVER { exec node "$ROOT/tests/cloud/vast/server.js" --state "$DIR/cloud" --fast --tied 2>"$DIR/stderr"; }
	read -rt 20 url <&"${SERVER[0]}" && key=$(cat "$DIR/cloud/account.key")
	n=0
	ask() { # METHOD PATH [BODY]
		n=$((n + 1))
		curl -qsS -g --max-time 20 -o "$DIR/reply" -w '%{http_code}' -X "$1" -H "Authorization: Bearer $key" ${3+-H "Content-Type: application/json"} \
			${3+--data-binary "$3"} "$url$2" >"$DIR/status"
		jq -c --arg method "$1" --arg url "$url$2" --arg status "$(cat "$DIR/status")" --argjson body "${3:-null}" \
			'{method: $method, url: $url, status: $status, body: $body, reply: .}' "$DIR/reply" >>"$DIR/requests"
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
schema_judge <<'END'
import sys
import yaml
from openapi import OpenApi, judge

# In these the published file contradicts itself or Vast's other pages.
KNOWN = (
    "order: [['dph_total', 'asc']] is too short",  # the file means each pair, not the list of pairs
    "type: 'on-demand' is not one of ",  # the file's own example, and Vast's client
    "env: {'-p 22:22': '1'",  # the page on creating instances has an object, and Vast's client sends one
    "$: Additional properties are not allowed ('credit' ",  # the page on authentication has it
    "$: Additional properties are not allowed ('instance_api_key' ",  # the page "hello world" has it
)
with open(sys.argv[1], encoding="utf-8") as f:
    api = OpenApi(yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader)), closed=True, filters=("/api/v0/bundles",), known=KNOWN)
wrong = [{"image": 1}, {"image": "i", "zebra": 1}, {"image": "i", "env": {"A": "b"}}, {"image": "i", "runtype": "zebra"}]
wanted = ["POST /api/v0/bundles", "PUT /api/v0/asks/{id}", "GET /api/v1/instances", "GET /api/v0/instances/{id}", "DELETE /api/v0/instances/{id}",
          "PUT /api/v0/instances/request_logs/{id}", "GET /api/v0/charges", "GET /api/v0/users/current"]
judge("vast_schema", api, "/api/v", sys.argv[2], [{"method": "PUT", "url": "https://x/api/v0/asks/1/", "body": body} for body in wrong], wanted)
END
