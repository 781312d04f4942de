#include "runtime/engine/batch/scatter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/uninitialized_string.h"
#include "runtime/engine/replay/gather.h"
#include "runtime/engine/replay/poison.h"

namespace reprise {
namespace {

// An output buffer with more than this many times the bytes of the answer would be kept with it.
constexpr size_t kMostRoom = 2;

size_t BytesOf(const Shape& shape, DType dtype) {
  return static_cast<size_t>(NumElements(shape)) * DTypeSize(dtype);
}

// Returns whether a block of `shape` at the origin of a tensor of `whole` is the beginning of its
// bytes.
bool IsBeginning(const Shape& shape, const Shape& whole) {
  return shape.size() == whole.size() &&
         (shape.empty() || std::equal(shape.begin() + 1, shape.end(), whole.begin() + 1));
}

}  // namespace

bool Scatter::IsWanted(const Request& request, size_t position) const {
  return batch_.all_wanted || request.wanted_outputs.empty() || request.wanted_outputs[position];
}

Shape Scatter::TrueShape(size_t position, size_t i, const Shape& slot) const {
  Shape shape = slot;
  if (model_.proof().output_shapes.empty()) return shape;
  const std::vector<AffineDim>& dims = model_.proof().output_shapes[position].dims;
  if (dims.size() != shape.size()) return shape;
  const std::vector<int64_t>& sizes = batch_.plan.shapes()[i].sizes;
  // Only certified axes are padded; along the others the recipe has the request's own sizes.
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].Moves()) shape[d] -= dims[d].At(batch_.target.sizes) - dims[d].At(sizes);
  }
  return shape;
}

bool Scatter::IsUnpadded() const {
  return !batch_.plan.packed() && batch_.requests.size() == 1 &&
         batch_.target.sizes == batch_.plan.shapes()[0].sizes;
}

Shape Scatter::ShapeOf(size_t position, size_t i) const {
  if (batch_.plan.packed()) return PackedShape(batch_.recipe, position, batch_.packed[i]);
  const Shape& slot = batch_.recipe.outputs[position].shape;
  return IsUnpadded() ? slot : TrueShape(position, i, slot);
}

Scatter::Block Scatter::BlockOf(size_t position, size_t i) const {
  Block block = {.shape = ShapeOf(position, i)};
  if (batch_.plan.packed()) return block;
  block.offset = Shape(batch_.recipe.outputs[position].shape.size(), 0);
  for (size_t d = 0; d < block.offset.size() && batch_.requests.size() > 1; ++d) {
    if (model_.MovesWithBatch(position, d)) block.offset[d] = batch_.first_row[i];
  }
  return block;
}

// Dims are fitted at multiples of the steps of their axes; a request of other sizes is not padded.
bool Scatter::IsOffStep(const AffineDim& dim, const std::vector<int64_t>& sizes) const {
  bool off_step = false;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    off_step |= dim.MovesWith(axis) && sizes[axis] % model_.proof().axes[axis].step != 0;
  }
  return off_step;
}

absl::Status Scatter::CheckForm(size_t position, size_t i, const Block& block) const {
  if (IsUnpadded() || model_.proof().output_shapes.empty()) return absl::OkStatus();
  const std::vector<AffineDim>& dims = model_.proof().output_shapes[position].dims;
  const std::vector<int64_t>& sizes = batch_.plan.shapes()[i].sizes;
  const Shape& slot = batch_.recipe.outputs[position].shape;
  bool as_promised = dims.size() == block.shape.size();
  for (size_t d = 0; d < dims.size() && as_promised; ++d) {
    // Where an axis has no bucket its size may lie far from those that dims were fitted at.
    const bool fitted = !batch_.target.exact || dims[d].Moves();
    const bool open = dims[d].open || !fitted || IsOffStep(dims[d], sizes);
    as_promised = open ? block.shape[d] >= 0 : block.shape[d] == dims[d].At(sizes);
    if (!batch_.plan.packed())
      as_promised = as_promised && block.offset[d] + block.shape[d] <= slot[d];
  }
  if (as_promised) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("output '", model_.recipe_outputs()[position].name, "' has shape ",
                   ShapeToString(slot), " in its recipe (", batch_.recipe.SizesText(),
                   "), of which ", ShapeToString(block.shape), " at row ", batch_.first_row[i],
                   " is not the ", ShapeToString(model_.proof().output_shapes[position].At(sizes)),
                   " that the model's other sizes promise"));
}

