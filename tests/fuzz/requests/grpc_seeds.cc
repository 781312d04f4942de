#include <cstdint>
#include <string>
#include <vector>

#include "proto/grpc_service.pb.h"
#include "tests/fuzz/requests/seeds.h"

namespace reprise::fuzz {
namespace {

inference::ModelInferRequest Message(const std::string& datatype) {
  inference::ModelInferRequest message;
  message.set_model_name("m");
  message.set_id("7");
  auto& input = *message.add_inputs();
  input.set_name("x");
  input.set_datatype(datatype);
  input.add_shape(2);
  input.add_shape(1);
  message.add_outputs()->set_name("y");
  return message;
}

// Adds one element in the field where the datatype belongs; FP16 has none.
void AddContents(const std::string& datatype, int64_t value,
                 inference::InferTensorContents& contents) {
  if (datatype == "BOOL") contents.add_bool_contents(true);
  if (datatype == "INT8" || datatype == "INT16" || datatype == "INT32") {
    contents.add_int_contents(static_cast<int32_t>(value));
  }
  if (datatype == "UINT8" || datatype == "UINT16" || datatype == "UINT32") {
    contents.add_uint_contents(static_cast<uint32_t>(value));
  }
  if (datatype == "INT64") contents.add_int64_contents(value);
  if (datatype == "UINT64") contents.add_uint64_contents(static_cast<uint64_t>(value));
  if (datatype == "FP32") contents.add_fp32_contents(static_cast<float>(value));
  if (datatype == "FP64") contents.add_fp64_contents(static_cast<double>(value));
}

}  // namespace

std::vector<std::string> GrpcSeeds() {
  std::vector<std::string> seeds;
  inference::ModelInferRequest raw = Message("FP32");
  raw.add_raw_input_contents(std::string(8, '\x3f'));
  (*raw.mutable_parameters())["timeout"].set_int64_param(5);
  seeds.push_back(raw.SerializeAsString());
  inference::ModelInferRequest small = Message("INT8");
  small.mutable_inputs(0)->mutable_contents()->add_int_contents(-128);
  small.mutable_inputs(0)->mutable_contents()->add_int_contents(127);
  seeds.push_back(small.SerializeAsString());
  inference::ModelInferRequest texts = Message("BYTES");
  texts.mutable_inputs(0)->mutable_contents()->add_bytes_contents("a");
  texts.mutable_inputs(0)->mutable_contents()->add_bytes_contents("");
  seeds.push_back(texts.SerializeAsString());
  for (const char* datatype : {"BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16",
                               "UINT32", "UINT64", "FP32", "FP64", "FP16"}) {
    inference::ModelInferRequest typed = Message(datatype);
    AddContents(datatype, 1, *typed.mutable_inputs(0)->mutable_contents());
    seeds.push_back(typed.SerializeAsString());
  }
  inference::ModelInferRequest regions = Message("FP32");
  for (auto* parameters : {regions.mutable_inputs(0)->mutable_parameters(),
                           regions.mutable_outputs(0)->mutable_parameters()}) {
    (*parameters)["shared_memory_region"].set_string_param("r");
    (*parameters)["shared_memory_byte_size"].set_int64_param(8);
    (*parameters)["shared_memory_offset"].set_uint64_param(8);
  }
  regions.add_outputs()->set_name("z");
  auto& parameters = *regions.mutable_parameters();
  parameters["sequence_id"].set_uint64_param(UINT64_MAX);
  parameters["sequence_start"].set_bool_param(true);
  parameters["mine"].set_double_param(1.5);
  seeds.push_back(regions.SerializeAsString());
  return seeds;
}

std::vector<std::string> RefusedGrpcMessages() {
  std::vector<std::string> seeds;
  const auto refused = [&](const char* datatype, auto change) {
    inference::ModelInferRequest message = Message(datatype);
    change(message, *message.mutable_inputs(0));
    seeds.push_back(message.SerializeAsString());
  };
  using Request = inference::ModelInferRequest;
  using Input = inference::ModelInferRequest::InferInputTensor;
  for (const char* datatype : {"INT8", "INT16", "UINT8", "UINT16"}) {
    refused(datatype, [&](Request&, Input& input) {
      AddContents(datatype, 70000, *input.mutable_contents());
    });
  }
  refused("FP16", [](Request&, Input& input) { input.mutable_contents()->add_fp32_contents(1); });
  refused("FP32", [](Request&, Input& input) { input.mutable_contents()->add_int_contents(1); });
  refused("FP32", [](Request& request, Input& input) {
    input.mutable_contents()->add_fp32_contents(1);
    request.add_raw_input_contents("abcd");
  });
  refused("FP32", [](Request& request, Input&) {
    request.add_raw_input_contents("abcd");
    request.add_raw_input_contents("abcd");
  });
  refused("FP32", [](Request& request, Input& input) {
    (*input.mutable_parameters())["shared_memory_region"].set_string_param("r");
    (*input.mutable_parameters())["shared_memory_byte_size"].set_int64_param(4);
    request.add_raw_input_contents("abcd");
  });
  refused("FP32", [](Request&, Input& input) {
    (*input.mutable_parameters())["shared_memory_region"].set_string_param("r");
    (*input.mutable_parameters())["shared_memory_byte_size"].set_int64_param(4);
    input.mutable_contents()->add_fp32_contents(1);
  });
  refused("FP32", [](Request&, Input& input) {
    (*input.mutable_parameters())["classification"].set_int64_param(1);
  });
  refused("FP32", [](Request& request, Input&) {
    (*request.mutable_outputs(0)->mutable_parameters())["shared_memory_offset"].set_int64_param(-1);
  });
  refused("FP32", [](Request& request, Input&) {
    (*request.mutable_parameters())["timeout"].set_string_param("x");
  });
  return seeds;
}

}  // namespace reprise::fuzz
