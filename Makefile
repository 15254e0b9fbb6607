# The commands that the README names, and their parts.
.PHONY: demo test lint fast fuzz lab-test bench bench-fanout lab-up lab-down

# From nothing to a cluster that serves, in the lab. Needs root.
demo:
	scripts/demo.sh

# Everything that must be right before a change is taken.
test: lint fast lab-test

# Formatting, clippy, shellcheck, cargo deny.
lint:
	scripts/toolchain.sh clippy fmt
	scripts/lint.sh

# The tests that need nothing but this machine.
fast:
	$(if $(CI),scripts/browser.sh)
	$(if $(CI),scripts/openssh.sh)
	cargo test --locked

# Damaged probes and inventories, a minute for each target: no panic, no hang.
fuzz:
	for target in a_probe a_cluster an_inventory; do \
		K8SUP_FUZZ_SECONDS=60 K8SUP_FUZZ_SEED=$$(date +%s) \
			cargo test --locked --test it -- --exact "fuzz::$$target" || exit 1; \
	done

# k8sup on real hosts, in a lab of its own. Needs root.
lab-test:
	scripts/lab-test.sh

# apply beside building the same cluster by hand, in alternating pairs. Needs root and an idle machine; half an hour.
bench:
	scripts/bench.py

# `k8sup exec` beside OpenSSH, ansible-core and pyinfra on 200 and 1,000 addresses. Needs root.
bench-fanout:
	scripts/bench_fanout.py

# The demo's lab: seven Debian hosts in this machine (lab/README.md). Needs root.
lab-up:
	lab/lab up

lab-down:
	lab/lab down
