#!/bin/sh
# The whole way to a level that a stranger may trust: three parties, each with a data
# folder and a key of its own. Needs owa-bench on the PATH; makes everything in $1.
#
#   sh examples/ceremony.sh /tmp/ceremony [AGENT]
#
# submitter  signs a placement of the agent, is challenged, plays, reveals, reports
# verifier   lists submitters, challenges the signed plan (a service), replays the run
#            and signs that
# reader     trusts the verifiers of a registry, and nobody else
#
# The agent `fixed` is decided after about 90 episodes.
set -eu
place=${1:?usage: sh examples/ceremony.sh FOLDER [AGENT]}
agent=${2:-fixed}
mkdir -p "$place"
run=$place/run
as() { who=$1; shift; OWA_BENCH_HOME=$place/$who owa-bench "$@"; }
hex_of() { sed -n 's/.*"public_hex": *"\([0-9a-f]*\)".*/\1/p' "$place/$1.json"; }

echo "== the verifier: a key, a service, a line in the readers' registry"
as verifier keygen verifier --json > "$place/verifier.json"
verifier=$(hex_of verifier)
cat > "$place/registry.toml" <<TOML
name = "ceremony"
[[verifier]]
name = "the verifier of this script"
key = "$verifier"
TOML
OWA_BENCH_HOME=$place/verifier owa-bench verifier serve --key verifier --port 0 \
  2> "$place/service.log" &
service=$!
trap 'kill $service 2> /dev/null || true' EXIT
until url=$(sed -n 's/^serving on //p' "$place/service.log") && [ -n "$url" ]; do
  kill -0 $service
  sleep 0.2
done

echo "== the submitter: a key, and the verifier puts it on the list of submitters"
as submitter keygen --json > "$place/submitter.json"
submitter=$(hex_of submitter)
as verifier verifier register "the submitter" --submitter "$submitter" --key verifier

echo "== the submitter: a signed plan, a challenge, the play, the reveal, the report"
as submitter place "$agent" --out "$run" --plan-only --challenger "$verifier"
as submitter challenge "$run" --url "$url"
as submitter place --out "$run" --resume
as submitter escrow reveal "$run"

echo "== the verifier: a replay of every episode, signed"
as verifier replay "$run" --sign --key verifier

echo "== the submitter: the report, with the registry that the readers name"
as submitter report "$run" --registry "$place/registry.toml"

echo "== a reader, who got the submitter's key from the submitter and not from the run"
as reader verify "$run" --registry "$place/registry.toml" --public-key "$submitter"
as reader recompute "$run"
as reader leaderboard "$run" --registry "$place/registry.toml" --out "$place/board"
