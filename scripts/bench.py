#!/usr/bin/env python3
"""bench.py: k8sup beside building the same cluster by hand, on the same lab, in alternating pairs.

usage: bench.py [PAIRS]   3 pairs unless told otherwise; needs root and an idle machine

By hand is lab/by-hand.sh, `prepare` and `join`: the same packages, keys and images from the same mirror, every step
that can run side by side doing so. Each run begins with hosts that were built anew. Writes target/bench.json: the
medians (seconds, megabytes), and each run's own figures.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAB_FOLDER = Path(os.environ.get("K8SUP_LAB_DIR", "/var/tmp/k8sup-lab-bench"))
HOSTS = {
    "lb-0": "192.168.7.140",
    "cp1": "192.168.7.201",
    "cp2": "192.168.7.202",
    "cp3": "192.168.7.203",
    "w1": "192.168.7.204",
    "w2": "192.168.7.205",
    "w3": "192.168.7.206",
}
# The keys that by-hand.sh has kubeadm make.
SAME_KEYS = "\ncluster:\n  keyAlgorithm: ECDSA-P256"


def lab(*arguments):
    return [str(ROOT / "lab" / "lab"), *arguments]


def seconds(command):
    """How long a command takes; what it says goes to a log, which is shown when it fails."""
    log = ROOT / "target" / "bench.log"
    began = time.monotonic()
    with log.open("w") as out:
        code = subprocess.call(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=900)
    took = time.monotonic() - began
    if code != 0:
        sys.exit(f"bench: {' '.join(command)} ended with {code}:\n" + "\n".join(log.read_text().splitlines()[-30:]))
    return took


def rebuild():
    seconds(lab("rebuild", *HOSTS))


def by_hand():
    rebuild()
    prepare = seconds([str(ROOT / "lab" / "by-hand.sh"), "prepare"])
    join = seconds([str(ROOT / "lab" / "by-hand.sh"), "join"])
    return {"by_hand_s": prepare + join, "by_hand_prepare_s": prepare, "by_hand_join_s": join}


def k8sup(inventory, command, *arguments):
    """One run in the lab's network; gives its time, peak memory and processor time."""
    usage = ROOT / "target" / "bench.usage"
    program = ROOT / "target" / "release" / "k8sup"
    own = [sys.executable, __file__, "--usage", str(usage), str(program), command, str(inventory), *arguments]
    took = seconds(lab("run", "env", f"HOME={LAB_FOLDER}/home", *own))
    peak, processor = usage.read_text().split()
    return took, float(peak), float(processor)


def report_usage(file, command):
    """Runs a command and writes its peak memory (MB) and processor time (s) into a file."""
    code = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(file).write_text(f"{used.ru_maxrss / 1024:.1f} {used.ru_utime + used.ru_stime:.2f}")
    sys.exit(code)


def ssh_true():
    """`ssh HOST true` on all hosts at once."""
    options = f"-i {LAB_FOLDER}/id_ed25519 -o UserKnownHostsFile={LAB_FOLDER}/known_hosts -o BatchMode=yes -l pi"
    calls = " & ".join(f"ssh -F none {options} {address} true" for address in HOSTS.values() if address[-3:] != "204")
    # w1 has no other user than root.
    calls += f" & ssh -F none {options.replace('-l pi', '-l root')} {HOSTS['w1']} true"
    return seconds(lab("run", "sh", "-c", f"{calls} & wait"))


def by_k8sup(inventory):
    rebuild()
    apply, peak, processor = k8sup(inventory, "apply", "--yes")
    again, again_peak, again_processor = k8sup(inventory, "apply", "--yes")
    return {
        "apply_s": apply,
        "again_s": again,
        "ssh_true_s": ssh_true(),
        "reset_s": k8sup(inventory, "reset", "--yes")[0],
        "rss_mb": max(peak, again_peak),
        "apply_processor_s": processor,
        "again_processor_s": again_processor,
    }


def main(pairs):
    if os.geteuid() != 0:
        sys.exit("bench: the lab needs root")
    os.environ["K8SUP_LAB_DIR"] = str(LAB_FOLDER)
    subprocess.check_call(["cargo", "build", "--locked", "--release"], cwd=ROOT)
    inventory = ROOT / "target" / "bench.yaml"
    demo = (ROOT / "inventories" / "lab.yaml").read_text()
    inventory.write_text(demo.replace("/var/tmp/k8sup-lab/", f"{LAB_FOLDER}/").replace("\ncluster:", SAME_KEYS))
    runs = []
    try:
        subprocess.check_call(lab("up"))
        for pair in range(pairs):
            # Neither is always the one that finds the machine's caches warm.
            ways = [by_hand, lambda: by_k8sup(inventory)]
            figures = {}
            for way in ways if pair % 2 == 0 else reversed(ways):
                figures |= way()
            print(f"pair {pair + 1}: " + ", ".join(f"{name} {value:.1f}" for name, value in figures.items()), flush=True)
            runs.append(figures)
    finally:
        subprocess.call(lab("down"))
    medians = {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}
    (ROOT / "target" / "bench.json").write_text(json.dumps(medians | {"runs": runs}, indent=2) + "\n")
    print("median: " + ", ".join(f"{name} {value:.1f}" for name, value in medians.items()))
    print(f"apply takes {medians['apply_s'] / medians['by_hand_s']:.2f} times what it takes by hand")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--usage"]:
        report_usage(sys.argv[2], sys.argv[3:])
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
