#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/config/model_parameters.h"
#include "tests/fuzz/requests/seeds.h"

namespace reprise::fuzz {
namespace {

// Values of parameters: names, numbers, lists, rules.
constexpr const char* kValues[] = {"",
                                   "x",
                                   "0",
                                   "1",
                                   "2",
                                   "600",
                                   "-1",
                                   "1.5",
                                   "1e400",
                                   "nan",
                                   "9223372036854775807",
                                   "auto",
                                   "off",
                                   "true",
                                   "false",
                                   "apply",
                                   "suggest",
                                   "exact",
                                   "yolov8",
                                   "reject",
                                   "min 2, max 600",
                                   "quick",
                                   "inline",
                                   "background",
                                   "all",
                                   "bf16",
                                   "f32",
                                   "int8",
                                   "largest",
                                   "mean",
                                   "none",
                                   "1,2,4",
                                   "4,2",
                                   "1,,2",
                                   "1, 2",
                                   "auto:4",
                                   "percentile:3",
                                   "auto:0",
                                   "linear:1,2,9",
                                   "exponential:1,2,64",
                                   "linear:1,0,9",
                                   "b1_s16,b8_s128",
                                   "b1;b2",
                                   "height=3,width=4; height=5,width=6",
                                   "height=0",
                                   "=1;",
                                   "a,b",
                                   "bf16: MatMul,/layer.*/x; exact: Gemm",
                                   "bf16: ; x",
                                   "bf16",
                                   "x: MatMul",
                                   "bf16: @file"};

std::string ParameterText(const std::string& name, const std::string& value) {
  return absl::StrCat("parameters { key: \"", name, "\" value { string_value: \"", value, "\" } }");
}

}  // namespace

std::vector<ParameterConfig> ParameterConfigs() {
  std::vector<ParameterConfig> configs;
  for (const ModelParameterInfo& parameter : ModelParameterTable()) {
    std::string name = parameter.name;
    if (const size_t family = name.find('<'); family != name.npos)
      name.replace(family, name.npos, "y");
    for (const char* value : kValues) configs.push_back({name, ParameterText(name, value)});
  }
  return configs;
}

std::vector<std::string> ConfigSeeds() {
  return {
      "",
      R"(name: "m" backend: "onnxruntime" max_batch_size: 8
         input { name: "x" data_type: TYPE_INT64 dims: -1 }
         output { name: "y" data_type: TYPE_FP32 dims: [ -1, 4 ] })",
      R"(instance_group { count: 2 kind: KIND_CPU }
         dynamic_batching { preferred_batch_size: [ 8, 4 ] max_queue_delay_microseconds: 500
           default_queue_policy { default_timeout_microseconds: 70000 max_queue_size: 9
             allow_timeout_override: true timeout_action: REJECT } })",
      R"(max_batch_size: 0 platform: "onnxruntime_onnx" default_model_filename: "a.onnx"
         version_policy { latest { num_versions: 2 } } instance_group { name: "a" count: 0 }
         dynamic_batching { priority_levels: 3 default_priority_level: 2 })",
      R"(version_policy { specific { versions: [ 1, 3 ] } } parameters { key: "mine" value {} })",
      R"(version_policy { all {} } max_batch_size: 5
         sequence_batching { max_sequence_idle_microseconds: 5000000
           direct { max_queue_delay_microseconds: 100 minimum_slot_utilization: 0.5 }
           control_input { name: "START"
             control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
           control_input { name: "END" control { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } }
           control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
           state { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: [ -1 ]
             initial_state { name: "i" data_type: TYPE_FP32 dims: 1 zero_data: true } } })",
      R"(sequence_batching { oldest { max_candidate_sequences: 4 preferred_batch_size: [ 4, 2 ]
           max_queue_delay_microseconds: 10 } })",
      R"(model_warmup { name: "a" } output { name: "y" label_filename: "l" })",
      ParameterText("reprise.sequence_buckets", "16,48"),
      ParameterText("reprise.padding.batch", "off")};
}

std::vector<std::string> RefusedConfigs() {
  std::vector<std::string> texts;
  for (const char* text :
       {"nam",
        "name: \"other\"",
        "name: 1",
        "unknown: 1",
        "platform: \"tensorflow\"",
        "backend: \"python\"",
        "max_batch_size: -1",
        "default_model_filename: \"a/b\"",
        "ensemble_scheduling {}",
        "ensemble_scheduling { step { model_name: \"a\" } }",
        "version_policy { specific {} }",
        "optimization { priority: PRIORITY_MAX }",
        "instance_group { kind: KIND_GPU count: 2 }",
        "instance_group { count: -1 }",
        "instance_group { gpus: [ 0 ] }",
        "dynamic_batching { preferred_batch_size: 0 }",
        "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }",
        "dynamic_batching { priority_levels: 2 }",
        "dynamic_batching { default_priority_level: 1 }",
        "dynamic_batching { preserve_ordering: true }",
        "dynamic_batching { default_queue_policy { timeout_action: DELAY } }",
        "dynamic_batching { default_queue_policy { default_timeout_microseconds: 9999999999999 } }",
        "sequence_batching { direct { minimum_slot_utilization: 2 } }",
        "sequence_batching { direct { minimum_slot_utilization: nan } }",
        "sequence_batching { direct { max_queue_delay_microseconds: 9999999999999 } }",
        "sequence_batching { oldest { max_candidate_sequences: -1 } }",
        "sequence_batching { oldest { preferred_batch_size: -1 } }",
        "sequence_batching { oldest { max_queue_delay_microseconds: 9999999999999 } }",
        "sequence_batching { max_sequence_idle_microseconds: 9999999999999 }"}) {
    texts.emplace_back(text);
  }
  for (const char* name : {"execution_mode", "session.x", "gpu_mem_limit", "reprise.batch_bucket",
                           "reprise.", "reprise.buckets.", "repris.capture"}) {
    texts.push_back(ParameterText(name, "1"));
  }
  return texts;
}

std::vector<std::string> ConfigJsonSeeds() {
  return {
      "{}", R"({"name": "m", "maxBatchSize": 8})",
      R"({"backend": "onnxruntime", "parameters":
              {"reprise.capture": {"stringValue": "inline"}}})",
      R"({"instance_group": [{"count": 2, "kind": "KIND_CPU"}], "versionPolicy": {"all": {}}})"};
}

}  // namespace reprise::fuzz
