"""The inference protocol is wire-compatible with the clients that exist.

Every message, field, enum and method of the published client's descriptors is compared with ours,
in both directions: number, type, cardinality, oneof. Field order and comments are free.
"""

import os
import subprocess

import pytest
from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2, service_pb2


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """Our two files of package `inference`, compiled with the protoc that the build uses."""
    root = os.environ["REPRISE_SOURCE_DIR"]
    out = tmp_path_factory.mktemp("protocol") / "descriptors.bin"
    files = [os.path.join(root, "proto", f) for f in ("model_config.proto", "grpc_service.proto")]
    subprocess.run(
        ["protoc", f"--proto_path={root}", f"--descriptor_set_out={out}", *files], check=True
    )
    descriptors = descriptor_pb2.FileDescriptorSet()
    descriptors.ParseFromString(out.read_bytes())
    return flatten(descriptors.file)


@pytest.fixture(scope="module")
def theirs():
    files = []
    for module in (model_config_pb2, service_pb2):
        proto = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(proto)
        files.append(proto)
    return flatten(files)


def flatten(files):
    """Returns one dict of facts: "Message.field" -> (number, type, ...), "Enum.VALUE" -> number, ..."""
    facts = {}

    def add_enum(prefix, enum):
        for value in enum.value:
            facts[f"{prefix}{enum.name}.{value.name}"] = value.number

    def add_message(prefix, message):
        name = f"{prefix}{message.name}"
        facts[name] = "map entry" if message.options.map_entry else "message"
        for field in message.field:
            oneof = ""
            if field.HasField("oneof_index") and not field.proto3_optional:
                oneof = message.oneof_decl[field.oneof_index].name
            facts[f"{name}.{field.name}"] = (
                field.number, field.type, field.label, field.type_name, oneof,
            )
        for nested in message.nested_type:
            add_message(name + ".", nested)
        for enum in message.enum_type:
            add_enum(name + ".", enum)

    for file in files:
        assert file.package == "inference"
        for message in file.message_type:
            add_message("", message)
        for enum in file.enum_type:
            add_enum("", enum)
        for service in file.service:
            for method in service.method:
                facts[f"{service.name}/{method.name}"] = (
                    method.input_type, method.output_type,
                    method.client_streaming, method.server_streaming,
                )
    return facts


def test_every_part_of_the_published_protocol_is_ours_with_the_same_numbers(ours, theirs):
    assert "GRPCInferenceService/ModelInfer" in theirs
    assert {k: v for k, v in theirs.items() if ours.get(k) != v} == {}


def test_we_add_nothing_to_the_package_of_the_protocol(ours, theirs):
    assert sorted(set(ours) - set(theirs)) == []
