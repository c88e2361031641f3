#!/usr/bin/env python3
"""client.py PACKAGES URL WHAT - Vast's own client library at the stand-in, with the key in VAST_API_KEY. It prints what it gets as
JSON; WHAT is one of:

first       searches, rents a machine, lists, shows, starts and renames it, reads its log and its charges, and destroys it
list        its instances, as {"id": label}
destroy ID  ends this instance
"""

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")  # requests misses a package that it does not need
sys.path.insert(0, sys.argv[1])
from vastai.api import billing, instances, offers  # noqa: E402
from vastai.api.client import VastClient  # noqa: E402


def first(client):
    """What the client has to say of each step of a life."""
    said = {"user": billing.show_user(client)["credit"]}
    found = offers.search_offers(client, {"gpu_name": {"eq": "RTX 4090"}, "num_gpus": {"eq": 1}}, order=[["dph_total", "asc"]], limit=1, storage=10)
    said["offers"] = [offer["gpu_name"] for offer in found]
    said["bids"] = len(offers.search_offers(client, {"gpu_name": {"eq": "RTX 4090"}}, offer_type="interruptible"))
    made = instances.create_instance(client, found[0]["id"], image="host/x", disk=10, env={"A": "b", "-p 22:22": "1"}, label="theirs",
                                     runtype="args", args=["sh", "-c", "echo hello; sleep 600"], onstart_cmd="/usr/bin/env", cancel_unavail=True)
    one = made["new_contract"]
    said["listed"] = [(row["id"] == one, row["label"], row["extra_env"]) for row in instances.show_instances(client)]
    said["shown"] = instances.show_instance(client, one)["gpu_name"]
    said["started"] = instances.start_instance(client, one)["success"]
    said["renamed"] = instances.label_instance(client, one, "renamed")["success"]
    said["label"] = instances.show_instance(client, one)["label"]
    said["log"] = isinstance(instances.logs(client, one, tail="10"), str)
    charges = billing.show_invoices_v1(client, {"charges": True, "limit": 20, "charge_type": ["instance"]})["results"]
    said["charges"] = [(charge["source"] == f"instance-{one}", charge["type"]) for charge in charges]
    said["destroyed"] = instances.destroy_instance(client, one)["success"]
    said["left"] = len(instances.show_instances(client))
    said["gone"] = instances.show_instance(client, one)
    return said


def main():
    client = VastClient(api_key=os.environ["VAST_API_KEY"], server_url=sys.argv[2])
    what = sys.argv[3]
    if what == "first":
        said = first(client)
    elif what == "list":
        said = {str(row["id"]): row["label"] for row in instances.show_instances(client)}
    else:
        said = instances.destroy_instance(client, int(sys.argv[4]))
    print(json.dumps(said))


main()
