#!/usr/bin/python3
"""plan_same.py - random offers and wishes, for plan_same.sh.

plan_same.py draw SEED     writes into the current folder: stock.jsonl (orders for the stand-in's catalog), burst.cfg, all/burst.cfg
                           (the same without its wishes, to save every offer), script.jsonl, wish (the flags of plan and run), pairs (GPUs of which two are offered to a pod)
plan_same.py bad           marks some of offers.json as avoided, by the seed in the file "seed", and prints SQL that has the ledger avoid them
plan_same.py differ A B    prints in which figures two plans differ
plan_same.py rented PLAN ROWS   prints in which the run's rows (JSON of sqlite3) differ from the plan"""

import hashlib
import json
import os
import random
import sys
import time

CARDS = ["RTX 4090", "RTX 5090", "RTX 3090", "L4", "L40S", "RTX A5000", "RTX A6000", "A40", "A100 80GB PCIe", "H100 SXM"]
RUNPOD = {"RTX 4090": "NVIDIA GeForce RTX 4090", "RTX 5090": "NVIDIA GeForce RTX 5090", "RTX 3090": "NVIDIA GeForce RTX 3090",
          "L4": "NVIDIA L4", "L40S": "NVIDIA L40S", "RTX A5000": "NVIDIA RTX A5000", "RTX A6000": "NVIDIA RTX A6000",
          "A40": "NVIDIA A40", "A100 80GB PCIe": "NVIDIA A100 80GB PCIe", "H100 SXM": "NVIDIA H100 80GB HBM3"}


def text_list(items):
    return "[" + ", ".join(f'"{i}"' for i in items) + "]"


def dollars(value):
    return f"{value:.4f}"


def draw_stock(r):
    """Prices of all cards; some are sold out, here or everywhere, or have no spot pods."""
    orders = []
    for card in CARDS:
        price = r.uniform(0.15, 3.0)
        orders.append({"gpu": RUNPOD[card], "price": {"secure": round(price, 2), "community": round(price * r.uniform(0.5, 1.1), 2)},
                       "bid": round(price * r.uniform(0.2, 1.0), 2)})
        if r.random() < 0.25:
            orders.append({"gpu": RUNPOD[card], "free": 0})
        elif r.random() < 0.4:
            orders.append({"gpu": RUNPOD[card], "dc": r.choice(["EU-RO-1", "US-KS-2", "US-TX-3"]), "free": 0})
        elif r.random() < 0.2:
            orders.append({"gpu": RUNPOD[card], "free": 1})
        if r.random() < 0.3:
            orders.append({"gpu": RUNPOD[card], "spot": 0})
    return orders


def draw_config(r, providers, cards):
    wishes, flags = {}, []

    def wish(key, value, flag=None):
        if flag and r.random() < 0.5:
            flags.extend(flag)
        else:
            wishes[key] = value

    pairs = [c for c in cards if r.random() < 0.15]
    if r.random() < 0.5:
        # each provider knows the name of one at least
        wanted = list({r.choice(cards), *r.sample(CARDS, r.randint(0, 2))}) + [f"{p}:2" for p in pairs[:1]]
        wanted.sort()
        r.shuffle(wanted)
        wish("gpu", text_list(wanted), ["--gpu", ",".join(wanted)])
    if r.random() < 0.4:
        wish("spot", "true", ["--spot"])
    pods = r.choice([None, None, None, 1, 2, 5])
    if pods:
        wish("pods", str(pods), ["--pods", str(pods)])
    goal = r.choice(["cost", "cost", "time", "balanced"])
    if goal == "balanced":
        value = dollars(10 ** r.uniform(-1, 2))
        wishes.update(goal='"balanced"', value_of_time=value)
    elif goal == "time":
        wish("goal", '"time"', ["--goal", "time"])
    if r.random() < 0.3:
        at = f"{r.choice([2, 5, 20, 120])}m"
        wish("deadline", f'"{at}"', ["--deadline", at])
    if len(providers) == 2 and r.random() < 0.4:
        flags += ["-p", r.choice(providers)]
    caps = {"max_cost": dollars(r.choice([0.02, 0.2, 2.0, 20.0])), "max_duration": '"3h"'}
    if r.random() < 0.35:
        caps["max_price_per_hour"] = dollars(r.choice([0.05, 0.4, 0.8, 1.5]))
    runpod = {}
    if r.random() < 0.7:
        runpod["cloud"] = f'"{r.choice(["COMMUNITY", "ANY", "SECURE"])}"'
    if r.random() < 0.2:
        runpod["datacenters"] = text_list(r.sample(["EU-RO-1", "EU-SE-1", "US-KS-2", "US-TX-3", "CA-MTL-1"], 2))
    return wishes, flags, caps, runpod, pairs


