# Needs Rust (stable), and on the first run a network: servers and the reference engine are fetched into
# ${HOLDFAST_CACHE:-~/.cache/holdfast} by tests/scripts/install-*.

BIN := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug

.PHONY: demo test reference soak bench fmt lint servers debezium

# A workload on a real MySQL, streamed, stopped in the middle and resumed.
demo: servers
	cargo build -q --workspace --bin holdfast --bin demo
	HOLDFAST_BIN=$(BIN)/holdfast $(BIN)/demo

# Formatting, lints, unit tests, everything on real servers, and the count of instructions. No JVM.
test: servers
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace --no-fail-fast
	tests/scripts/count-instructions

# The real Debezium beside Holdfast on the same server; regenerates tests/golden, which must leave no diff.
# A test among the targets makes cargo use the dependencies that the tests were built with.
reference: servers debezium
	cargo build -q --workspace --bin holdfast --bin reference --test it
	HOLDFAST_BIN=$(BIN)/holdfast $(BIN)/reference

# Long campaigns, by hand. HOLDFAST_EPISODES and HOLDFAST_SEED: tests/it/campaign.rs.
soak: servers
	cargo test --workspace --no-fail-fast -- --ignored
	HOLDFAST_EPISODES=$${HOLDFAST_EPISODES:-250} cargo test --workspace --test it campaign:: -- --nocapture
	for target in $$(ls tests/fuzz/seeds); do tests/scripts/fuzz $$target 10000000 || exit 1; done

# Criterion benches, then every decoder on the same files, in turn (benches/README.md).
bench:
	cargo bench -p holdfast-benches
	cargo run --release -q -p holdfast-benches --bin side_by_side

fmt:
	cargo fmt --all

lint:
	cargo clippy --workspace --all-targets -- -D warnings

servers:
	tests/scripts/install-mysql
	tests/scripts/install-mariadb
	tests/scripts/install-mariadb-11
	tests/scripts/install-s3

debezium:
	tests/scripts/install-debezium
