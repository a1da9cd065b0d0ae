# SPDX-License-Identifier: GPL-2.0
# The front door. Everything fetched lies below one folder, $(MQFAIR_CACHE);
# everything built below build/.

MQFAIR_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mqfair
export MQFAIR_CACHE

VENV   := $(MQFAIR_CACHE)/venv/bin
PYTHON := $(VENV)/python

JOB     ?= examples/four-cgroups.fio
BENCH   ?=
COST    ?=
# All measurements unless some are named; `make experiments EXPERIMENTS=--list` lists them.
EXPERIMENTS ?=
OPTIONS ?= --icount
SUITES  ?=
ONLY    ?=
# The kernel of the guests, one of `mqfair lab exec --help`; empty is the distribution's.
KERNEL  ?=
# The rows of the compile matrix, by name or by series of kernels; empty is all of them.
ROWS    ?=
# The time, the guest (uml or vm) and the seed of `make soak`; empty is another seed each time.
HOURS   ?= 1
ON      ?= uml
SEED    ?=
PREFIX  ?= /usr/local
# The key of gpg that signs repositories.
KEY     ?=
# A checkout of blktests, the groups or tests of it, and the schedulers ("all", or some).
BLKTESTS  ?= blktests
GROUPS    ?=
SCHEDULER ?=
RELEASE ?= $(shell uname -r)
HEADERS ?= /lib/modules/$(RELEASE)/build
# The types of the kernel; kernel/build looks for them if no file is named.
BTF     ?=

LIBDIR    = $(DESTDIR)$(PREFIX)/lib/mqfair
BINDIR    = $(DESTDIR)$(PREFIX)/bin
MANDIR    = $(DESTDIR)$(PREFIX)/share/man/man8
UNITDIR   = $(DESTDIR)$(PREFIX)/lib/systemd/system
UDEVDIR   = $(DESTDIR)$(PREFIX)/lib/udev/rules.d
SHAREDIR  = $(DESTDIR)$(PREFIX)/share
ZSHDIR    = $(SHAREDIR)/zsh/site-functions

GO = GOCACHE=$(MQFAIR_CACHE)/go/build GOMODCACHE=$(MQFAIR_CACHE)/go/modules go

KERNEL_PROFILE = $(if $(KERNEL),kernels)

BUILD_MODULE = /usr/bin/python3 kernel/build --headers $(HEADERS) $(if $(BTF),--btf $(BTF)) \
	--out build/module/$(RELEASE)
INSTALL_MODULE = /usr/bin/python3 kernel/install --root "$(DESTDIR)" --release $(RELEASE)
# The modules of all kernels, unless the user names one.
REMOVE_MODULES = /usr/bin/python3 kernel/install --root "$(DESTDIR)" --remove \
	$(if $(filter command environment,$(firstword $(origin RELEASE))),--release $(RELEASE))

.DEFAULT_GOAL := help
.PHONY: help new demo bench sim instructions experiments test kernels kernels-matrix test-kernels test-slow test-people test-debug blktests soak mutate module \
	module-arm64 uml shell gauntlet check-style man completion bootstrap deb rpm wheel nri repositories \
	install install-command install-sim install-module install-ssd uninstall clean

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: ## shares of four cgroups under every scheduler: table, bars, build/demo/ (5 minutes)
	lab/bootstrap demo
	$(PYTHON) -m lab module
	$(PYTHON) -m mqfair.bench.demo

bench: ## run fio job JOB under each scheduler in a guest with KERNEL; options in BENCH
	lab/bootstrap demo $(KERNEL_PROFILE)
	$(PYTHON) -m lab module $(KERNEL)
	$(PYTHON) -m mqfair bench $(if $(KERNEL),--kernel $(KERNEL)) $(BENCH) $(JOB)

sim: ## build the simulator, sim-run, which `mqfair sim` also does at its first use
	lab/bootstrap build
	[ -e build/sim-release/build.ninja ] || \
		meson setup build/sim-release -Dbuildtype=release -Db_sanitize=none
	ninja -C build/sim-release sim/sim-run

gauntlet: ## play drawn scenes in the simulator and judge each scheduler; options in ARGS
	lab/bootstrap test
	$(PYTHON) tests/gauntlet $(ARGS)

instructions: ## guest instructions per I/O beside none, by function; options in COST
	lab/bootstrap build guest
	/usr/bin/python3 -m experiments.instructions $(COST)

experiments: ## run the measurements of the documents, or EXPERIMENTS="shares ifq.weights" (hours)
	lab/bootstrap demo
	$(PYTHON) -m lab module
	[ -e build/tests/build.ninja ] || meson setup build/tests
	ninja -C build/tests tests/flash/flash-curve
	$(PYTHON) -m experiments --options='$(OPTIONS)' $(EXPERIMENTS)

