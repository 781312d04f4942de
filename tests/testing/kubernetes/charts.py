"""The chart of deploy/helm, rendered and linted by Helm's own code.

    render({"replicas": 3})          # the objects, as `helm template reprise deploy/helm/reprise` has them
    python -m testing.kubernetes.charts > deploy/kubernetes/reprise.yaml      # PYTHONPATH=tests
"""

import os
import pathlib
import sys

import yaml

SOURCE = pathlib.Path(os.environ["REPRISE_SOURCE_DIR"])
TOOLS = pathlib.Path(os.environ["REPRISE_CACHE"]) / "deploy-tools"
CHART = SOURCE / "deploy/helm/reprise"

HEADER = """\
# Reprise on Kubernetes without Helm: the chart of deploy/helm with its default values. To change: the image,
# the volume `models`, requests and limits. deploy/README.md says how to find them.
#
#   kubectl apply --filename deploy/kubernetes/reprise.yaml
#
# Made from the chart, which is the file to edit: PYTHONPATH=tests python -m testing.kubernetes.charts
"""


def _helm():
    """Helm's module, from the folder that deploy/lib.sh made."""
    if str(TOOLS) not in sys.path:
        sys.path.append(str(TOOLS))
    from helm_python import chart
    return chart


def texts(values=None, name="reprise", namespace="default"):
    """Returns the rendered templates by their files' names, without empty ones; raises Helm's refusals."""
    with _helm().Chart.load(CHART) as chart:
        chart.validate_schema(values)
        rendered = chart.render(values or {}, name=name, namespace=namespace)
    found = {path.rsplit("/", 1)[1]: text for path, text in rendered.items() if path.endswith(".yaml")}
    return {path: text for path, text in sorted(found.items()) if yaml.safe_load_all(text) and any(
        yaml.safe_load_all(text))}


def objects(values=None, **arguments):
    """Returns the rendered objects."""
    return [one for text in texts(values, **arguments).values() for one in yaml.safe_load_all(text) if one]


def lint(values=None):
    """Returns the findings of `helm lint --strict`: (severity, text)."""
    report = _helm().lint(str(CHART), values, strict=True)
    return [(message["severity"], message["error"]) for message in report["messages"]], report["errors"]


def plain_manifest():
    """Returns the text of deploy/kubernetes/reprise.yaml."""
    return HEADER + "---\n".join(text.strip() + "\n" for text in texts().values())


if __name__ == "__main__":
    print(plain_manifest(), end="")
