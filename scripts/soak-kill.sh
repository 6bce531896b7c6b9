#!/usr/bin/env bash
# The long version of the kill test: 50 rounds (or as many as given) of kill -9 of the agent at random moments while
# producers, transactions and leader moves go on against a real Kafka. A seed makes the moments repeatable.
#
#   scripts/soak-kill.sh [ROUNDS] [SEED]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export SEGMIRROR_REQUIRE_KAFKA=1
export SEGMIRROR_KILL_ROUNDS=${1:-50}
export SEGMIRROR_KILL_SEED=${2:-$RANDOM$RANDOM}
echo "kill -9: $SEGMIRROR_KILL_ROUNDS rounds, seed $SEGMIRROR_KILL_SEED"
exec go test ./e2e/ -count=1 -v -timeout 60m -run '^TestKill_LeavesABatchExactPrefix$'
