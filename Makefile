# make install     .venv with the packages and the demo model, and nothing else; so does make alone
# make reproduce   every figure with its numbers: those of make families and make authors, and those
#                  of the demo model, which is measured on this machine, into figures/demo and results/demo
# make families    figures and verdicts of the families from stored results; FRESH=1 installs their weights as GGUF (1.8 GB)
#                  and measures again, which takes an hour or more
# make scores      likelihoods of the folders STORES="..." into data/families; notebooks and documents that show them again
# make authors     the same with the prompt of the paper's code
# make test        the linter, the type checker and every test but those for a GPU, vLLM or Ray
# make test-vllm   the test of the second engine, after installing it for the CPU
# make test-ray    the tests of lost workers, after installing Ray: minutes
# make lab         JupyterLab on the notebooks
# make report      the notebooks as web pages with an index, in a folder that can be published: results/report
# make conda       the same environment for conda users, with the demo model's weights
# make bench       timings on this machine, into benchmarks/results
# make gpu         throughput of received attention, likelihoods and answers on a GPU, into benchmarks/results
# make readme      the tables of docs/*.md from stored results, after `make reproduce` or `make bench` changed numbers
# make outputs     run the notebooks in place, so that they store the outputs that the tests compare
# Each target but conda first installs what is missing in .venv, and repeats nothing.

PYTHON ?= python3
PROFILE ?= demo
BIN := .venv/bin
READY := .venv/.ready
# The list of disabled JupyterLab extensions, which `jupyter labextension disable` writes.
LEFT_OUT := .venv/etc/jupyter/labconfig/page_config.json
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install reproduce families authors scores test test-vllm test-ray lab report conda bench gpu readme outputs

install: $(READY)

reproduce: families authors
	$(BIN)/python -m reproduction reproduce --profile $(PROFILE)

families: $(READY)
	$(if $(FRESH),$(BIN)/python -m pip install --quiet --no-deps -r requirements/families.txt)
	$(BIN)/python -m reproduction reproduce --profile families $(if $(FRESH),--fresh)

authors: $(READY)
	$(BIN)/python -m reproduction reproduce --profile authors --only 01,02,03,06,07,09

scores: $(READY)
	$(BIN)/python -m studies.store_results families likelihood $(STORES)
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False notebooks/0[678]*.ipynb
	$(BIN)/python -m docs.write

test: $(READY)
	$(BIN)/python -m ruff check .
	$(BIN)/pyrefly check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-vllm: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps -r requirements/vllm.txt
	$(BIN)/python -m pytest tests/generation/test_vllm_engine.py

test-ray: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps -r requirements/ray.txt
	$(BIN)/python -m pytest -m ray tests/generation/test_workers.py

lab: $(READY) $(LEFT_OUT)
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --LanguageServerManager.autodetect=False notebooks

report: $(READY)
	$(BIN)/jupyter nbconvert --to html --output-dir results/report notebooks/0*.ipynb
	cd results/report && for page in 0*.html; do echo "<p><a href=$$page>$${page%.html}</a></p>"; done > index.html

conda:
	conda env create -f environment.yml
	conda run -n meaningless-tokens python -m pip install --no-deps -r requirements/demo.txt

bench: $(READY)
	$(BIN)/python benchmarks/extraction.py
	$(BIN)/python benchmarks/likelihood.py
	$(BIN)/python benchmarks/generation.py

gpu: $(READY)
	$(BIN)/python benchmarks/gpu.py

readme: $(READY)
	$(BIN)/python -m docs.write

outputs: $(READY)
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False notebooks/0*.ipynb

# Without this, JupyterLab asks about news and looks for updates on the network.
$(LEFT_OUT): | $(READY)
	$(BIN)/jupyter labextension disable --log-level=WARN "@jupyterlab/apputils-extension:announcements"

$(READY): requirements.txt requirements/demo.txt requirements/constraints.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed (PYTHON=...)")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -r requirements.txt -c requirements/constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps -r requirements/demo.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@
