# SPDX-License-Identifier: Apache-2.0
#
# Entry points for people and CI: `make help` lists them. The work is in tools/, test/ and bench/.
# Variables: BUILD (directory, default build), MESONFLAGS (for meson), TESTFLAGS (for test/run).

BUILD = build
PREFIX = /usr/local
MESONFLAGS =
TESTFLAGS =

all: ## build into build/ (needs the packages of `make deps`)
	tools/build $(BUILD) $(MESONFLAGS)

deps: ## install missing Debian packages for building, running and testing
	@tools/deps build test peer
	@tools/unpack

run: deps all ## demo: attach a network namespace to a network, send traffic, detach it
	test/demo $(BUILD)

test: deps all ## run all tests; the last line is the total
	@test/run --build $(BUILD) $(TESTFLAGS)

lint: ## check format, static analysis, shell scripts, manual pages and our own rules
	@tools/deps build test lint
	tools/lint/run

sanitize: deps ## run all tests under ASan and UBSan, the threaded ones under TSan
	TESTFLAGS="$(TESTFLAGS)" tools/sanitize

fuzz: ## run every fuzzer, FUZZ_SECONDS (default 60) in total
	@tools/deps build test fuzz
	MESONFLAGS="$(MESONFLAGS)" tools/fuzz

faults: deps all ## kill or fail each operation at every one of its system calls
	test/faults/run --all

bench: deps all ## measure hawser and its peers side by side
	bench/run

conformance: deps all ## run upstream's cnitool, plugins, containerd, crictl and critest (needs Go)
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
.PHONY: all deps run test lint sanitize fuzz faults bench conformance cross install clean help