test: ## run every test suite, or SUITES="unit sim gauntlet mt cli lab vm", ONLY=REGEX, KERNEL (15 minutes)
	lab/bootstrap test kernels
	$(PYTHON) tests/run $(if $(ONLY),--only "$(ONLY)") $(if $(KERNEL),--kernel $(KERNEL)) $(SUITES)

kernels: ## fetch the kernels 6.12 and 7.2 and build their modules, once (3 minutes)
	lab/bootstrap build guest kernels
	/usr/bin/python3 -m lab module 6.12
	/usr/bin/python3 -m lab module 7.2

kernels-matrix: ## compile both modules for every kernel that DKMS builds for, or ROWS="6.8 7.3" (25 minutes)
	lab/bootstrap build guest kernels
	/usr/bin/python3 -m lab matrix $(ROWS)

test-kernels: ## run all tests of guests on the kernels 6.1, 6.12 and 7.2
	lab/bootstrap test kernels
	$(PYTHON) tests/run --kernel 6.1,6.12,7.2 vm
	$(PYTHON) tests/run --kernel 6.12,7.2 --only 'while_hardware_queues_change|shares.by_weight\[' vm-slow

test-slow: ## run the tests that take too long for every run (two hours; once 15 minutes more to build)
	lab/bootstrap test kernels arm64
	/usr/bin/python3 -m lab compile uml
	$(PYTHON) tests/run explore-slow sim-sanitized sim-slow gauntlet-slow pages-slow vm-slow vm-uml soak arm64
	$(PYTHON) tests/run --kernel 7.2 --only '^(gauntlet|table|drives)\.' vm-slow
	$(PYTHON) tests/mutate.py --sample 15 --mechanical

test-people: ## test what people use beside the command: a terminal, Prometheus, a browser
	lab/bootstrap people
	$(PYTHON) tests/run people

soak: ## churn everything at once, with checked data, for HOURS in user-mode Linux, or ON=vm KERNEL=… SEED=…
	lab/bootstrap test kernels
	$(if $(filter uml,$(ON)),/usr/bin/python3 -m lab compile uml)
	$(PYTHON) tests/soak.py $(HOURS) --on $(ON) $(if $(KERNEL),--kernel $(KERNEL)) \
		$(if $(SEED),--seed $(SEED))

test-debug: ## run tests under lockdep, KASAN, KCSAN and failing allocations (about an hour; once 30 minutes to build)
	lab/bootstrap test kernels
	/usr/bin/python3 -m lab compile uml-debug
	/usr/bin/python3 -m lab compile kcsan
	$(PYTHON) tests/run vm-debug vm-kcsan

blktests: ## run BLKTESTS=FOLDER beside mq-deadline, or GROUPS="loop block/005", SCHEDULER, KERNEL (hours)
	lab/bootstrap build guest kernels blktests
	/usr/bin/python3 tests/blktests --checkout "$(BLKTESTS)" $(if $(KERNEL),--kernel $(KERNEL)) \
		$(if $(SCHEDULER),--schedulers "$(SCHEDULER)") $(ARGS) $(GROUPS)

mutate: ## break every line of the schedulers and of flash/, one at a time (hours)
	lab/bootstrap test
	$(PYTHON) tests/mutate.py --all

module: ## build mqfair.ko for the guests' KERNEL: 6.1, 6.12 or 7.2
	lab/bootstrap build guest $(KERNEL_PROFILE)
	/usr/bin/python3 -m lab module $(KERNEL)

module-arm64: ## compile mqfair.ko for arm64 with the headers of 6.12; no guest runs it
	lab/bootstrap arm64
	/usr/bin/python3 -m lab arm64

new: ## create a scheduler: make new NAME=edf
	@/usr/bin/python3 sched/new.py $(if $(NAME),"$(NAME)")

shell: ## open a shell in a guest with KERNEL and the module loaded
	lab/bootstrap build guest $(KERNEL_PROFILE)
	/usr/bin/python3 -m mqfair lab shell $(if $(KERNEL),--kernel $(KERNEL)) \
		--module "$$(/usr/bin/python3 -m lab module $(KERNEL))"

check-style: ## hold code, comments and documents to the rules of CONTRIBUTING.md (2 minutes)
	lab/bootstrap style
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(PYTHON) tests/style/words.py
	$(PYTHON) tests/style/length.py
	$(PYTHON) tests/style/terms.py
	$(PYTHON) tests/style/c_format.py
	$(PYTHON) tests/style/checkpatch.py
	$(PYTHON) tests/style/sparse.py
	shellcheck lab/bootstrap .ci/run
	shellcheck -s sh lab/init-initramfs.sh lab/init-guest.sh lab/guest-setup.sh

