# SPDX-License-Identifier: Apache-2.0
#
# The front door. Each target is a line or two; the work is in tools/, test/ and bench/.
# Variables: BUILD (folder, default build), MESONFLAGS (options for meson), TESTFLAGS (for test/run).

BUILD = build
PREFIX = /usr/local
MESONFLAGS =
TESTFLAGS =

all: ## build into build/ (needs what `make deps` installs)
	tools/build $(BUILD) $(MESONFLAGS)

deps: ## install the Debian packages needed to build, run and test, where missing
	@tools/deps build test peer
	@tools/unpack

run: deps all ## the main job, end to end: attach a namespace to a network and detach it
	test/demo $(BUILD)

test: deps all ## all tests; the last line is the total
	@test/run --build $(BUILD) $(TESTFLAGS)

lint: ## format, static analysis, shell, man pages, and our own rules
	@tools/deps build test lint
	tools/lint/run

sanitize: deps ## all tests under ASan and UBSan, the threaded ones under TSan
	TESTFLAGS="$(TESTFLAGS)" tools/sanitize

fuzz: ## every fuzzer, FUZZ_SECONDS (default 60) in all
	@tools/deps build test fuzz
	MESONFLAGS="$(MESONFLAGS)" tools/fuzz

faults: deps all ## kill and fail each operation at every one of its system calls
	test/faults/run --all

bench: deps all ## measure against peers
	bench/run

conformance: deps all ## against Go's own cnitool, today's plugins and containerd, crictl and critest (where Go is present)
	test/conformance/run $(BUILD)

cross: ## compile everything for arm64, in a throw-away root
	tools/cross

install: all ## programs, plugins, library, headers, man pages: DESTDIR=, PREFIX=/usr/local
	meson configure $(BUILD) --prefix $(PREFIX)
	meson install -C $(BUILD) --quiet $(if $(DESTDIR),--destdir "$(abspath $(DESTDIR))")

clean: ## remove every build folder
	rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 13

.NOTPARALLEL:
.PHONY: all deps run test lint sanitize fuzz faults bench conformance cross install clean help
