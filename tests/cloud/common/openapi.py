"""openapi.py - requests of a translator, and replies of a stand-in, held against a vendor's published OpenAPI file.

A request is {"method", "url", "body"}, with "status" and "reply" where it was answered.
"""

import json
import re
import sys
from urllib.parse import parse_qsl, urlsplit

import jsonschema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class OpenApi:
    """closed: an object takes no member that the file does not list, and 3.0's "nullable" is a type. filters: paths whose bodies have
    members of which the file lists some operators alone. known: beginnings of what is not a mistake of ours."""

    def __init__(self, doc, closed=False, filters=(), known=(), parameters=()):
        self.doc, self.closed, self.filters, self.known, self.parameters = doc, closed, filters, known, parameters

    def resolve(self, node):
        while "$ref" in node:
            at = self.doc
            for part in node["$ref"][2:].split("/"):
                at = at[part.replace("~1", "/").replace("~0", "~")]
            node = at
        return node

    def close(self, schema):
        if not isinstance(schema, dict):
            return schema
        out = dict(self.resolve(schema))
        if out.pop("nullable", False) and isinstance(out.get("type"), str):
            out["type"] = [out["type"], "null"]
        if "properties" in out:
            out["properties"] = {k: self.close(v) for k, v in out["properties"].items()}
            out.setdefault("additionalProperties", False)
        if "items" in out:
            out["items"] = self.close(out["items"])
        return out

    def error(self, schema, value, filters=False):
        """The first thing that is wrong with the value; None: nothing."""
        if self.closed:
            schema = self.close(schema)
        else:
            schema = {"$schema": DRAFT, "components": self.doc["components"], **schema}
        for member in schema["properties"].values() if filters else ():
            if member.get("type") == "object":
                member["additionalProperties"] = True
        for e in jsonschema.Draft202012Validator(schema).iter_errors(value):
            why = f"{'/'.join(map(str, e.absolute_path)) or '$'}: {e.message[:200]}"
            if not why.startswith(self.known):
                return why
        return None

    def route(self, path):
        for template, item in sorted(self.doc["paths"].items(), key=lambda kv: kv[0].count("{")):
            if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template.rstrip("/")), path.rstrip("/")):
                return template.rstrip("/"), item
        return None, None

    def kind(self, r):
        path = urlsplit(r["url"]).path
        return f'{r["method"]} {self.route(path)[0] or path}'

    def wrong_parameter(self, template, item, op, query):
        known = {p["name"]: p for p in map(self.resolve, item.get("parameters", []) + op.get("parameters", [])) if p["in"] == "query"}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if (template, name) in self.parameters:
                continue
            if name not in known:
                return f"{template} knows no parameter {name}"
            schema = self.resolve(known[name].get("schema", {}))
            kind = schema.get("type")
            typed = (value.split(",") if kind == "array" else int(value) if kind == "integer" else json.loads(value)
                     if kind in ("object", "boolean") else value)
            why = self.error(schema, typed)
            if why:
                return f"{template}?{name}={value}: {why}"
        return None

    def problem(self, r):
        """What is wrong with a request, or with its reply; None: nothing."""
        parts = urlsplit(r["url"])
        template, item = self.route(parts.path)
        op = item and item.get(r["method"].lower())
        if not op:
            return f"no {r['method']} {parts.path}"
        why = self.wrong_parameter(template, item, op, parts.query)
        want = self.resolve(op.get("requestBody", {}))
        body = r.get("body")
        if not why and body is None and want.get("required") and not self.closed:
            why = "a body is required"
        if not why and body is not None:
            why = (self.error(want["content"]["application/json"]["schema"], body, template in self.filters) if want
                   else f"{r['method']} {template} takes no body")
        if why or "reply" not in r:
            return why
        answer = op["responses"].get(r["status"])
        if not answer:
            return f"{r['method']} {template} has no answer {r['status']}"
        schema = self.resolve(answer).get("content", {}).get("application/json", {}).get("schema")
        why = schema and self.error(schema, r["reply"])
        return why and f"the stand-in's reply {r['status']}: {why}"


def judge(name, api, below, requests, wrong, wanted, skip=lambda r: False):
    """Prints a line for each test and exits. below: what paths begin with. wrong: requests that must not pass. wanted: kinds of
    requests that must be among those of the file. skip: those that the OpenAPI file is too old for."""
    for r in wrong:
        if not api.problem(r):
            print(f"FAILED {name}/t_closed: {r['body']} was accepted")
            sys.exit(1)
    print(f"ok {name}/t_closed")
    with open(requests, encoding="utf-8") as f:
        all_of_them = [r for r in map(json.loads, f) if urlsplit(r["url"]).path.startswith(below)]
    judged = [r for r in all_of_them if not skip(r)]
    kinds = {api.kind(r) for r in judged}
    bad = {f"{api.kind(r)}: {why}" for r, why in ((r, api.problem(r)) for r in judged) if why}
    bad |= {f"no {kind} was seen" for kind in wanted if kind not in kinds}
    for why in sorted(bad):
        print(f"FAILED {name}/t_requests: {why}")
    if not bad:
        print(f"ok {name}/t_requests ({len(judged)} requests of {len(kinds)} kinds; {len(all_of_them) - len(judged)} left out)")
    sys.exit(1 if bad else 0)
