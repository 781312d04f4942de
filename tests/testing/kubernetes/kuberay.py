"""Objects of KubeRay, checked by the schema of its definition as the API server does, and without unknown fields.

The definition is a file of KubeRay's published Go module, which is pinned by its hash and kept in the cache.
"""

import functools
import hashlib
import io
import os
import pathlib
import urllib.request
import zipfile

import jsonschema
import yaml

MODULE, VERSION = "github.com/ray-project/kuberay/ray-operator", "v1.5.0"
SHA256 = "59792cf6d32ecb6512403a4a470c2d2100ba81ab7583dcf4db4a3f0d6df5fab9"
FILE = "config/crd/bases/ray.io_rayservices.yaml"
KEPT = pathlib.Path(os.environ["REPRISE_CACHE"]) / "kuberay" / VERSION / FILE
PROXY = "https://proxy.golang.org"


def definition():
    """Returns the CustomResourceDefinition."""
    if not KEPT.is_file():
        with urllib.request.urlopen(f"{PROXY}/{MODULE}/@v/{VERSION}.zip", timeout=120) as answer:
            data = answer.read()
        assert hashlib.sha256(data).hexdigest() == SHA256, f"{MODULE} {VERSION} has another hash"
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        partial = KEPT.with_name(f".{os.getpid()}")
        partial.write_bytes(zipfile.ZipFile(io.BytesIO(data)).read(f"{MODULE}@{VERSION}/{FILE}"))
        os.replace(partial, KEPT)
    return yaml.load(KEPT.read_text(), yaml.CSafeLoader)


def strict(schema):
    """Makes a JSON schema of Kubernetes' dialect; an object with named fields has no others."""
    made = {key: value for key, value in schema.items() if key in (
        "type", "required", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems")}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("pattern", None)
        return {**made, "type": ["integer", "string"]}
    if "properties" in schema:
        made["properties"] = {name: strict(one) for name, one in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = strict(schema["additionalProperties"])
    if "items" in schema:
        made["items"] = strict(schema["items"])
    return made


@functools.cache
def validator():
    (version,) = [one for one in definition()["spec"]["versions"] if one["name"] == "v1"]
    schema = strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    return jsonschema.Draft202012Validator(schema)


def check(one):
    """Raises jsonschema's ValidationError, which names the field."""
    assert (one["apiVersion"], one["kind"]) == ("ray.io/v1", "RayService")
    validator().validate(one)
