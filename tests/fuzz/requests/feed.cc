#include "tests/fuzz/requests/feed.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/grpc_service.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/types/memory_budget.h"
#include "server/config/model_config.h"
#include "server/rest/infer_json.h"
#include "server/rest/json_tensor.h"
#include "server/rpc/codec.h"

namespace reprise::fuzz {
namespace {

// For JSON of 4096 bytes, or half of that next to other requests.
constexpr int64_t kParsingBytes = int64_t{64} << 10;

// Reads all that a view points to, so that a sanitizer sees freed memory.
uint64_t ReadAll(const InferRequest& view) {
  uint64_t sum = 0;
  const auto read = [&](absl::string_view bytes) {
    for (const char byte : bytes) sum = sum * 31 + static_cast<unsigned char>(byte);
  };
  for (const InputView& input : view.inputs) {
    read(input.name);
    read(input.datatype);
    read(input.bytes);
    for (const int64_t size : input.shape) sum = sum * 31 + static_cast<uint64_t>(size);
  }
  for (const absl::string_view output : view.outputs) read(output);
  read(view.model);
  read(view.id);
  return sum;
}

// Elements that came as JSON are written as JSON, and read again as themselves.
void CheckAgain(const InputView& input) {
  std::string elements;
  AppendJson(input.bytes, input.datatype, elements);
  HttpRequest request = {.method = "POST"};
  request.body =
      absl::StrCat("{\"inputs\":[{\"name\":\"x\",\"datatype\":\"", input.datatype, "\",\"shape\":[",
                   absl::StrJoin(input.shape, ","), "],\"data\":", elements, "}]}");
  MemoryBudget parsing(0);
  InferJson json;
  REPRISE_CHECK(json.Decode(request, "m", "", parsing).ok());
  REPRISE_CHECK(json.view().inputs[0].bytes == input.bytes);
}

}  // namespace

bool FeedConfig(absl::string_view text) {
  const bool lenient = ParseModelConfig(text, "m", ConfigStrictness::kWarn).ok();
  const bool strict = ParseModelConfig(text, "m", ConfigStrictness::kStrict).ok();
  REPRISE_CHECK(lenient || !strict);  // The strict reader takes nothing that the other does not.
  return strict;
}

bool FeedConfigJson(absl::string_view json) {
  const auto text = ConfigTextFromJson(std::string(json));
  return text.ok() && FeedConfig(*text);
}

bool FeedRest(absl::string_view bytes) {
  if (bytes.size() < 2) return false;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const int json_bytes = byte(0) + 256 * byte(1);
  HttpRequest request = {.method = "POST", .path = *RequestPath::Parse("/v2/models/m/infer")};
  request.body = std::string(bytes.substr(2));
  if (json_bytes > 0) {
    request.fields.emplace_back("inference-header-content-length", absl::StrCat(json_bytes));
  }
  MemoryBudget parsing(kParsingBytes);
  REPRISE_CHECK(parsing.Take(kParsingBytes / 2));
  InferJson json;
  const bool taken = json.Decode(request, "m", "", parsing).ok();
  REPRISE_CHECK(parsing.used() == kParsingBytes / 2);
  if (!taken) return false;
  const uint64_t sum = ReadAll(json.view());
  REPRISE_CHECK(ReadAll(json.view()) == sum);
  if (json_bytes > 0) return true;  // some may be binary: any bytes
  for (const InputView& input : json.view().inputs) {
    // None may also come from a region, or there may be no binary bytes at all.
    if (!input.bytes.empty()) CheckAgain(input);
  }
  return true;
}

bool FeedGrpc(absl::string_view bytes) {
  inference::ModelInferRequest message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  DecodedRequest decoded;
  if (!Decode(message, decoded).ok()) return false;
  // A message that was taken is taken again, and says the same.
  inference::ModelInferRequest again_message;
  REPRISE_CHECK(again_message.ParseFromString(message.SerializeAsString()));
  DecodedRequest again;
  REPRISE_CHECK(Decode(again_message, again).ok());
  REPRISE_CHECK(ReadAll(again.view) == ReadAll(decoded.view));
  return true;
}

}  // namespace reprise::fuzz
