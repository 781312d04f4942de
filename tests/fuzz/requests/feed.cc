#include "tests/fuzz/requests/feed.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/grpc_service.pb.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/types/memory_budget.h"
#include "server/config/model_config.h"
#include "server/rest/infer_json.h"
#include "server/rpc/codec.h"

namespace reprise::fuzz {
namespace {

constexpr int64_t kParsingBytes = int64_t{64} << 20;

// Reads all that a view points to, so that a sanitizer sees what is no longer there.
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
  HttpRequest request = {.method = "POST", .path = "/v2/models/m/infer"};
  request.body = std::string(bytes.substr(2));
  if (json_bytes > 0) {
    request.fields.emplace_back("inference-header-content-length", absl::StrCat(json_bytes));
  }
  MemoryBudget parsing(kParsingBytes);
  InferJson json;
  const bool taken = json.Decode(request, "m", "", parsing).ok();
  REPRISE_CHECK(parsing.used() == 0);
  if (!taken) return false;
  const uint64_t sum = ReadAll(json.view());
  REPRISE_CHECK(ReadAll(json.view()) == sum);
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
