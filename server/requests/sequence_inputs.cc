#include "server/requests/sequence_inputs.h"

#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

// Sizes of the request by the model's symbols.
std::map<std::string, int64_t> SizesOf(const Signature& signature, const Request& request) {
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (request.inputs[i].data == nullptr) continue;
    const std::vector<Dim>& dims = signature.inputs[i].dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].is_constant()) sizes.emplace(dims[d].symbol, request.inputs[i].shape[d]);
    }
  }
  return sizes;
}

int64_t SizeOr(const std::map<std::string, int64_t>& sizes, const Dim& dim, int64_t otherwise) {
  if (dim.is_constant()) return dim.size;
  const auto found = sizes.find(dim.symbol);
  return found == sizes.end() ? otherwise : found->second;
}

template <class T>
absl::StatusOr<std::string> NumberBytes(const SequenceMark& mark, const ModelIo& io) {
  const auto value = static_cast<T>(mark.number);
  if (static_cast<uint64_t>(value) != mark.number || mark.number == 0) {
    return absl::InvalidArgumentError(absl::StrCat("parameter sequence_id is ", SequenceName(mark),
                                                   ", the model takes ", ProtocolName(io),
                                                   " in input ", QuotedText(io.name)));
  }
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}

// Returns an element that names the sequence.
absl::StatusOr<std::string> IdBytes(const SequenceMark& mark, const ModelIo& io) {
  if (io.text) {
    const std::string text = mark.number != 0 ? absl::StrCat(mark.number) : mark.text;
    const auto size = static_cast<uint32_t>(text.size());
    return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text;
  }
  switch (io.dtype) {
    case DType::kUInt64:
      return NumberBytes<uint64_t>(mark, io);
    case DType::kInt64:
      return NumberBytes<int64_t>(mark, io);
    case DType::kUInt32:
      return NumberBytes<uint32_t>(mark, io);
    default:
      return NumberBytes<int32_t>(mark, io);
  }
}

absl::StatusOr<std::string> ElementOf(const ControlTensor& control, const SequenceMark& mark,
                                      const ModelIo& io) {
  switch (control.kind) {
    case ControlTensor::Kind::kStart:
      return mark.start ? control.yes : control.no;
    case ControlTensor::Kind::kEnd:
      return mark.end ? control.yes : control.no;
    case ControlTensor::Kind::kReady:
      return control.yes;
    case ControlTensor::Kind::kId:
      return IdBytes(mark, io);
  }
  return absl::InternalError("a control input of no kind");
}

std::string Repeated(const std::string& part, int64_t times) {
  std::string all;
  all.reserve(part.size() * static_cast<size_t>(times));
  for (int64_t i = 0; i < times; ++i) all += part;
  return all;
}

// Makes the state before the first request.
absl::Status FirstState(const StateTensor& state, const ModelIo& io,
                        const std::map<std::string, int64_t>& sizes, Shape& shape,
                        std::string& bytes) {
  for (size_t i = 0; i < state.sizes.size(); ++i) {
    shape.push_back(state.sizes[i] >= 0 ? state.sizes[i] : SizeOr(sizes, io.dims[i], 1));
  }
  const auto elements = CheckedNumElements(shape);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (!elements.ok() || *elements > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", QuotedText(io.name), " would have shape ", ShapeToString(shape)));
  }
  const auto whole = static_cast<size_t>(*elements) * DTypeSize(io.dtype);
  if (state.first_row.empty()) {
    bytes.assign(whole, '\0');
  } else {
    bytes = Repeated(state.first_row, static_cast<int64_t>(whole / state.first_row.size()));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t BytesOf(const SequenceState& state) {
  int64_t bytes = 0;
  for (const OutputTensor& tensor : state) bytes += static_cast<int64_t>(tensor.bytes.size());
  return bytes;
}

std::string SequenceName(const SequenceMark& mark) {
  return mark.number != 0 ? absl::StrCat(mark.number) : QuotedText(mark.text);
}

absl::Status AddSequenceInputs(const Signature& signature, const StatefulForm& form,
                               const SequenceState& state, AddedInputs& added, InferRequest& asked,
                               Request& request) {
  const std::map<std::string, int64_t> sizes = SizesOf(signature, request);
  const size_t count = form.controls.size() + form.states.size();
  // Views of these are handed out.
  added.shapes.resize(count);
  added.bytes.resize(count);
  static constexpr char kNothing = 0;
  const auto add = [&](size_t input, const Shape& shape, absl::string_view bytes) {
    const ModelIo& io = signature.inputs[input];
    request.inputs[input] = {.shape = shape, .data = bytes.empty() ? &kNothing : bytes.data()};
    asked.inputs.push_back(
        {.name = io.name, .datatype = ProtocolName(io), .shape = shape, .bytes = bytes});
  };
  size_t next = 0;
  for (const ControlTensor& control : form.controls) {
    const ModelIo& io = signature.inputs[control.input];
    Shape& shape = added.shapes[next];
    for (const Dim& dim : io.dims) shape.push_back(SizeOr(sizes, dim, 1));
    ASSIGN_OR_RETURN(const std::string element, ElementOf(control, asked.sequence, io));
    added.bytes[next] = Repeated(element, NumElements(shape));
    add(control.input, shape, added.bytes[next]);
    ++next;
  }
  for (size_t i = 0; i < form.states.size(); ++i, ++next) {
    const StateTensor& tensor = form.states[i];
    request.wanted_outputs[tensor.output] = true;
    if (!state.empty()) {
      add(tensor.input, state[i].shape, state[i].bytes);
      continue;
    }
    RETURN_IF_ERROR(FirstState(tensor, signature.inputs[tensor.input], sizes, added.shapes[next],
                               added.bytes[next]));
    add(tensor.input, added.shapes[next], added.bytes[next]);
  }
  return absl::OkStatus();
}

}  // namespace reprise
