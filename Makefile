# SPDX-License-Identifier: Apache-2.0
#
# Entry points for people and CI: `make help` lists them. The work is in tools/, test/ and bench/.
# Variables: BUILD (directory, default build), MESONFLAGS (for meson), TESTFLAGS (for test/run).

BUILD = build
PREFIX = /usr/local
MESONFLAGS =
TESTFLAGS =

all: ## compile into build/ (needs the packages that `make deps` installs)
	tools/build $(BUILD) $(MESONFLAGS)

deps: ## install missing Debian packages for building, running and testing
	@tools/deps build test peer
	@tools/unpack

run: deps all ## demo: attach a network namespace to a network; run a container in a pod; remove both
	test/demo $(BUILD)

check: all ## the inner loop: unit tests, corpora, one test of each area, lint of changed files
	@tools/deps build test lint
	@tools/check --build $(BUILD) $(TESTFLAGS)

test: deps all ## run all tests; the last line is the total
	@test/run --build $(BUILD) $(TESTFLAGS)

lint: ## check format, static analysis, shell scripts, manual pages and our own rules
	@tools/deps build test lint fuzz
	@tools/lint/run

sanitize: deps ## run all tests under ASan and UBSan, and the tests of threaded code under TSan
	@tools/deps fuzz
	@tools/sanitize asan $(TESTFLAGS)
	@tools/sanitize tsan $(TESTFLAGS)

fuzz: ## run every fuzzer, FUZZ_SECONDS (default 60) in total
	@tools/deps build test fuzz
	@tools/fuzz

faults: deps all ## interrupt each operation at every system call: kill it, or make the call fail
	@test/run --build $(BUILD) --suite faults --all-points --timeout 14400 $(TESTFLAGS)

soak: deps all ## create and remove pods and containers for SOAK_MINUTES (default 5): resources must not grow
	HAWSER_BUILD="$(abspath $(BUILD))" test/sandbox test/soak

nightly: deps ## everything in full, several hours: faults, sanitizers, an hour of fuzzing, tests under load
	@tools/deps lint fuzz
	@tools/nightly

bench: deps all ## measure hawser and its peers side by side
	bench/run

conformance: deps all ## test with upstream's cnitool and plugins, containerd, crictl, critest (needs Go)
	test/conformance/run $(BUILD)

cross: ## compile everything for arm64 in a temporary Debian root
	tools/cross

install: all ## install everything: DESTDIR=, PREFIX=/usr/local
	meson configure $(BUILD) --prefix $(PREFIX)
	meson install -C $(BUILD) --quiet $(if $(DESTDIR),--destdir "$(abspath $(DESTDIR))")

clean: ## remove every build directory
	rm -rf build build-*

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 13

.NOTPARALLEL:
.PHONY: all deps run check test lint sanitize fuzz faults soak nightly bench conformance cross install clean help
