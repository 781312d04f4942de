#include "runtime/generate/carried_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/passes/pack/pack_tokens.h"
#include "runtime/passes/paged/paged_form.h"

namespace reprise {
namespace {

// Bytes after keys and values that vectors of a kernel reach.
constexpr size_t kVectorBytes = 64;

}  // namespace

CarriedBatch::CarriedBatch(const Layout& layout, absl::Span<const Request* const> requests)
    : layout_(layout), requests_(requests), responses_(requests.size()) {
  for (size_t i = 0; i < requests.size(); ++i) AddRequest(layout, i);
  // Rows do not move any more.
  for (Row& row : rows_) row.sequence.caches = row.caches.data();
}

void CarriedBatch::AddRequest(const Layout& layout, size_t request) {
  const Request& asked = *requests_[request];
  const Shape& ids = asked.inputs[layout.ids].shape;
  const int64_t rows = ids[0], count = ids[1];
  const int64_t past = asked.inputs[layout.caches[0]].shape[2], total = past + count;
  std::vector<OutputTensor>& outputs = responses_[request].outputs;
  outputs.resize(layout.presents.size());
  OutputTensor& logits = outputs[layout.logits];
  logits.shape = {rows, count, layout.vocabulary};
  logits.bytes.resize(DTypeSize(layout.logits_dtype) *
                      static_cast<size_t>(NumElements(logits.shape)));
  const size_t first = rows_.size();
  for (int64_t row = 0; row < rows; ++row) {
    rows_.push_back(
        {.request = request,
         .row = row,
         .count = count,
         .caches = std::vector<ops::CarriedCache>(layout.caches.size()),
         .sequence = {.past = past, .total = total, .half = layout.dtype == DType::kFloat16}});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int cache = layout.presents[i];
    if (cache < 0) continue;
    const DecoderCache& size = layout.sizes[cache];
    outputs[i].shape = {rows, size.heads, total, size.size};
    const auto cell = static_cast<int64_t>(DTypeSize(layout.dtype));
    const auto bytes = static_cast<size_t>(cell * NumElements(outputs[i].shape));
    outputs[i].bytes.reserve(bytes + kVectorBytes);
    outputs[i].bytes.resize(bytes);
    cache_bytes_ += static_cast<int64_t>(bytes);
    const auto* data = static_cast<const std::byte*>(asked.inputs[layout.caches[cache]].data);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t width = size.heads * size.size;
      rows_[first + row].caches[cache] = {
          .past = data + row * width * past * cell,
          .present =
              reinterpret_cast<std::byte*>(outputs[i].bytes.data()) + row * width * total * cell};
    }
  }
  tokens_ += rows * count;
}

bool CarriedBatch::Next(int64_t most) {
  step_.clear();
  for (size_t i = 0; i < rows_.size() && step_tokens() < most; ++i) {
    Row& row = rows_[i];
    const int64_t count = std::min(row.count - row.done, most - step_tokens());
    if (count == 0) continue;
    row.sequence.begins = row.done == 0;
    for (int64_t t = row.done; t < row.done + count; ++t) {
      step_.push_back({i, t, {&row.sequence, row.sequence.past + t}});
    }
    row.done += count;
  }
  return !step_.empty();
}

void CarriedBatch::Fill(const Recipe& recipe, std::byte* base) const {
  for (const TensorSlot& slot : recipe.inputs) {
    std::byte* const to = base + slot.offset;
    std::memset(to, 0, slot.bytes);
    if (slot.name == kSegmentsInput) {
      // One bound after each token: the scores of all of them are needed.
      auto* bounds = reinterpret_cast<int32_t*>(to);
      const auto last = static_cast<int32_t>(step_.size());
      for (size_t i = 0; i < slot.bytes / sizeof(int32_t); ++i) {
        bounds[i] = std::min(static_cast<int32_t>(i), last);
      }
      continue;
    }
    for (size_t i = 0; i < step_.size(); ++i) {
      const StepToken& token = step_[i];
      const Row& row = rows_[token.row];
      if (slot.name == kPositionsInput) {
        reinterpret_cast<int64_t*>(to)[i] = token.carried.place;
      } else if (slot.name == kTablesInput) {
        reinterpret_cast<int64_t*>(to)[i] =
            static_cast<int64_t>(reinterpret_cast<intptr_t>(&token.carried)) + ops::kCarriedMark;
      } else {
        const auto size = static_cast<size_t>(slot.dtype == DType::kInt32 ? 4 : 8);
        const auto* ids =
            static_cast<const std::byte*>(requests_[row.request]->inputs[layout_.ids].data);
        std::memcpy(to + i * size, ids + (row.row * row.count + token.token) * size, size);
      }
    }
  }
}

void CarriedBatch::TakeScores(const float* scores) {
  const auto width = static_cast<size_t>(layout_.vocabulary);
  const size_t cell = DTypeSize(layout_.logits_dtype);
  for (size_t i = 0; i < step_.size(); ++i) {
    const Row& row = rows_[step_[i].row];
    OutputTensor& logits = responses_[row.request].outputs[layout_.logits];
    char* const to = logits.bytes.data() + (row.row * row.count + step_[i].token) * width * cell;
    if (layout_.logits_dtype == DType::kFloat32) {
      std::memcpy(to, scores + i * width, width * cell);
      continue;
    }
    for (size_t column = 0; column < width; ++column) {
      const uint16_t half = FloatToHalf(scores[i * width + column]);
      std::memcpy(to + column * cell, &half, cell);
    }
  }
}

std::vector<Response> CarriedBatch::Finish(const absl::Status& status, const ReplayInfo& info) {
  for (size_t i = 0; i < responses_.size(); ++i) {
    Response& response = responses_[i];
    response.status = status;
    response.info = info;
    const std::vector<bool>& wanted = requests_[i]->wanted_outputs;
    for (size_t o = 0; o < response.outputs.size() && !wanted.empty(); ++o) {
      if (!wanted[o]) response.outputs[o] = {};
    }
    if (!status.ok()) response.outputs.clear();
  }
  return std::move(responses_);
}

}  // namespace reprise
