# ZoneStore. `make` alone lists what there is.
.DEFAULT_GOAL := help
.PHONY: help setup run cluster test soak bench fuzz lab lazy deb clean

export NODES DRIVES PORT DRIVE SIZE PROFILE DIRECTORY SECONDS_EACH SEED CMD

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'
	@echo
	@echo "  make run takes PORT=9000 DRIVE=data/drive0.zoned SIZE=64GiB PROFILE=hm-smr-14tb"

setup: ## Install what building and running need (Debian packages)
	@scripts/setup

run: ## Serve S3 on 127.0.0.1:9000 from an emulated drive; Ctrl-C stops
	@scripts/setup && exec scripts/run

cluster: ## A Swift cluster of zoned drives on this machine (NODES=4 DRIVES=2); scripts/cluster says more
	@scripts/setup && cargo build --release --quiet && scripts/cluster up $${NODES:+--nodes $$NODES} $${DRIVES:+--drives $$DRIVES}

test: ## Set up and run every check and test
	@scripts/setup --test && exec scripts/test

soak: ## Look longer and elsewhere, part by part (SECONDS_EACH=600 SEED=1)
	@scripts/setup --test && exec scripts/soak

bench: ## Measure against the plain device and the host's file system
	@scripts/setup && exec scripts/bench

fuzz: ## Fuzz every decoder of on-disk bytes for a while (SECONDS_EACH=60)
	@scripts/setup && exec scripts/fuzz

lab: ## Run CMD on a machine with zoned drives, such as CMD='blkzone report /dev/nullb0'
	@scripts/setup --lab && exec lab/run -- bash -c "$${CMD:-lsblk -z}"

lazy: ## Build and test the patches that leave ext4's metadata in its journal (docs/ext4-lazy.md)
	@kernel/ext4-lazy/build && exec kernel/ext4-lazy/test

deb: ## Build a Debian package in target/deb
	@scripts/setup && exec scripts/deb

clean: ## Remove what was built; drives in data/ stay
	@cargo clean --quiet
	@rm -rf .venv
