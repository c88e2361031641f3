#!/bin/bash
# runpod_schema.sh - every REST request that the RunPod translator's own tests provoke, held against the vendor's published
# OpenAPI file (OPENAPI=FILE): the path and method exist, each query parameter is known there, the body fits its schema.
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cloud/common/openapi.sh"
schema_begin runpod "${OPENAPI:-$ROOT/../shared/reference/runpod-openapi-v2.json}" ''
schema_judge <<'END'
import json, sys
from openapi import OpenApi, judge

with open(sys.argv[1], encoding="utf-8") as f:
    # a cursor goes to a server that has named one, which this version of the file's does not
    api = OpenApi(json.load(f), parameters=(("/v2/pods", "cursor"), ("/v2/network-volumes", "cursor")))
wrong = [{"image": "i"}, {"name": "n", "interruptible": True}, {"name": "n", "gpu": {"count": 1}}, {"name": "n", "mounts": {"network": [{"volumeId": "v"}]}}]
wanted = ["POST /v2/pods", "GET /v2/pods", "DELETE /v2/pods/{id}", "PATCH /v2/pods/{id}", "POST /v2/pods/{id}/action",
          "GET /v2/pods/{id}/logs", "GET /v2/catalog/gpus", "GET /v2/catalog/datacenters", "POST /v2/network-volumes",
          "DELETE /v2/network-volumes/{id}", "GET /v2/billing/pods"]
# members that came after this file was published, sent only where the config says so
later = ("minRamPerGpu", "minVcpuCountPerGpu")
judge("runpod_schema", api, "/v2/", sys.argv[2], [{"method": "POST", "url": "https://x/v2/pods", "body": body} for body in wrong], wanted,
      lambda r: any(k in ((r["body"] or {}).get("gpu") or {}) for k in later))
END
