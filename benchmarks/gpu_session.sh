#!/usr/bin/env bash
# What a quarter of an hour of a GPU is for, in one command that may be cut off and given again:
#
#     OUT=session benchmarks/gpu_session.sh
#
# 1. benchmarks/gpu_parts.py and `make gpu` (MODEL_BENCH, default demo), once each
# 2. answers of MODEL under none and mless: DRAW_SECONDS of them, kept in $OUT/draws as they are made
# 3. once they are whole, their likelihoods, kept in $OUT/scores
#
# A machine without an index takes its missing packages from wheels in .whl. $OUT from an earlier call is gone on with: bring
# it back first. REHEARSE=1 does all of it on a CPU in minutes, with the demo model and few tokens.
set -uo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-gpu_session}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || command -v python3)}
export PYTHONUNBUFFERED=1
TINY=()
if [ "${REHEARSE:-}" ]; then
  TINY=(--tiny)
  MODEL=${MODEL:-demo} DTYPE=float32 PROBLEMS=embedded
  ASKED=(--limit 2 --samples 2 --max-new-tokens 8)
else
  MODEL=${MODEL:-Qwen2.5-Coder-1.5B-Instruct} DTYPE=${DTYPE:-float32} PROBLEMS=${PROBLEMS:-math500}
  ASKED=(--samples 2 --max-new-tokens 1536)
fi
CONDITIONS=none,mless
SCORED=${SCORED:-none,mless,hidden-from-layer-1,arm}
DRAW_SECONDS=${DRAW_SECONDS:-360} SCORE_SECONDS=${SCORE_SECONDS:-240}
mkdir -p "$OUT"

if ls .whl/*.whl >/dev/null 2>&1; then
  [ -d "$OUT/.site" ] || "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --target "$OUT/.site" .whl/*.whl
  export PYTHONPATH="$OUT/.site:$PWD${PYTHONPATH:+:$PYTHONPATH}"
fi

# step NAME SECONDS COMMAND...: runs what has not been done yet.
step() {
  local name=$1 seconds=$2
  shift 2
  [ -e "$OUT/$name.done" ] && return 0
  echo "== $name" >&2
  timeout --signal INT --kill-after 20 "$seconds" "$@" 2>&1 | tee -a "$OUT/$name.log"
  local code=${PIPESTATUS[0]}
  [ "$code" -eq 0 ] && touch "$OUT/$name.done"
  return "$code"
}

step parts 300 "$PYTHON" benchmarks/gpu_parts.py ${TINY[@]+"${TINY[@]}"}
if [ -z "${REHEARSE:-}" ]; then
  step bench 240 "$PYTHON" benchmarks/gpu.py --model "${MODEL_BENCH:-demo}"
  cp -f benchmarks/results/gpu.csv "$OUT/"
fi
step draws "$DRAW_SECONDS" "$PYTHON" -m lib evaluate --model "$MODEL" --problems "$PROBLEMS" --conditions $CONDITIONS \
  --temperature 0.6 --top-p 1 --dtype "$DTYPE" "${ASKED[@]}" --out "$OUT/draws" || exit 1
step scores "$SCORE_SECONDS" "$PYTHON" -m lib likelihood --model "$MODEL" --problems "$PROBLEMS" --answers "$OUT/draws" \
  --conditions "$SCORED" --dtype "$DTYPE" --out "$OUT/scores"
