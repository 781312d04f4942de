#include "runtime/engine/batch/split_rows.h"

#include <algorithm>
#include <string>
#include <utility>

namespace reprise {
namespace {

// Joins output `index` of all parts, one after the other along dim `dim`; without such a dim every
// part holds the same and the first is kept. The joined parts are released.
void JoinOutput(size_t index, int dim, std::vector<Response>& parts, OutputTensor& output) {
  const bool is_wanted = !output.shape.empty();
  if (dim < 0 || !is_wanted) return;
  int64_t outer = 1;
  for (int d = 0; d < dim; ++d) outer *= output.shape[d];
  size_t bytes = output.bytes.size();
  for (size_t p = 1; p < parts.size(); ++p) {
    const OutputTensor& more = parts[p].outputs[index];
    bytes += more.bytes.size();
    output.shape[dim] += more.shape[dim];
  }
  if (bytes == output.bytes.size()) return;  // no dim has elements
  std::string joined;
  joined.reserve(bytes);
  for (int64_t i = 0; i < outer; ++i) {
    const auto append = [&](const std::string& of) {
      const size_t piece = of.size() / outer;
      joined.append(of, i * piece, piece);
    };
    append(output.bytes);
    for (size_t p = 1; p < parts.size(); ++p) {
      std::string& more = parts[p].outputs[index].bytes;
      append(more);
      if (i + 1 == outer) std::string().swap(more);
    }
  }
  output.bytes = std::move(joined);
}

}  // namespace

std::vector<RequestPart> SplitRows(const Model& model, const Request& request,
                                   const RequestShape& shape, int64_t max_rows) {
  std::vector<RequestPart> parts;
  for (int64_t first = 0; first < shape.rows; first += max_rows) {
    const int64_t count = std::min(max_rows, shape.rows - first);
    RequestPart part = {.request = request, .shape = shape};
    part.shape.bytes = 0;
    for (size_t i = 0; i < part.request.inputs.size(); ++i) {
      InputTensor& tensor = part.request.inputs[i];
      if (tensor.data == nullptr) continue;
      const auto element_bytes = static_cast<int64_t>(DTypeSize(model.inputs()[i].dtype));
      if (!tensor.shape.empty() && model.inputs()[i].parameter < 0) {
        const int64_t row_bytes = NumElements(tensor.shape) / tensor.shape[0] * element_bytes;
        tensor.data = static_cast<const char*>(tensor.data) + first * row_bytes;
        tensor.shape[0] = count;
      }
      part.shape.bytes += NumElements(tensor.shape) * element_bytes;
    }
    part.shape.rows = part.shape.sizes[model.batch_axis()] = count;
    part.shape.tokens = model.measure().Elements(part.shape.sizes);
    if (auto changed = model.MeasureAgain(part.shape)) part.shape = *std::move(changed);
    parts.push_back(std::move(part));
  }
  return parts;
}

Response JoinRows(const Model& model, std::vector<Response> parts) {
  for (Response& part : parts) {
    if (!part.status.ok()) return std::move(part);
  }
  Response joined = std::move(parts[0]);
  for (size_t i = 0; i < joined.outputs.size(); ++i) {
    JoinOutput(i, model.BatchDimOf(i), parts, joined.outputs[i]);
  }
  // A split request reports the most unusual outcome of its parts, and its last replay; it is exact
  // where every part is.
  for (size_t p = 1; p < parts.size(); ++p) {
    ReplayInfo info = std::move(parts[p].info);
    info.capture = Harder(info.capture, joined.info.capture);
    if (info.bucket == "exact") info.bucket = std::move(joined.info.bucket);
    joined.info = std::move(info);
  }
  return joined;
}

}  // namespace reprise
