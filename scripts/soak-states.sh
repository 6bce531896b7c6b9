#!/usr/bin/env bash
# The long version of the power cut tests of the agent's own logs: random commands go on for ten minutes (or as many as
# given) while power is cut at syncs, between them and in the middle of rewrites; what was acknowledged must be there.
#
#   scripts/soak-states.sh [MINUTES]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=$((${1:-10} * 60 / 2)) # shared by the two logs
exec go test ./replicator/ -count=1 -v -timeout 120m -run 'AnyPowerCut$' -powercut "${seconds}s"
