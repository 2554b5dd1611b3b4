"""Time and memory of tables and verdicts for very many problems, on simulated rows.

    python benchmarks/many_problems.py [--problems 100000]

No model runs: answers under none, mless and another filler, likelihoods of solutions
and sampled answers with their log-likelihoods are drawn at random. They go through
`summarise`, the tables of notebook 07 and all claims. Writes
benchmarks/results/many_problems.csv and prints it: seconds of the processor of each
step, and the greatest memory of the process so far in GB.
"""

import argparse
import resource
import sys
import time

import numpy as np
import pandas as pd
from measuring import keep

from lib.claims.claim import load_claims
from lib.claims.judging import judge
from lib.evaluation import answer_tables, likelihood_tables
from lib.evaluation.pass_rate_tables import pass_rate_table
from lib.evaluation.rows import frame
from lib.evaluation.weighted_pass_rates import scored_draws
from lib.profiles import SAMPLING_CONDITIONS

CONDITIONS = {
    "none": 0.40,
    "mless": 0.41,
    "mful": 0.42,
}  # probability of a right answer
SAMPLES = 2
TEMPLATE_SIZE = 4  # problems of one template
LIMITS = (256, 512, 1024)
UNIT_OF_MAXRSS = 1 if sys.platform == "darwin" else 1024  # bytes
GB = 1e9


def answers(ids: list[str], condition: str, sample: int, rng) -> pd.DataFrame:
    """Return a row per problem, answered under a condition."""
    n = len(ids)
    right = rng.random(n) < CONDITIONS[condition]
    rows = pd.DataFrame({"problem_id": ids, "correct": right})
    rows["key"] = [f"{condition}-{sample}-{number}" for number in range(n)]
    rows["finish_reason"] = np.where(rng.random(n) < 0.9, "stop", "length")
    rows["completion_tokens"] = rng.integers(20, 1024, n)
    same = {"model": "simulated", "condition": condition, "sample": sample}
    same |= {"level": 1, "subject": "", "answer": "1", "response": "1"}
    same |= {"run_on": False, "elicited": False, "method": "equal", "evaluated": True}
    rows = rows.assign(**same)
    for grader in answer_tables.GRADERS:
        if grader != "worked_out":
            rows[grader] = right
    return frame(rows.to_dict("records"))


def solutions(ids: list[str], rng) -> pd.DataFrame:
    """Return a log-likelihood of each problem's solution under each condition."""
    tables = []
    under_none = -200 + 30 * rng.standard_normal(len(ids))
    for number, condition in enumerate(CONDITIONS):
        nats = under_none + number / 10 * rng.standard_normal(len(ids))
        tables.append(pd.DataFrame({"problem_id": ids, "nats": nats}))
        tables[-1]["condition"] = condition
    return pd.concat(tables).assign(model="simulated", target="solution", tokens=100)


def draws(ids: list[str], rng) -> pd.DataFrame:
    """Return SAMPLES answers per problem and sampling condition, scored under both."""
    halves = [
        answers(ids, half, at, rng)
        for half in SAMPLING_CONDITIONS
        for at in range(SAMPLES)
    ]
    every = pd.concat(halves, ignore_index=True)
    nats = -100 + 20 * rng.standard_normal(len(every))
    scores = []
    for condition in SAMPLING_CONDITIONS:
        near = nats + 0.3 * rng.standard_normal(len(every))
        scores.append(pd.DataFrame({"answer": every["key"], "nats": near}))
        scores[-1]["condition"] = condition
    return scored_draws(every, pd.concat(scores)).assign(model="simulated")


def main() -> None:
    """Simulate the rows, take each step once, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    n = parser.parse_args().problems
    rng = np.random.default_rng(0)
    ids = [f"embedded/{number // TEMPLATE_SIZE}/{number}" for number in range(n)]
    single = pd.concat([answers(ids, name, 0, rng) for name in CONDITIONS])
    # The claim about the largest of several gains uses another part.
    parts = [single, single.assign(part="arm_map")]
    evidence = {
        "answers": pd.concat(parts, ignore_index=True).assign(plain=True),
        "scores": solutions(ids, rng),
        "draws": draws(ids, rng),
    }
    steps = {
        "rows": lambda: None,
        "summarise": lambda: answer_tables.summarise(single),
        "graders": lambda: answer_tables.graders(single),
        "by limit": lambda: answer_tables.by_limit(single, LIMITS),
        "likelihoods": lambda: likelihood_tables.nat_table(evidence["scores"]),
        "pass rates": lambda: pass_rate_table(
            evidence["draws"], [SAMPLING_CONDITIONS[::-1]]
        ),
        "claims": lambda: judge(load_claims(), {"simulated": evidence}),
    }
    rows = []
    for step, run in steps.items():
        start = time.process_time()
        run()
        row = {"step": step, "seconds": time.process_time() - start}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT_OF_MAXRSS
        rows.append(row | {"peak_gb": peak / GB})
        print(rows[-1], flush=True)
    table = keep("many_problems", pd.DataFrame(rows), problems=n)
    print(table[list(rows[0])].to_string(index=False))


if __name__ == "__main__":
    main()