absl::Status Scatter::CheckBytes(size_t position, const OutputTensor& output) const {
  if (!batch_.stream.poisons() || !HoldsPoison(output.bytes)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("output '", model_.recipe_outputs()[position].name,
                                          "' of ", batch_.recipe.SizesText(),
                                          " holds bytes that the replay has not written"));
}

void Scatter::PlaceOutputs(Response& response) const {
  response.outputs.resize(batch_.recipe.outputs.size());
  for (size_t position = 0; position < batch_.recipe.outputs.size(); ++position) {
    const TensorSlot& slot = batch_.recipe.outputs[position];
    if (!IsFloating(slot.dtype) || !IsWanted(*batch_.requests[0], position)) continue;
    Shape shape = ShapeOf(position, 0);
    if (!batch_.plan.packed() && !IsBeginning(shape, slot.shape)) continue;
    const size_t bytes = BytesOf(shape, slot.dtype);
    if (bytes > slot.bytes || kMostRoom * bytes < slot.bytes) continue;
    OutputTensor& output = response.outputs[position];
    output.shape = std::move(shape);
    ResizeUninitialized(output.bytes, slot.bytes);
    if (batch_.stream.poisons()) FillWithPoison(output.bytes.data(), output.bytes.size());
    batch_.stream.PlaceOutput(position, reinterpret_cast<std::byte*>(output.bytes.data()));
  }
}

absl::Status Scatter::CopyOne(const Frame& frame, size_t position, size_t i,
                              OutputTensor& output) const {
  const TensorSlot& slot = batch_.recipe.outputs[position];
  Block block = BlockOf(position, i);
  RETURN_IF_ERROR(CheckForm(position, i, block));
  if (frame.outputs[position] == reinterpret_cast<const std::byte*>(output.bytes.data())) {
    // It was placed here.
    output.bytes.resize(BytesOf(output.shape, slot.dtype));
    return CheckBytes(position, output);
  }
  if (batch_.plan.packed()) {
    output = ReadPacked(batch_.recipe, position, batch_.packed, i, frame.outputs[position]);
    return CheckBytes(position, output);
  }
  output.shape = std::move(block.shape);
  ResizeUninitialized(output.bytes, BytesOf(output.shape, slot.dtype));
  CopyBlock({.shape = output.shape,
             .from_shape = slot.shape,
             .from_offset = std::move(block.offset),
             .to_shape = output.shape,
             .to_offset = Shape(slot.shape.size(), 0),
             .element_bytes = DTypeSize(slot.dtype)},
            frame.outputs[position], output.bytes.data());
  return CheckBytes(position, output);
}

void Scatter::Copy(const Frame& frame, std::vector<Response>& responses, size_t first,
                   size_t last) const {
  for (size_t i = first; i < last; ++i) {
    Response& response = responses[i];
    if (batch_.requests[i]->gone != nullptr && batch_.requests[i]->gone->stopped()) {
      response.outputs.clear();
      response.status = absl::CancelledError("no client waits for the request any more");
      continue;
    }
    response.outputs.resize(batch_.recipe.outputs.size());
    for (size_t position = 0; position < batch_.recipe.outputs.size(); ++position) {
      if (!IsWanted(*batch_.requests[i], position)) continue;
      response.status = CopyOne(frame, position, i, response.outputs[position]);
      if (response.status.ok()) continue;
      response.outputs.clear();
      WhereMemoryAllows([&] {
        model_.owner()->observer().On(WithheldAnswer{});
        model_.Note(absl::StrCat("an answer is withheld, which is a bug of the server: ",
                                 std::string(response.status.message())));
      });
      break;
    }
  }
}

}  // namespace reprise
