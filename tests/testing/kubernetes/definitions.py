"""Custom resources, checked by the schemas of their definitions as the API server does, and without unknown fields.

The definitions are files of published Go modules, which are pinned by their hashes and kept in the cache.
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

KUBERAY = ("github.com/ray-project/kuberay/ray-operator", "v1.5.0",
           "59792cf6d32ecb6512403a4a470c2d2100ba81ab7583dcf4db4a3f0d6df5fab9")
INFERENCE = ("sigs.k8s.io/gateway-api-inference-extension", "v1.5.0",
             "186463f9356c05a75196e8ba074f71c4ad3c9e56cf93c7e2a2ad838d2770ada8")
GATEWAY = ("sigs.k8s.io/gateway-api", "v1.4.0", "209e17fd8aa93b9444cf358240060e7435668ed7ca80793be160c59a74c4d5bc")
# (apiVersion, kind) -> the module, and the file in it.
FILES = {
    ("ray.io/v1", "RayService"): (KUBERAY, "config/crd/bases/ray.io_rayservices.yaml"),
    ("inference.networking.k8s.io/v1", "InferencePool"): (
        INFERENCE, "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml"),
    ("inference.networking.x-k8s.io/v1alpha2", "InferenceObjective"): (
        INFERENCE, "config/crd/bases/inference.networking.x-k8s.io_inferenceobjectives.yaml"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): (
        GATEWAY, "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"),
}
KEPT = pathlib.Path(os.environ["REPRISE_CACHE"]) / "definitions"
PROXY = "https://proxy.golang.org"


def definition(module, file):
    """The CustomResourceDefinition."""
    name, version, sha256 = module
    kept = KEPT / f"{name}@{version}" / file
    if not kept.is_file():
        with urllib.request.urlopen(f"{PROXY}/{name}/@v/{version}.zip", timeout=120) as answer:
            data = answer.read()
        assert hashlib.sha256(data).hexdigest() == sha256, f"{name} {version} has another hash"
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_name(f".{os.getpid()}")
        partial.write_bytes(zipfile.ZipFile(io.BytesIO(data)).read(f"{name}@{version}/{file}"))
        os.replace(partial, kept)
    return yaml.load(kept.read_text(), yaml.CSafeLoader)


def strict(schema):
    """A JSON schema of Kubernetes' dialect; an object with named fields has no others."""
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
def validator(api_version, kind):
    (version,) = [one for one in definition(*FILES[api_version, kind])["spec"]["versions"]
                  if one["name"] == api_version.split("/")[1]]
    schema = strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    return jsonschema.Draft202012Validator(schema)


def check(one):
    """Raises jsonschema's ValidationError, which names the field."""
    validator(one["apiVersion"], one["kind"]).validate(one)
