#!/usr/bin/env bash
# What thousands of partitions cost an agent: time until all are MIRRORING, memory, descriptors, disk, processor time and
# requests while nothing happens, how late a record is, restarts. Prints two tables and fails where an aim is missed.
#
#   scripts/scale.sh [all|kafka|served] [PARTITIONS] [IDLE_SECONDS]
#
# kafka   2,000 partitions in 200 topics of one real Kafka broker, with one pattern
# served  PARTITIONS (10,000) of a directory that one agent serves, mirrored by a second one
#
# Takes under five minutes on a calm machine of two cores. Everything it makes lies in the temporary directory and is
# removed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-all} in
all) tests='^TestScale_' ;;
kafka) tests='^TestScale_MirrorsEveryTopicOfABroker$' ;;
served) tests='^TestScale_MirrorsAServedDirectory$' ;;
*) echo "scripts/scale.sh: all, kafka or served, not $1" >&2; exit 2 ;;
esac
export SEGMIRROR_SCALE=1 SEGMIRROR_REQUIRE_KAFKA=1
export SEGMIRROR_SCALE_PARTITIONS=${2:-10000}
export SEGMIRROR_SCALE_IDLE_SECONDS=${3:-60}
echo "$(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg), at most $(ulimit -n) open files, $(go version | cut -d' ' -f3)"
# Lines are without their place in the source; a failing test prints its agents' output, too: only its end is of interest.
go test ./e2e/ -count=1 -v -timeout 20m -run "$tests" |
	sed -uE 's/^ *[a-z_]+\.go:[0-9]+: //; /^ +(time=|[a-z_]+=).*level=INFO/d'
