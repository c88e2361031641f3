"""validate.py OPENAPI REQUESTS.jsonl REPLIES_DIR - holds what was sent and what was answered against the vendor's own
OpenAPI file, with a JSON Schema 2020-12 validator. A create that the stand-in took must be a CreatePodRequest, one that it
refused with 422 must not be; replies are files NAME.SCHEMA.json. Prints what does not fit; exits 1 if anything did not."""
import copy
import json
import pathlib
import sys

from jsonschema import Draft202012Validator

BODIES = {
    "createPod": "CreatePodRequest",
    "patchPod": "UpdatePodRequest",
    "podAction": "PodActionRequest",
    "createVolume": "CreateNetworkVolumeRequest",
    "patchVolume": "UpdateNetworkVolumeRequest",
    "putSshKeys": "UpdateSshKeysRequest",
}


def main():
    vendor = json.load(open(sys.argv[1]))
    validators = {}

    def errors(schema, value):
        if schema not in validators:
            root = {"$ref": "#/components/schemas/" + schema, "components": vendor["components"]}
            validators[schema] = Draft202012Validator(root)
        return [e.message for e in validators[schema].iter_errors(value)]

    bad = 0
    counts = {"requests": 0, "replies": 0}
    for line in open(sys.argv[2]):
        r = json.loads(line)
        schema = BODIES.get(r["op"])
        if schema is None or not isinstance(r.get("body"), dict) or r["status"] in (0, 401, 403, 404, 409, 429, 500):
            continue
        counts["requests"] += 1
        found = errors(schema, r["body"])
        # an image that no registry has is refused with 422 too
        if (r["status"] == 422 and not r["errors"][0].startswith("image:")) != bool(found):
            bad += 1
            print("request %d (%s, answered %d): the vendor's schema says %s" % (r["n"], r["op"], r["status"], found or "fine"))
    for path in sorted(pathlib.Path(sys.argv[3]).glob("*.json")):
        schema = path.name.split(".")[-2]
        counts["replies"] += 1
        for message in errors(schema, json.load(open(path))):
            bad += 1
            print("%s: %s" % (path.name, message[:300]))
    print("%(requests)d requests and %(replies)d replies held against the vendor's schemas" % counts)
    # our copy of the request schemas says what the vendor's says
    ours = json.load(open(pathlib.Path(__file__).parent / "requests.json"))["components"]["schemas"]
    for name, schema in ours.items():
        if schema != strip(copy.deepcopy(vendor["components"]["schemas"][name])):
            bad += 1
            print("requests.json: %s is not the vendor's any more" % name)
    sys.exit(1 if bad else 0)


def strip(value, of_members=False):
    if isinstance(value, list):
        return [strip(v) for v in value]
    if not isinstance(value, dict):
        return value
    words = ("description", "example", "examples", "default", "format")
    return {
        k: strip(v, k == "properties" and not of_members)
        for k, v in value.items()
        if of_members or (k not in words and not k.startswith("x-"))
    }


main()
