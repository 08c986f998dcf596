#!/bin/sh
# mini-swe-agent 2.4 plays ProjForge in a git clone of its project.
#
#   python3 -m venv mini && mini/bin/pip install 'mini-swe-agent>=2.4,<3'
#   owa-bench run --suite projforge --tier 1 --agent 'mini=clone:sh mini_swe_agent.sh MODEL' \
#       --model-url ADDRESS --act-seconds 1800 --out runs/mini
#
# Run it in the folder of this file, where `mini` lies too: the sandbox shows the folder alone.
set -eu
here=$(dirname "$(readlink -f "$0")")
export MSWEA_CONFIGURED=true MSWEA_SILENT_STARTUP=1 MSWEA_COST_TRACKING=ignore_errors
export MSWEA_GLOBAL_CONFIG_DIR="${TMPDIR:-/tmp}/mini-swe-agent" LITELLM_LOCAL_MODEL_COST_MAP=True
exec "$here/mini/bin/python" -m minisweagent.run.mini --model "openai/$1" --task "$(cat "$BRIEF" "$TODAY")" \
    --yolo --exit-immediately --cost-limit 0 --output "$MSWEA_GLOBAL_CONFIG_DIR/last.json" </dev/null
