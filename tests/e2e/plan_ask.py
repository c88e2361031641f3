#!/usr/bin/python3
"""plan_ask.py BURST - asks the planner questions and computes each answer by brute force over offers, pods and batches, by the formulas of a
render (a cold start; batches of once + longest x L + each x L x segments; three segments first) alone: none of the planner's code. For
plan_values.sh, in whose folder past pods of runpod took 41 s to come up and those of modal 13 s. Prints each wrong answer, then how many are
right. An answer is right if its pods are as good as the best ones, within 1 %, and its time and dollars are what these pods take."""

import json
import math
import subprocess
import sys

COLD = {"runpod": 41.0, "modal": 13.0}
CREATES_A_MINUTE = {"runpod": 54}
LENGTH, FETCH, RELEASE = 80, 0.1, 0.2
CARDS = {}


def offer(provider, gpu, price, **more):
    card = CARDS[gpu] if gpu in CARDS else {"vram_gb": 24}
    return {"provider": provider, "id": f"SECURE/EU/1/{gpu}", "gpu": gpu, "gpus": 1, "vram_gb": card["vram_gb"], "region": "EU", "spot": False,
            "stock": "high", "price_usd_hour": price, **more}


def carried(q, gpu):
    """The engine's figures on this card: of what is shared by bandwidth, of what each segment takes by compute."""
    had, card, share = CARDS[q["on"]], CARDS[gpu], q.get("host_share", 0)
    once, longest, each = q["speed"]
    if share >= 1:
        return once, longest, each
    return (once, longest * max(share, had["bandwidth_gb_s"] / card["bandwidth_gb_s"]), each * max(share, had["tflops"] / card["tflops"]))


def batch_s(speed, segments):
    return speed[0] + speed[1] * LENGTH + speed[2] * LENGTH * segments


def largest_batch(q, o):
    most = q.get("batch", 32)
    if "vram" in q:
        base, each = q["vram"]
        most = min(most, math.floor((o["vram_gb"] * 0.93 - 1 - base) / each))
    return most


