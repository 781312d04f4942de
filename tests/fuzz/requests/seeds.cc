#include "tests/fuzz/requests/seeds.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/grpc_service.pb.h"

namespace reprise::fuzz {
namespace {

// A body as FeedRest takes it.
std::string Body(const std::string& json, const std::string& binary = "", bool says_where = false) {
  const size_t bytes = says_where ? json.size() : 0;
  std::string body = {static_cast<char>(bytes % 256), static_cast<char>(bytes / 256)};
  return absl::StrCat(body, json, binary);
}

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

}  // namespace

std::vector<std::string> ConfigSeeds() {
  return {"",
          R"(name: "m" backend: "onnxruntime" max_batch_size: 8
         input { name: "x" data_type: TYPE_INT64 dims: -1 }
         output { name: "y" data_type: TYPE_FP32 dims: [ -1, 4 ] })",
          R"(instance_group { count: 2 kind: KIND_CPU }
         dynamic_batching { preferred_batch_size: [ 8, 4 ] max_queue_delay_microseconds: 500
           default_queue_policy { default_timeout_microseconds: 70000 max_queue_size: 9 } })",
          R"(parameters { key: "reprise.sequence_buckets" value { string_value: "16,48" } }
         parameters { key: "reprise.padding.batch" value { string_value: "off" } })",
          R"(parameters { key: "reprise.max_request_ms" value { string_value: "100" } }
         parameters { key: "reprise.warmup" value { string_value: "all" } })"};
}

std::vector<std::string> ConfigJsonSeeds() {
  return {"{}", R"({"name": "m", "maxBatchSize": 8})",
          R"({"backend": "onnxruntime", "parameters":
              {"reprise.capture": {"stringValue": "inline"}}})"};
}

std::vector<std::string> RestSeeds() {
  std::vector<std::string> seeds = {
      Body(R"({"id": "7", "inputs": [{"name": "x", "shape": [2, 1], "datatype": "FP32",
               "data": [[1.5], [-2e-3]]}], "outputs": [{"name": "y"}]})"),
      Body(R"({"inputs": [{"name": "t", "shape": [2], "datatype": "BYTES",
               "data": ["a\u00e4", "\ud83d\ude00"]}]})"),
      Body(R"({"inputs": [{"name": "b", "shape": [3], "datatype": "BOOL",
               "data": [true, false, 1]}], "parameters": {"timeout": 5, "priority": 1}})")};
  for (const char* datatype : {"INT8", "UINT8", "INT16", "INT32", "INT64", "UINT64", "FP64"}) {
    seeds.push_back(Body(absl::StrCat(R"({"inputs": [{"name": "x", "shape": [2], "datatype": ")",
                                      datatype, R"(", "data": [0, 7]}]})")));
  }
  const std::string json =
      R"({"inputs": [{"name": "x", "shape": [2], "datatype": "FP32",
          "parameters": {"binary_data_size": 8}}],
          "parameters": {"binary_data_output": true}})";
  seeds.push_back(Body(json, std::string(8, '\x3f'), /*says_where=*/true));
  return seeds;
}

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
  return seeds;
}

}  // namespace reprise::fuzz
