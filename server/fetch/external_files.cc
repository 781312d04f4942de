#include "server/fetch/external_files.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>
#include <unistd.h>

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/inner_path.h"

namespace reprise {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kMostDepth = 64;
constexpr int kMostLocation = 4096;

// The messages of onnx.proto on the way to a tensor, with the fields that lead on.
enum class Message { kModel, kGraph, kNode, kAttribute, kTensor, kEntry, kSparse, kFunction };

struct Step {
  Message from;
  int field;
  Message to;
};

constexpr Step kSteps[] = {
    {Message::kModel, 7, Message::kGraph},       {Message::kModel, 25, Message::kFunction},
    {Message::kGraph, 1, Message::kNode},        {Message::kGraph, 5, Message::kTensor},
    {Message::kGraph, 15, Message::kSparse},     {Message::kNode, 5, Message::kAttribute},
    {Message::kAttribute, 5, Message::kTensor},  {Message::kAttribute, 6, Message::kGraph},
    {Message::kAttribute, 10, Message::kTensor}, {Message::kAttribute, 11, Message::kGraph},
    {Message::kAttribute, 22, Message::kSparse}, {Message::kAttribute, 23, Message::kSparse},
    {Message::kSparse, 1, Message::kTensor},     {Message::kSparse, 2, Message::kTensor},
    {Message::kTensor, 13, Message::kEntry},     {Message::kFunction, 7, Message::kNode},
};

const Step* FindStep(Message from, int field) {
  for (const Step& step : kSteps) {
    if (step.from == from && step.field == field) return &step;
  }
  return nullptr;
}

bool Walk(Message message, CodedInputStream& input, int depth, std::set<std::string>& locations) {
  if (depth > kMostDepth) return false;
  std::string key, value;
  while (const uint32_t tag = input.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool is_message =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const Step* step = is_message ? FindStep(message, field) : nullptr;
    const bool is_text = message == Message::kEntry && is_message && (field == 1 || field == 2);
    if (step == nullptr && !is_text) {
      if (!WireFormatLite::SkipField(&input, tag)) return false;
      continue;
    }
    uint32_t size = 0;
    if (!input.ReadVarint32(&size)) return false;
    if (is_text) {
      if (size > kMostLocation) return false;
      if (!input.ReadString(field == 1 ? &key : &value, static_cast<int>(size))) return false;
      continue;
    }
    const CodedInputStream::Limit limit = input.PushLimit(static_cast<int>(size));
    if (!Walk(step->to, input, depth + 1, locations)) return false;
    input.PopLimit(limit);
  }
  if (message == Message::kEntry && key == "location") locations.insert(value);
  return input.ConsumedEntireMessage();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExternalFiles(const std::filesystem::path& model,
                                                       const std::string& name) {
  const int file = open(model.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::NotFoundError(absl::StrCat(model.string(), " cannot be read"));
  std::set<std::string> locations;
  bool whole = false;
  {
    google::protobuf::io::FileInputStream stream(file);
    stream.SetCloseOnDelete(true);
    CodedInputStream input(&stream);
    input.SetTotalBytesLimit(std::numeric_limits<int>::max());
    whole = Walk(Message::kModel, input, 0, locations);
  }
  if (!whole) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is not an ONNX file"));
  }
  for (const std::string& location : locations) {
    if (!IsInnerPath(location)) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " names external data at ", QuotedText(location), ", which is not in its folder"));
    }
  }
  return std::vector<std::string>(locations.begin(), locations.end());
}

}  // namespace reprise