def shared(q, o, pods, batch):
    """Seconds, billed seconds and the pods of a run with so many pods, all at once, and batches of at most this size."""
    n, speed, cold = q["segments"], carried(q, o["gpu"]), COLD[o["provider"]]
    first = min(3, largest_batch(q, o)) if n > 3 and (q["goal"] == "cost" or 3 < batch or largest_batch(q, o) < batch) else 0
    rest = n - first
    first_s = batch_s(speed, first) if first else 0
    rounds = math.ceil(rest / (batch * pods))
    batches = min(rounds * pods, rest)
    all_s = batches * (speed[0] + speed[1] * LENGTH) + speed[2] * LENGTH * rest
    waits = [60 * (i // CREATES_A_MINUTE[o["provider"]]) if o["provider"] in CREATES_A_MINUTE else 0 for i in range(pods)]
    late = max(waits)
    if late and sum(late - w for w in waits) >= all_s:
        return None  # the last one would find no work
    busy = rounds * all_s / batches
    if rounds == 1:
        busy = max(busy, batch_s(speed, min(batch, math.ceil(rest / batches))))
    lost = 0
    if o["spot"]:  # each interruption costs a cold start and half a batch
        work = first_s + all_s / pods
        lost = work / (8 * 3600) * (cold + all_s / batches / 2)
    time = cold + sum(waits) / pods + first_s + busy + lost + FETCH
    each = cold + all_s / pods + lost + FETCH + RELEASE
    billed = math.ceil(first_s + each - 1e-9) + (pods - 1) * math.ceil(each - 1e-9)
    return time, billed * o["price_usd_hour"] / 3600


def goodness(q, time, usd):
    if q["goal"] == "time":
        return time
    return usd + (q["value"] * time / 3600 if q["goal"] == "balanced" else 0)


def is_wanted(q, o):
    return (o["gpu"] in CARDS and o["stock"] != "none" and (not o["spot"] or q.get("spot")) and o["gpu"] in q.get("gpu", [o["gpu"]])
            and o["provider"] in q.get("only", [o["provider"]]) and o["price_usd_hour"] <= q.get("most_an_hour", math.inf)
            and largest_batch(q, o) >= 1)


def brute_force(q):
    """The best (goodness, time, dollars, offer, pods); None: nothing fits."""
    best = None
    widest = q.get("pods") or (1 if q["goal"] == "cost" else min(q["segments"], 200))
    for o in filter(lambda o: is_wanted(q, o), q["offers"]):
        for pods in range(q.get("pods") or 1, widest + 1):
            for batch in range(1, largest_batch(q, o) + 1):
                got = shared(q, o, pods, batch)
                if got and got[1] <= q.get("budget", math.inf) and (not best or goodness(q, *got) < best[0]):
                    best = (goodness(q, *got), *got, o, pods)
    return best


def ask(burst, q):
    with open("script.jsonl", "w") as f:
        f.writelines(json.dumps({"id": f"s{i:05d}", "text": "x" * LENGTH}) + "\n" for i in range(q["segments"]))
    with open("offers.json", "w") as f:
        json.dump(q["offers"], f)
    once, longest, each = q["speed"]
    vram = "vram_base = {}; vram_each = {};".format(*map(float, q["vram"])) if "vram" in q else ""
    caps = "".join(f"{k} = {v:.4f}; " for k, v in (("max_cost", q.get("budget", 500.0)), ("max_price_per_hour", q.get("most_an_hour"))) if v)
    with open("burst.cfg", "w") as f:
        f.write(f'provider = [{", ".join(chr(34) + p + chr(34) for p in q.get("only", ["runpod", "modal"]))}];\n' if "only" in q else "")
        f.write(f'goal = "{q["goal"]}"; {"value_of_time = %.4f;" % q["value"] if "value" in q else ""}\n')
        f.write(f'caps = {{ {caps}max_duration = "24h"; }};\n{"spot = true;" if q.get("spot") else ""}\n')
        if "gpu" in q:
            f.write(f'gpu = [{", ".join(chr(34) + g + chr(34) for g in q["gpu"])}];\n')
        if "pods" in q:
            f.write(f'pods = {q["pods"]};\n')
        f.write(f'job = {{ name = "q"; type = "tts"; engine = "own"; input = "script.jsonl"; voice = "en"; output = "out"; worker = "true"; '
                f'vram_gb = {q.get("vram_gb", 8)}; max_batch = {q.get("batch", 32)}; estimate = {{ gpu = "{q["on"]}"; once = {once:.6f}; '
                f'longest = {longest:.6f}; each = {each:.6f}; host_share = {q.get("host_share", 0):.3f}; {vram} }}; }};\n')
    run = subprocess.run([burst, "plan", "--offers", "offers.json", "--json"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout.strip().split("\n")[-1]), run


def judge(q, plan):
    """What is wrong with the answer; "": nothing."""
    best, pick = brute_force(q), plan["pick"]
    if not best:
        return "" if not pick or plan["verdict"] != "found" else f"{pick['gpu']}, where nothing serves"
    if plan["verdict"] != "found":
        return f"{plan['verdict']}, where {best[4]} x {best[3]['gpu']} serve"
    o = next(o for o in q["offers"] if (o["gpu"], o["provider"], o["spot"]) == (pick["gpu"], pick["provider"], pick["spot"]) and is_wanted(q, o))
    mine = min((got for b in range(1, largest_batch(q, o) + 1) if (got := shared(q, o, pick["pods"], b))),
               key=lambda got: abs(got[0] - pick["makespan_p50_s"]) + abs(got[1] - pick["cost_usd"]))
    said = f"{pick['pods']} x {pick['gpu']} at {pick['provider']}, {pick['makespan_p50_s']:.1f} s, ${pick['cost_usd']:.4f}"
    should = f"{best[4]} x {best[3]['gpu']} at {best[3]['provider']}, {best[1]:.1f} s, ${best[2]:.4f}"
    if abs(mine[0] / pick["makespan_p50_s"] - 1) > 0.01 or abs(mine[1] / pick["cost_usd"] - 1) > 0.01:
        return f"{said}: these take {mine[0]:.1f} s, ${mine[1]:.4f}"
    if goodness(q, pick["makespan_p50_s"], pick["cost_usd"]) > best[0] * 1.01:
        return f"{said}: best are {should}"
    return ""


def questions():
    mixed = [offer("runpod", "RTX 3090", 0.23), offer("runpod", "RTX 4090", 0.47), offer("runpod", "L40S", 0.81), offer("runpod", "H100 SXM", 2.55)]
    both = [offer("modal", "L4", 0.83), offer("runpod", "L4", 0.39), offer("modal", "A10", 1.13)]
    usual = {"on": "RTX 4090", "speed": (0.35, 0.009, 0.0011), "goal": "cost", "offers": mixed}
    yield "few segments", {**usual, "segments": 7}
    yield "many segments", {**usual, "segments": 3100}
    yield "very many", {**usual, "segments": 20000}
    yield "one by one", {**usual, "segments": 24, "batch": 1, "speed": (0, 0.031, 0)}
    yield "two by two", {**usual, "segments": 31, "batch": 2}
    yield "bandwidth alone", {**usual, "segments": 800, "speed": (0, 0.04, 0)}
    yield "compute alone", {**usual, "segments": 800, "speed": (0, 0, 0.004)}
    yield "the host alone", {**usual, "segments": 800, "speed": (0.5, 0.02, 0.001), "host_share": 1}
    yield "a share of the host", {**usual, "segments": 2500, "host_share": 0.6}
    yield "little work, two providers", {**usual, "segments": 9, "offers": both}
    yield "much work, two providers", {**usual, "segments": 5200, "offers": both}
    yield "memory bounds the batch", {**usual, "segments": 900, "vram": (14.5, 1.2)}
    yield "the small cards are too small", {**usual, "segments": 900, "vram": (21.6, 0.2)}
    yield "no card is large enough", {**usual, "segments": 900, "vram": (80, 1)}
    yield "spot", {**usual, "segments": 4000, "spot": True, "offers": mixed + [offer("runpod", "RTX 4090", 0.21, spot=True)]}
    yield "spot is not wanted", {**usual, "segments": 4000, "offers": mixed + [offer("runpod", "RTX 4090", 0.21, spot=True)]}
    yield "hardly cheaper on spot", {**usual, "segments": 15000, "spot": True, "offers": [offer("runpod", "RTX 4090", 0.47), offer("runpod", "RTX 4090", 0.4695, spot=True)]}
    yield "the cheapest is sold out", {**usual, "segments": 600, "offers": [offer("runpod", "RTX 3090", 0.11, stock="none"), *mixed[1:]]}
    yield "a card is named", {**usual, "segments": 600, "gpu": ["L40S"]}
    yield "no price so low", {**usual, "segments": 600, "most_an_hour": 0.21}
    yield "a price cap", {**usual, "segments": 20000, "most_an_hour": 0.4}
    yield "an unknown card", {**usual, "segments": 600, "offers": [*mixed, offer("runpod", "Bar 77", 0.05)]}
    yield "one provider", {**usual, "segments": 50, "offers": both, "only": ["modal"]}
    yield "the fastest, whatever it costs", {**usual, "segments": 2600, "goal": "time", "budget": 90.0}
    yield "the fastest for 20 cents", {**usual, "segments": 2600, "goal": "time", "budget": 0.20}
    yield "the fastest for a dollar, elsewhere", {**usual, "segments": 9000, "goal": "time", "budget": 1.0, "offers": both, "only": ["modal"]}
    yield "too little money", {**usual, "segments": 9000, "goal": "time", "budget": 0.02}
    for value in (0.3, 4.0, 60.0):
        yield f"an hour is worth ${value}", {**usual, "segments": 2600, "goal": "balanced", "value": value}
    # batches no larger than the first three segments: these are such a batch, and nobody waits for them
    yield "a batch for each pod", {**usual, "segments": 10, "speed": (0.3, 0.02, 0.006), "batch": 8, "host_share": 1, "goal": "time", "budget": 0.05,
                                   "offers": [offer("modal", "RTX 4090", 2.28), offer("runpod", "RTX 5090", 0.57)]}
    yield "a batch of three for each of many", {**usual, "segments": 150, "speed": (1.2, 0.02, 0.006), "batch": 4, "host_share": 0.3, "goal": "time",
                                                "budget": 0.5, "offers": [offer("runpod", "H100 SXM", 0.5)]}
    yield "three pods rather than four", {**usual, "segments": 40, "speed": (0.3, 0, 0.006), "vram": (4.0, 0.2), "host_share": 0.3, "goal": "balanced",
                                          "value": 2.0, "offers": [offer("modal", "RTX 3090", 0.63)]}
    yield "as many pods as named", {**usual, "segments": 2600, "goal": "time", "pods": 6, "budget": 50.0}


def main():
    burst = sys.argv[1]
    for card in json.loads(subprocess.run([burst, "gpus", "--json"], capture_output=True, text=True, check=True).stdout):
        CARDS[card["gpu"]] = card
    right = asked = 0
    for name, q in questions():
        plan, run = ask(burst, q)
        wrong = judge(q, plan) if plan.get("verdict") != "refused" else (run.stderr.strip().split("\n")[-1] if brute_force(q) else "")
        asked += 1
        right += not wrong
        if wrong:
            print(f"{name}: {wrong}")
    print(f"{right} of {asked} answers are right")


if __name__ == "__main__":
    main()
