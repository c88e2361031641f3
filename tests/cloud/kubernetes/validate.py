"""validate.py OPENAPI_FOLDER REQUESTS.jsonl STATE.json - holds what was sent to the stand-in, and the pods that it shows, against the
OpenAPI files that Kubernetes publishes (api/openapi-spec/v3 of its source). Every path, method, query parameter and body must be one that
they have; fields that they do not name are mistakes, as with fieldValidation=Strict. Prints what does not fit; exits 1 if anything did not."""
import json
import pathlib
import re
import sys
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft4Validator

FILES = ("api__v1_openapi.json", "apis__authorization.k8s.io__v1_openapi.json")
UNPUBLISHED = ("/version", "/api", "/apis", "/api/v1")  # discovery, by kubectl itself
OF_KUBECTL = {"timeout"}  # --request-timeout, in each request


def main():
    paths, schemas = {}, {}
    for name in FILES:
        spec = json.loads((pathlib.Path(sys.argv[1]) / name).read_text())
        schemas.update(spec["components"]["schemas"])
        for path, item in spec["paths"].items():
            paths[re.compile(re.sub(r"\{[a-z]+\}", "[^/]+", path) + "$")] = item
    root = {"components": {"schemas": {name: closed(schema) for name, schema in schemas.items()}}}

    def errors(schema, value):
        return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in Draft4Validator({**root, **closed(schema)}).iter_errors(value)]

    bad, seen = [], {}
    for line in open(sys.argv[2]):
        request = json.loads(line)
        url = urlsplit(request["url"])
        if url.path in UNPUBLISHED:
            continue
        what = f"{request['method']} {request['url'][:120]}"
        seen[request["op"] or url.path] = seen.get(request["op"] or url.path, 0) + 1
        item = next((item for pattern, item in paths.items() if pattern.match(url.path)), {})
        operation = item.get(request["method"].lower())
        if not operation:
            bad.append(f"{what}: no such request")
            continue
        known = OF_KUBECTL | {p["name"] for p in (*item.get("parameters", ()), *operation.get("parameters", ())) if p["in"] == "query"}
        bad += [f"{what}: no parameter {name}" for name, _ in parse_qsl(url.query) if name not in known]
        if request.get("body") is not None:
            schema = next(iter(operation["requestBody"]["content"].values()))["schema"]
            bad += [f"{what}: {why}" for why in errors(schema, request["body"])]
    pods = json.load(open(sys.argv[3]))["pods"]
    for pod in pods:
        bad += [f"pod {pod['name']} as the stand-in shows it: {why}" for why in errors({"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"}, pod["object"])]
    print("\n".join(sorted(set(bad))))
    print(f"{sum(seen.values())} requests of {len(seen)} kinds, {len(pods)} pods: {' '.join(sorted(seen))}")
    sys.exit(1 if bad else 0)


def closed(schema):
    """The same, and with no other members than it names. `default` of an OpenAPI 3.0 schema means nothing here."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: {name: closed(one) for name, one in value.items()} if key == "properties" else closed(value) for key, value in schema.items() if key != "default"}
    if isinstance(out.get("properties"), dict) and "additionalProperties" not in out:
        out["additionalProperties"] = False
    return out


main()
