#include "runtime/engine/packing/packed_frame.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "runtime/base/uninitialized_string.h"
#include "runtime/engine/packing/packing.h"

namespace reprise {
namespace {

// Returns where a request begins: the sizes of the ones before it.
PackedSizes Before(absl::Span<const PackedPart> parts, size_t end) {
  PackedSizes sizes;
  for (const PackedPart& part : parts.subspan(0, end)) {
    sizes.tokens += part.rows * part.length;
    sizes.segments += part.rows;
  }
  return sizes;
}

bool IsByToken(const Recipe& recipe, const TensorSlot& slot) {
  return slot.shape[0] == PackedSizesOf(recipe.key).tokens;
}

size_t RowBytes(const TensorSlot& slot) {
  return NumElements(absl::MakeConstSpan(slot.shape).subspan(1)) * DTypeSize(slot.dtype);
}

void WritePositions(absl::Span<const PackedPart> parts, int64_t capacity, int64_t* to) {
  int64_t at = 0;
  for (const PackedPart& part : parts) {
    for (int64_t row = 0; row < part.rows; ++row) {
      for (int64_t i = 0; i < part.length; ++i) to[at++] = i;
    }
  }
  std::fill(to + at, to + capacity, 0);
}

// The inputs of a packed recipe after the model's own, in their order.
enum class Extra : size_t { kPositions, kSegments, kRequestTokens, kRequestRows };

// Writes where each segment begins among the tokens, or each request among tokens or segments.
void WriteBegins(absl::Span<const PackedPart> parts, Extra which, int64_t capacity, int32_t* to) {
  int64_t at = 0, count = 0;
  for (const PackedPart& part : parts) {
    const bool by_row = which == Extra::kSegments;
    const int64_t size = which == Extra::kRequestRows ? part.rows
                         : by_row                     ? part.length
                                                      : part.rows * part.length;
    for (int64_t i = 0; i < (by_row ? part.rows : 1); ++i, at += size) {
      to[count++] = static_cast<int32_t>(at);
    }
  }
  std::fill(to + count, to + capacity + 1, static_cast<int32_t>(at));
}

void WriteExtra(absl::Span<const PackedPart> parts, Extra which, const PackedSizes& room,
                std::byte* to) {
  if (which == Extra::kPositions) {
    WritePositions(parts, room.tokens, reinterpret_cast<int64_t*>(to));
  } else {
    WriteBegins(parts, which, room.segments, reinterpret_cast<int32_t*>(to));
  }
}

}  // namespace

void GatherPacked(const Recipe& recipe, absl::Span<const int> positions,
                  absl::Span<const PackedPart> parts, std::optional<size_t> only,
                  std::byte* inputs) {
  const PackedSizes room = PackedSizesOf(recipe.key);
  for (size_t i = 0; i < recipe.inputs.size(); ++i) {
    const TensorSlot& slot = recipe.inputs[i];
    std::byte* to = inputs + slot.offset;
    if (i >= positions.size()) {
      WriteExtra(parts, static_cast<Extra>(i - positions.size()), room, to);
      continue;
    }
    const bool by_token = IsByToken(recipe, slot);
    const size_t row_bytes = RowBytes(slot);
    if (only.has_value()) std::memset(to, 0, slot.bytes);
    std::byte* end = to;
    for (size_t p = 0; p < parts.size(); ++p) {
      const size_t bytes = row_bytes * parts[p].rows * (by_token ? parts[p].length : 1);
      if (bytes > 0 && (!only.has_value() || p == *only)) {
        std::memcpy(end, parts[p].request->inputs[positions[i]].data, bytes);
      }
      end += bytes;
    }
    std::memset(end, 0, slot.bytes - (end - to));
  }
}

Shape PackedShape(const Recipe& recipe, size_t position, const PackedPart& part) {
  const TensorSlot& slot = recipe.outputs[position];
  Shape shape = {part.rows};
  if (IsByToken(recipe, slot)) shape.push_back(part.length);
  shape.insert(shape.end(), slot.shape.begin() + 1, slot.shape.end());
  return shape;
}

OutputTensor ReadPacked(const Recipe& recipe, size_t position, absl::Span<const PackedPart> parts,
                        size_t part, const std::byte* output) {
  const TensorSlot& slot = recipe.outputs[position];
  const PackedSizes before = Before(parts, part);
  const size_t first = IsByToken(recipe, slot) ? before.tokens : before.segments;
  OutputTensor read = {.shape = PackedShape(recipe, position, parts[part])};
  ResizeUninitialized(read.bytes, NumElements(read.shape) * DTypeSize(slot.dtype));
  if (!read.bytes.empty()) {
    std::memcpy(read.bytes.data(), output + first * RowBytes(slot), read.bytes.size());
  }
  return read;
}

void WriteBounds(const Recipe& recipe, absl::Span<const PackedPart> parts, std::byte* inputs) {
  const PackedSizes room = PackedSizesOf(recipe.key);
  const auto named = [](const TensorSlot& slot) { return slot.name == kPositionsInput; };
  const size_t positions = absl::c_find_if(recipe.inputs, named) - recipe.inputs.begin();
  for (size_t i = positions + 1; i < recipe.inputs.size(); ++i) {
    WriteExtra(parts, static_cast<Extra>(i - positions), room, inputs + recipe.inputs[i].offset);
  }
}

void PrimePacked(const Recipe& recipe, int64_t tokens, std::byte* inputs) {
  std::memset(inputs, 0, recipe.input_bytes);
  const PackedPart one = {.rows = 1, .length = tokens};
  WriteBounds(recipe, {&one, 1}, inputs);
}

}  // namespace reprise
