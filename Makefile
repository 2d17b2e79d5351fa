# Everything that a user or a contributor runs. 'make demo' and 'make test' set up what is missing.

# Where rustup puts cargo, for the first run after it was installed.
CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)

.PHONY: demo test test-long bench bootstrap clean

# Two programs, every placement, one table each.
demo: bootstrap
	cargo build --release --locked
	scripts/demo.sh

# All checks, as CI runs them.
test: bootstrap
	cargo xtask ci

# The same, then the slow tests and many more cases of every property.
test-long: bootstrap
	cargo xtask ci --long

# The benchmarks, each beside its last result on this machine.
bench: bootstrap
	cargo xtask bench

# Installs missing tools; quick when there is none.
bootstrap:
	@scripts/bootstrap.sh

clean:
	cargo clean
	rm -rf build
