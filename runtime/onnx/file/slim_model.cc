#include "runtime/onnx/file/slim_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kGraphInitializer = 5;
constexpr uint32_t kTensorRawData = 9;

// One field of a message: its number and, where it is length-delimited, its payload.
struct Field {
  uint32_t number;
  bool delimited;
  absl::string_view payload;
  absl::string_view whole;  // tag and length included
};

// Walks the fields of one message.
class FieldReader {
 public:
  // `base` is the start of the file, for positions in messages.
  FieldReader(absl::string_view message, const char* base)
      : message_(message),
        base_(base),
        input_(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size())) {
    input_.SetTotalBytesLimit(INT32_MAX);
  }

  // Reads the next field; returns false at the end of the message.
  absl::StatusOr<bool> Next(Field& field) {
    const int start = input_.CurrentPosition();
    if (start == static_cast<int>(message_.size())) return false;
    const uint32_t tag = input_.ReadTag();
    if (tag == 0) return Broken(start);
    field.number = WireFormatLite::GetTagFieldNumber(tag);
    field.delimited =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (field.delimited) {
      uint32_t length = 0;
      if (!input_.ReadVarint32(&length)) return Broken(start);
      const int begin = input_.CurrentPosition();
      if (length > message_.size() - begin) return Broken(start);
      field.payload = message_.substr(begin, length);
      input_.Skip(static_cast<int>(length));
    } else if (!WireFormatLite::SkipField(&input_, tag)) {
      return Broken(start);
    }
    field.whole = message_.substr(start, input_.CurrentPosition() - start);
    return true;
  }

 private:
  absl::Status Broken(int position) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the model file is truncated or not an ONNX file (at byte ",
                     message_.data() - base_ + position, ")"));
  }

  absl::string_view message_;
  const char* base_;
  CodedInputStream input_;
};

void AppendDelimited(uint32_t number, absl::string_view payload, std::string& out) {
  uint8_t header[16];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(
      WireFormatLite::MakeTag(static_cast<int>(number), WireFormatLite::WIRETYPE_LENGTH_DELIMITED),
      header);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(payload.size()), end);
  out.append(reinterpret_cast<const char*>(header), end - header);
  out.append(payload.data(), payload.size());
}

void Append(absl::string_view bytes, std::string& out) { out.append(bytes.data(), bytes.size()); }

}  // namespace

absl::StatusOr<SlimModel> SlimDown(absl::string_view model) {
  if (model.empty()) return absl::InvalidArgumentError("the model file is empty");
  if (model.size() > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model file has ", model.size(), " bytes, at most ", INT32_MAX,
                     " can be read: keep the weights in external data"));
  }
  SlimModel slim;
  FieldReader reader(model, model.data());
  Field field;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(field));
    if (!more) break;
    if (field.number != kModelGraph || !field.delimited) {
      Append(field.whole, slim.bytes);
      continue;
    }
    std::string graph;
    FieldReader graph_reader(field.payload, model.data());
    Field part;
    while (true) {
      ASSIGN_OR_RETURN(const bool more_parts, graph_reader.Next(part));
      if (!more_parts) break;
      if (part.number != kGraphInitializer || !part.delimited) {
        Append(part.whole, graph);
        continue;
      }
      std::string tensor;
      absl::string_view raw_data;
      FieldReader tensor_reader(part.payload, model.data());
      Field item;
      while (true) {
        ASSIGN_OR_RETURN(const bool more_items, tensor_reader.Next(item));
        if (!more_items) break;
        if (item.number == kTensorRawData && item.delimited) {
          raw_data = item.payload;
        } else {
          Append(item.whole, tensor);
        }
      }
      AppendDelimited(kGraphInitializer, tensor, graph);
      slim.raw_data.push_back(raw_data);
    }
    AppendDelimited(kModelGraph, graph, slim.bytes);
  }
  return slim;
}

}  // namespace reprise
