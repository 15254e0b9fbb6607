#!/usr/bin/env python3
"""bench_fanout.py: `k8sup exec` beside OpenSSH, ansible-core and pyinfra, on many hosts at once.

usage: bench_fanout.py [HOSTS…]   200 and 1000 unless told otherwise; needs root and an idle machine

All hosts are addresses of one OpenSSH server in a network namespace of its own, so that the network costs nothing and the
client's own work shows. Each runs `true` everywhere; host keys are checked by all. Writes target/bench-fanout.json: wall
time (s), and the processor time of the client and its children a host (ms). The server's is not in it.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "fanout"
SPACE = "k8sup-fanout"
NETWORK = "10.50.0.0/16"
AT_ONCE = 64
ANSIBLE = "ansible-core==2.19.14"
PYINFRA = "pyinfra==3.10.0"


def within(*command):
    return ["ip", "netns", "exec", SPACE, *command]


def address(number):
    return f"10.50.{number // 250}.{number % 250 + 1}"


def serve():
    """One server for all addresses; gives its process."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "home").mkdir(parents=True)
    FOLDER.chmod(0o700)
    for key in ("host", "user"):
        subprocess.check_call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(FOLDER / key)])
    shutil.copy(FOLDER / "user.pub", FOLDER / "authorized_keys")
    (FOLDER / "sshd_config").write_text(
        f"HostKey {FOLDER}/host\nAuthorizedKeysFile {FOLDER}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nMaxStartups 5000\nUseDNS no\n"
        # What this machine's own login files do at every login is nobody's work here.
        f"SetEnv HOME={FOLDER}/home\n"
    )
    # From OpenSSH 9.8 on it keeps those waiting who come often.
    if subprocess.run(["/usr/sbin/sshd", "-t", "-f", str(FOLDER / "sshd_config"), "-o", "PerSourcePenalties=no"], capture_output=True).returncode == 0:
        with (FOLDER / "sshd_config").open("a") as config:
            config.write("PerSourcePenalties no\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    subprocess.check_call(["ip", "netns", "add", SPACE])
    subprocess.check_call(within("ip", "link", "set", "lo", "up"))
    subprocess.check_call(within("ip", "route", "add", "local", NETWORK, "dev", "lo"))
    server = subprocess.Popen(within("/usr/sbin/sshd", "-D", "-f", str(FOLDER / "sshd_config"), "-E", str(FOLDER / "log")))
    for _ in range(100):
        if subprocess.run(within("ss", "-Hltn", "sport = :22"), capture_output=True, check=True).stdout:
            return server
        time.sleep(0.05)
    sys.exit(f"bench-fanout: sshd does not listen: {(FOLDER / 'log').read_text()}")


def tools():
    """ansible-core and pyinfra in an environment of their own."""
    place = ROOT / "target" / "fanout-tools"
    if not (place / "bin" / "pyinfra").exists():
        subprocess.check_call([sys.executable, "-m", "venv", str(place)])
        subprocess.check_call([str(place / "bin" / "pip"), "install", "-q", ANSIBLE, PYINFRA])
    return place / "bin"


def commands(hosts, programs):
    """How each of them is called, by name."""
    known = FOLDER / "known_hosts"
    host_key = (FOLDER / "host.pub").read_text().rsplit(" ", 1)[0]
    known.write_text("".join(f"{host} {host_key}\n" for host in hosts))
    listed = FOLDER / "hosts"
    listed.write_text("\n".join(hosts) + "\n")
    key = FOLDER / "user"
    ssh = f"-F none -i {key} -o UserKnownHostsFile={known} -o BatchMode=yes"

    inventory = FOLDER / "inventory.yaml"
    workers = "".join(f"  w{number}: {host}\n" for number, host in enumerate(hosts[1:], 1))
    inventory.write_text(
        f"cluster: {{ name: fanout, kubernetes: v1.34.4, podCidr: 10.128.0.0/12 }}\nssh: {{ user: root, key: {key}, knownHosts: {known} }}\n"
        f"controllers:\n  cp0: {hosts[0]}\nworkers:\n{workers}"
    )
    ansible = FOLDER / "ansible.ini"
    ansible.write_text("[all:vars]\nansible_user=root\n" + f"ansible_ssh_private_key_file={key}\n[all]\n" + listed.read_text())
    pyinfra = FOLDER / "pyinfra_hosts.py"
    settings = {"ssh_user": "root", "ssh_key": str(key), "ssh_known_hosts_file": str(known), "ssh_strict_host_key_checking": "yes"}
    pyinfra.write_text(f"hosts = [(host, {settings!r}) for host in open({str(listed)!r}).read().split()]\n")
    return {
        "k8sup exec": [str(ROOT / "target/release/k8sup"), "exec", str(inventory), "--parallel", str(AT_ONCE), "--", "true"],
        "OpenSSH and xargs": ["sh", "-c", f"xargs -P {AT_ONCE} -I HOST ssh {ssh} root@HOST true <{listed}"],
        "ansible-core, raw": [
            str(programs / "ansible"), "all", "-i", str(ansible), "-m", "raw", "-a", "true", "-f", str(AT_ONCE), "-o",
            f"--ssh-common-args=-o UserKnownHostsFile={known}",
        ],
        "pyinfra": [str(programs / "pyinfra"), "-y", "--parallel", str(AT_ONCE), str(pyinfra), "exec", "--", "true"],
    }


def measure(name, command, count):
    """Wall time in seconds, and processor time of the client a host in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = FOLDER / "output"
    began = time.monotonic()
    environment = os.environ | {"HOME": str(FOLDER), "ANSIBLE_HOME": str(FOLDER / "ansible"), "SSH_AUTH_SOCK": ""}
    with log.open("w") as out:
        code = subprocess.call(within(*command), stdout=out, stderr=subprocess.STDOUT, env=environment, timeout=1200)
    took = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = {"hosts": count, "wall_s": round(took, 2), "processor_ms_a_host": round(used / count * 1000, 1), "exit_code": code}
    print(f"{count:5} hosts  {name:18} {took:7.1f} s  {row['processor_ms_a_host']:6.1f} ms a host", flush=True)
    if code != 0:
        print("       ended with", code, "\n", "\n".join(log.read_text().splitlines()[-5:]), flush=True)
    return row


def main(counts):
    if os.geteuid() != 0:
        sys.exit("bench-fanout: network namespaces need root")
    subprocess.check_call(["cargo", "build", "--locked", "--release"], cwd=ROOT)
    programs = tools()
    rows = {}
    server = serve()
    try:
        for count in counts:
            for name, command in commands([address(number) for number in range(count)], programs).items():
                rows.setdefault(name, []).append(measure(name, command, count))
    finally:
        server.terminate()
        server.wait(10)
        subprocess.call(["ip", "netns", "del", SPACE])
    (ROOT / "target" / "bench-fanout.json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or [200, 1000])