def write_configs(r):
    cards = r.sample(CARDS, r.randint(2, 5))
    local = {"gpu_prices": text_list([f"{c}={dollars(r.uniform(0.1, 3.0))}" for c in cards]), "capacity": str(r.randint(1, 3)),
             "boot_delay": f'"{r.choice([0, 200, 900])}ms"', "spot_price_per_hour": "1.0", "egress_price": dollars(r.choice([0, 0.09, 20.0]))}
    providers = r.choice([["runpod"], ["runpod"], ["runpod", "local_play"], ["local_play", "runpod"]])
    wishes, flags, caps, runpod, pairs = draw_config(r, providers, cards)
    scale = 10 ** r.uniform(-1, 0.7)
    estimate = f'gpu = "RTX 4090"; once = {0.3 * scale:.4f}; longest = {0.004 * scale:.6f}; each = {0.0006 * scale:.6f};'
    if r.random() < 0.3:
        estimate += f" vram_base = {r.choice([4, 14, 22, 40])}.0; vram_each = 0.5;"

    def group(keys):
        return " ".join(f"{k} = {v};" for k, v in keys.items())

    def config(wishes, caps, runpod):
        return (f"provider = {text_list(providers)};\n{group(wishes)}\n" f'caps = {{ {group(caps)} }};\npod = {{ image = "host/tts:1"; }};\n'
                'job = { name = "same"; type = "tts"; engine = "test"; input = "script.jsonl"; voice = "en"; output = "out"; vram_gb = 8;\n'
                f'\tworker = "sh \\"$BURST_CODE/worker.sh\\""; check = {{ enabled = false; }}; max_batch = {r_batch}; estimate = {{ {estimate} }}; }};\n'
                f'code = {{ path = "code"; }};\nwait = "2s";\nproviders = {{ runpod = {{ {group(runpod)} }}; local_play = {{ {group(local)} }}; }};\n')

    r_batch = r.choice([1, 4, 16])
    with open("burst.cfg", "w") as f:
        f.write(config(wishes, caps, runpod))
    os.mkdir("all")
    with open("all/burst.cfg", "w") as f:
        f.write(config({}, {"max_cost": "20.0"}, {"cloud": '"ANY"'}))
    with open("wish", "w") as f:
        f.write("\n".join(flags) + ("\n" if flags else ""))
    with open("pairs", "w") as f:
        f.write(",".join(f"{p}:2" for p in pairs).replace(" ", ""))
    with open("script.jsonl", "w") as f:
        for i in range(r.choice([1, 4, 12, 40])):
            f.write(json.dumps({"id": f"s{i:03d}", "text": "word " * r.randint(1, 60)}) + "\n")


def draw(seed):
    r = random.Random(int(seed))
    with open("seed", "w") as f:
        f.write(seed)
    with open("stock.jsonl", "w") as f:
        for order in draw_stock(r):
            f.write(json.dumps(order) + "\n")
    write_configs(r)


def bad():
    """Makes the ledger avoid a tenth of the offers, as a bad pod does (engine/past.c), and the saved ones say so."""
    r = random.Random(open("seed").read())
    now = int(time.time() * 1000)
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now / 1000 + 1800))
    offers = json.load(open("offers.json"))
    for o in offers:
        if r.random() < 0.9:
            continue
        key = hashlib.sha256(f"{o['id']}\n{o['region']}\n{int(o['spot'])}".encode()).hexdigest()[:24]
        mark = json.dumps({"at_ms": now, "until_ms": now + 1800000, "times": 1, "why": "it showed no GPU", "provider": o["provider"]})
        o["avoided"] = {"given_up_at": until, "until": until, "reason": "it showed no GPU"}
        print(f"insert into fact (name, value) values ('bad:{o['provider']}:{key}', '{mark}');")
    with open("offers.json", "w") as f:
        json.dump(offers, f)


FIGURES = ["provider", "gpu", "gpus", "region", "spot", "price_usd_hour", "pods", "batch", "makespan_p50_s", "makespan_p90_s", "cost_usd",
          "cost_p90_usd", "billed_s", "used", "seats", "storage_usd", "speed_from", "cold_p50_s", "cold_p90_s"]


def read_plan(path):
    with open(path) as f:
        return json.loads(f.read().strip().split("\n")[-1])


def differ(a, b):
    a, b = read_plan(a), read_plan(b)
    for key in ["verdict", "segments", "to_render"]:
        if a[key] != b[key]:
            print(f"{key}: {a[key]} and {b[key]}")
    picks = [a["pick"] or {}, b["pick"] or {}]
    for key in FIGURES:
        if picks[0].get(key) != picks[1].get(key):
            print(f"pick.{key}: {picks[0].get(key)} and {picks[1].get(key)}")
    fronts = [[(p["gpu"], p["provider"], p["pods"], p["cost_usd"]) for p in x["front"]] for x in (a, b)]
    if fronts[0] != fronts[1]:
        print(f"front: {fronts[0]} and {fronts[1]}")
    codes = [(x["error"] or {}).get("code") for x in (a, b)]
    if codes[0] != codes[1]:
        print(f"error: {a['error']} and {b['error']}")


def rented(plan, rows):
    plan = read_plan(plan)["pick"]
    text = open(rows).read().strip()
    rows = json.loads(text) if text else []
    if not rows:
        print("nothing was rented")
        return
    first, run = rows[0], rows[0]
    pods = run["pods"] if run["pods_open"] else plan["pods"]
    for key, got in [("provider", first["provider"]), ("gpu", first["gpu_offered"]), ("spot", bool(first["spot"])),
                     ("region", first["region"] if plan["region"] else ""), ("price_usd_hour", first["price_microusd_h"] / 1e6), ("pods", pods),
                     ("batch", run["batch"])]:
        if plan[key] != got:
            print(f"{key}: planned {plan[key]}, got {got}")
    if run["planned_ms"] != round(plan["makespan_p50_s"] * 1000):
        print(f"planned time: {plan['makespan_p50_s']} s, the run says {run['planned_ms']} ms")
    if abs(run["planned_microusd"] - plan["pods_usd"] * 1e6) > 1:
        print(f"planned cost: ${plan['pods_usd']}, the run says {run['planned_microusd']} micro-dollars")


if __name__ == "__main__":
    {"draw": draw, "bad": bad, "differ": differ, "rented": rented}[sys.argv[1]](*sys.argv[2:])
