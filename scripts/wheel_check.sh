#!/bin/sh
# Build the wheel, install it with its dependencies into an empty environment, import it, ask for help.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$BIN/python" -m build --wheel --outdir "$work/dist" . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
"$PYTHON" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "$work"/dist/*.whl
cd "$work"
"$work/venv/bin/python" - <<'PY'
import torch

import gyroformer as gf

point = gf.geometry.expmap0(torch.tensor([0.3, 0.4]), k=torch.tensor(-1.0))
assert abs(point.norm().item() - 0.4621171) < 1e-6, point
PY
"$work/venv/bin/gyroformer" --version
"$work/venv/bin/gyroformer" --help >/dev/null
"$work/venv/bin/gyroformer" doctor --json >/dev/null
echo "wheel installs, imports and answers"