uml: ## build user-mode Linux, a guest with real CPUs: bench --on uml (13 minutes, once)
	lab/bootstrap build guest kernels
	/usr/bin/python3 -m lab compile uml
	/usr/bin/python3 -m lab module uml

man: ## write the man pages of the command to build/man/
	/usr/bin/python3 -m mqfair.manual.man build/man

completion: ## write the completions of bash, zsh and fish to build/completion/
	/usr/bin/python3 -m mqfair.manual.completion build/completion

bootstrap: ## install missing packages on this host (Debian 12), as make test does
	lab/bootstrap test

# The module comes first: without it the command has no use.
nri: ## build build/nri/mqfair-nri: weights for pods and containers of Kubernetes
	lab/bootstrap nri
	cd contrib/nri && $(GO) build -o ../../build/nri/mqfair-nri .

install: install-module ## install the module for RELEASE and the command (root)
	$(MAKE) --no-print-directory install-command

install-command: man completion ## install the command, its service, udev rule, pages, completions (root)
	install -d $(LIBDIR) $(BINDIR) $(MANDIR) $(UNITDIR) $(UDEVDIR)
	for unit in mqfair.service mqfair-metrics.service mqfair-metrics.socket; do \
		sed 's|@BINDIR@|$(PREFIX)/bin|' mqfair/system/$$unit > $(UNITDIR)/$$unit; done
	sed 's|@BINDIR@|$(PREFIX)/bin|' mqfair/system/99-mqfair.rules > $(UDEVDIR)/99-mqfair.rules
	for page in build/man/*.8; do gzip -9nc $$page > $(MANDIR)/$${page##*/}.gz; done
	install -Dm644 -t $(SHAREDIR)/bash-completion/completions build/completion/mqfair
	install -Dm644 -t $(ZSHDIR) build/completion/_mqfair
	install -Dm644 -t $(SHAREDIR)/fish/vendor_completions.d build/completion/mqfair.fish
	find mqfair lab -type f -not -name '*.pyc' -exec install -Dm644 {} $(LIBDIR)/{} \;
	printf '#!/bin/sh\nPYTHONPATH=%s exec /usr/bin/python3 -m mqfair "$$@"\n' \
		$(PREFIX)/lib/mqfair > $(BINDIR)/mqfair
	chmod 755 $(BINDIR)/mqfair
	@[ -n "$(DESTDIR)" ] || echo 'weights of systemd: systemctl daemon-reload;' \
		'systemctl enable --now mqfair'

deb: ## build the Debian packages mqfair, mqfair-dkms and mqfair-ssd-dkms in build/deb/
	lab/bootstrap packages
	packaging/deb

rpm: ## build RPM packages of the command and of the module in build/rpm/
	lab/bootstrap packages
	packaging/rpm/build

wheel: ## build the wheel of the command for PyPI, and its source archive, in build/wheel/
	lab/bootstrap build
	lab/bootstrap release
	packaging/wheel $(PYTHON)

release: ## build all files of a release in build/release/, twice, and compare them
	lab/bootstrap packages
	lab/bootstrap release
	packaging/release --python $(PYTHON)

repositories: ## make signed apt and yum repositories of build/release/ in build/repositories/: KEY=NAME
	lab/bootstrap packages
	packaging/repositories --key "$(KEY)"

install-sim: sim ## install the simulator for an installed command (root)
	install -Dm755 build/sim-release/sim/sim-run $(LIBDIR)/sim-run

install-module: ## install mqfair.ko for RELEASE alone (root)
	$(INSTALL_MODULE) --check
	$(BUILD_MODULE)
	$(INSTALL_MODULE) build/module/$(RELEASE)/mqfair.ko

install-ssd: ## install mqfair.ko and the virtual SSD, mqfair-ssd.ko, for RELEASE (root)
	$(INSTALL_MODULE) --check
	$(BUILD_MODULE) --with-ssd
	$(INSTALL_MODULE) build/module/$(RELEASE)/mqfair.ko build/module/$(RELEASE)/mqfair-ssd.ko

uninstall: ## remove the command and its service, and both modules for every kernel, or for RELEASE (root)
	$(REMOVE_MODULES)
	$(RM) -r $(LIBDIR)
	$(RM) $(MANDIR)/mqfair.8.gz $(MANDIR)/mqfair-*.8.gz
	$(RM) $(BINDIR)/mqfair $(UNITDIR)/mqfair.service $(UDEVDIR)/99-mqfair.rules
	$(RM) $(UNITDIR)/mqfair-metrics.service $(UNITDIR)/mqfair-metrics.socket
	$(RM) $(SHAREDIR)/bash-completion/completions/mqfair $(ZSHDIR)/_mqfair
	$(RM) $(SHAREDIR)/fish/vendor_completions.d/mqfair.fish

clean: ## remove build/; the cache with fetched files stays
	$(RM) -r build
