"""dispatch.py - what the part `dispatch` of bench.sh reckons for itself: texts, and the least time that their batches can take.

    dispatch.py texts N [unlike]    N lines of a job: the quiz's own texts, again and again; unlike: each tenth is six of them
    dispatch.py best N PODS BATCH ONCE LONGEST EACH [unlike]    "COMPUTE MAKESPAN" in seconds
    dispatch.py beside N BATCH LONGEST EACH unlike    the same on one pod, for an engine that takes texts while it renders others

A batch takes ONCE + LONGEST x its longest text + EACH x the sum of its texts. Neither figure knows of a canary, of a pod that
comes up late or of a message's way: no dispatcher can be better."""

import json
import sys


def texts(count, unlike=False):
    with open("config/examples/quiz/quiz.jsonl", encoding="utf-8") as f:
        quiz = [json.loads(line)["text"] for line in f]
    return [" ".join(quiz[(i + k) % len(quiz)] for k in range(6 if unlike and i % 10 == 9 else 1)) for i in range(count)]


def by_count(lengths, most, once, longest, each, batches):
    """The least time of all batches, for each number of batches. In the best partition each batch is a run of the sorted list:
    swapping a longer text into the batch that has the longer longest one never makes the other batch longer."""
    lengths = sorted(lengths, reverse=True)
    n = len(lengths)
    sums = [0]
    for length in lengths:
        sums.append(sums[-1] + length)
    best = [[0.0] + [float("inf")] * n]
    for k in range(1, batches + 1):
        row = [float("inf")] * (n + 1)
        for end in range(1, n + 1):
            row[end] = min(best[k - 1][begin] + once + longest * lengths[begin] + each * (sums[end] - sums[begin])
                           for begin in range(max(0, end - most), end))
        best.append(row)
    return [row[n] for row in best]


def least(lengths, pods, most, once, longest, each):
    """Of the makespan this is a lower bound: all batches shared out evenly, to the second, over the pods that have one."""
    fewest = -(-len(lengths) // most)
    times = by_count(lengths, most, once, longest, each, fewest + 2 * pods)
    compute = min(times)
    makespan = min(max(times[k] / min(k, pods), once + (longest + each) * max(lengths)) for k in range(1, len(times)))
    return compute, makespan


def beside(lengths, most, longest, each):
    """A step takes LONGEST, and EACH for every text in it; each text needs as many steps as it has characters."""
    return max(longest * sum(lengths) / most + each * sum(lengths), (longest + each) * max(lengths))


def main():
    unlike = sys.argv[-1] == "unlike"
    if sys.argv[1] == "texts":
        for i, text in enumerate(texts(int(sys.argv[2]), unlike)):
            print(json.dumps({"id": f"s{i:04d}", "text": text}))
        return
    if sys.argv[1] == "beside":
        time = beside([len(text) for text in texts(int(sys.argv[2]), unlike)], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
        print("%.3f %.3f" % (time, time))
        return
    count, pods, most = (int(word) for word in sys.argv[2:5])
    once, longest, each = (float(word) for word in sys.argv[5:8])
    print("%.3f %.3f" % least([len(text) for text in texts(count, unlike)], pods, most, once, longest, each))


main()
