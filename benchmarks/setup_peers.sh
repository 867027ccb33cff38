#!/bin/sh
# Makes .venv-peers with the libraries that the benchmarks compare sapwood with.
#
#     sh benchmarks/setup_peers.sh            # PYTHON=python3.12 to choose the interpreter (3.10 to 3.12)
#
# One environment serves all: only libpecos asks for old numpy and scipy, the others accept them.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
PIP=".venv-peers/bin/python -m pip --quiet --disable-pip-version-check"

"$PYTHON" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' || {
    echo "libpecos 1.2.8 needs Python 3.10 to 3.12: PYTHON=python3.12 sh benchmarks/setup_peers.sh" >&2
    exit 1
}
"$PYTHON" -m venv .venv-peers
$PIP install numpy==1.26.4 scipy==1.13.1 scikit-learn==1.6.1
# libpecos names torch and transformers as dependencies; XR-Linear imports neither.
failed=
$PIP install --no-deps libpecos==1.2.8 || failed="$failed libpecos"
$PIP install omikuji==0.5.2 || failed="$failed omikuji"
$PIP install vowpalwabbit==9.11.9 || failed="$failed vowpalwabbit"
# For budgeted_asu.py: cost-efficient boosting, an oblique tree (which asks for scikit-learn 1.6 or 1.7).
$PIP install lightgbm==4.7.0 || failed="$failed lightgbm"
$PIP install treeple==0.10.3 || failed="$failed treeple"
# From its source, where there is no wheel, napkinXC needs CMake and a C++17 compiler.
$PIP install napkinxc==0.7.2 || failed="$failed napkinxc"
[ -z "$failed" ] || echo "not installed, will be reported as failing:$failed" >&2
