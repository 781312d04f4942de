#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/requests/seeds.h"

namespace reprise::fuzz {
namespace {

// Returns a body as FeedRest takes it.
std::string Body(const std::string& json, const std::string& binary = "", bool says_where = false) {
  const size_t bytes = says_where ? json.size() : 0;
  std::string body = {static_cast<char>(bytes % 256), static_cast<char>(bytes / 256)};
  return absl::StrCat(body, json, binary);
}

}  // namespace

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
  for (const char* datatype : {"FP16", "BF16", "FP32", "FP64"}) {
    seeds.push_back(Body(absl::StrCat(R"({"inputs": [{"name": "x", "shape": [5], "datatype": ")",
                                      datatype, R"(", "data": [NaN, Infinity, -Infinity, -0.0,
                                      123456789012345678901234567890e-28]}]})")));
  }
  // As each parameter is spelled; null where a member is left out.
  seeds.push_back(Body(R"({"id": null, "parameters": {"timeout": -5, "priority": 3,
      "sequence_id": 18446744073709551615, "sequence_start": true, "sequence_end": false,
      "reprise.on_miss": "wait", "mine": 1.5, "triton_enable_empty_final_response": true,
      "a": "\"NaN\\"}, "inputs": null, "outputs": null})"));
  seeds.push_back(Body(R"({"parameters": {"a": []},
      "outputs": [{"name": "y", "parameters": {"classification": 1}}]})"));
  for (const char* miss : {"pad", "eager", "reject"}) {
    seeds.push_back(Body(absl::StrCat(
        R"({"parameters": {"sequence_id": "text", "reprise.on_miss": ")", miss, "\"}}")));
  }
  seeds.push_back(Body(R"({"inputs": [{"name": "x", "shape": [2, 0], "datatype": "UINT16",
      "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 0,
                     "shared_memory_offset": 8}}],
      "outputs": [{"name": "y", "parameters": {"binary_data": true}}, {"name": "z", "parameters":
        {"shared_memory_region": "r", "shared_memory_byte_size": 64}}, {"name": "u"}]})"));
  seeds.push_back(Body(R"({"inputs": [{"name": "i", "shape": [1], "datatype": "UINT32",
      "data": [4294967295]}, {"name": "e", "shape": [0], "datatype": "BYTES", "data": []},
      {"name": "s", "shape": [], "datatype": "BOOL", "data": [true]}]})"));
  const std::string json =
      R"({"inputs": [{"name": "x", "shape": [2], "datatype": "FP32",
          "parameters": {"binary_data_size": 8}}],
          "parameters": {"binary_data_output": true}})";
  seeds.push_back(Body(json, std::string(8, '\x3f'), /*says_where=*/true));
  return seeds;
}

std::vector<std::string> RefusedRestBodies() {
  std::vector<std::string> bodies = {Body(R"({"inputs": []})", "left", /*says_where=*/true),
                                     Body("\xff\xff{}").substr(1),
                                     Body("{}").replace(0, 2, "\xff\xff")};
  for (const size_t bytes : {3000, 5000}) bodies.push_back(Body("{}" + std::string(bytes, ' ')));
  for (const char* json :
       {"",
        "[]",
        "{",
        "{\"id\": 1}",
        "{\"parameters\": 1}",
        "{\"parameters\": {\"timeout\": []}}",
        R"({"parameters": {"binary_data_output": 1}})",
        R"({"parameters": {"timeout": "x"}})",
        R"({"parameters": {"priority": -1}})",
        R"({"parameters": {"reprise.on_miss": "x"}})",
        R"({"parameters": {"reprise.on_miss": 1}})",
        R"({"parameters": {"sequence_id": 1.5}})",
        R"({"parameters": {"sequence_start": 1}})",
        R"({"parameters": {"triton_x": true}})",
        R"({"inputs": 1})",
        R"({"inputs": [1]})",
        R"({"inputs": [{}]})",
        R"({"inputs": [{"name": 1}]})",
        R"({"outputs": [1]})",
        R"({"outputs": [{}]})",
        R"({"outputs": [{"name": "y", "parameters": 1}]})",
        R"({"outputs": [{"name": "y", "parameters": {"classification": "a"}}]})",
        R"({"outputs": [{"name": "y", "parameters": {"binary_data": 1}}]})",
        R"({"outputs": [{"name": "y", "parameters": {"shared_memory_offset": 1}}]})"}) {
    bodies.push_back(Body(json));
  }
  for (
      const char* rest :
      {R"("datatype": "FP32")",
       R"("datatype": 1, "shape": [1])",
       R"("datatype": "FP32", "shape": 1)",
       R"("datatype": "FP32", "shape": [-1])",
       R"("datatype": "FP32", "shape": [1.5])",
       R"("datatype": "FP32", "shape": [1])",
       R"("datatype": "FP33", "shape": [1], "data": [1])",
       R"("datatype": "FP32", "shape": [1], "data": 1)",
       R"("datatype": "FP32", "shape": [1], "data": [])",
       R"("datatype": "FP32", "shape": [0], "data": [], "parameters": {"classification": 1})",
       R"("datatype": "FP32", "shape": [1], "data": [1, 2])",
       R"("datatype": "FP32", "shape": [1], "data": ["x"])",
       R"("datatype": "FP32", "shape": [1], "data": [1e39])",
       R"("datatype": "FP16", "shape": [1], "data": [65536])",
       R"("datatype": "FP64", "shape": [1], "data": [1e400])",
       R"("datatype": "FP32", "shape": [2, 1], "data": [[1], 2])",
       R"("datatype": "FP32", "shape": [9223372036854775807, 9], "data": [1])",
       R"("datatype": "INT8", "shape": [1], "data": [128])",
       R"("datatype": "INT8", "shape": [1], "data": [1.5])",
       R"("datatype": "UINT64", "shape": [1], "data": [-1])",
       R"("datatype": "INT64", "shape": [1], "data": [9223372036854775808])",
       R"("datatype": "UINT64", "shape": [1], "data": [18446744073709551616])",
       R"("datatype": "BOOL", "shape": [1], "data": [2])",
       R"("datatype": "BYTES", "shape": [1], "data": [1])",
       R"("datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4})",
       R"("datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": -1})",
       R"("datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": "x"})",
       R"("datatype": "FP32", "shape": [0], "data": [], "parameters": {"binary_data_size": 0})",
       R"("datatype": "FP32", "shape": [1], "parameters": {"shared_memory_region": "r"})",
       R"("datatype": "FP32", "shape": [1], "parameters": {"shared_memory_byte_size": 4})",
       R"("datatype": "FP32", "shape": [1], "parameters": {"shared_memory_region": 1})",
       R"("datatype": "FP32", "shape": [1], "parameters": {"shared_memory_region": "r",
             "shared_memory_byte_size": -4})",
       R"("datatype": "FP32", "shape": [1], "data": [1], "parameters": {"shared_memory_region": "r",
             "shared_memory_byte_size": 4})",
       R"("datatype": "FP32", "shape": [1], "parameters": {"shared_memory_region": "r",
             "shared_memory_byte_size": 4, "binary_data_size": 4})"}) {
    bodies.push_back(Body(absl::StrCat(R"({"inputs": [{"name": "x", )", rest, "}]}")));
  }
  return bodies;
}

}  // namespace reprise::fuzz
