#include "runtime/engine/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/tail.h"

namespace reprise {
namespace {

// Streams reserve no less than this: addresses, not memory.
constexpr size_t kLeastArena = size_t{64} << 10;
// From this size on pages of 2 MiB are worth the bytes that rounding up costs.
constexpr size_t kLargeArena = size_t{8} << 20;

std::string NamesOf(const std::vector<Session::Place>& places) {
  return absl::StrJoin(places, ", ", [](std::string* out, const Session::Place& place) {
    absl::StrAppend(out, "'", place.name, "'");
  });
}

bool IsUsedInPlace(const Session::Place& place, const void* data) {
  return IsFloating(place.dtype) && reinterpret_cast<uintptr_t>(data) % DTypeSize(place.dtype) == 0;
}

// Returns the size of an axis, which may be named by its label or by the model's own symbol.
const int64_t* SizeOf(const AxisSizes& sizes, const ModelAxis& axis) {
  auto found = sizes.find(axis.label);
  if (found == sizes.end()) found = sizes.find(axis.symbol);
  return found == sizes.end() ? nullptr : &found->second;
}

absl::Status CheckNames(const Model& model, const AxisSizes& sizes) {
  for (const auto& one : sizes) {
    const std::string& name = one.first;
    const bool known = absl::c_any_of(model.axes(), [&](const ModelAxis& axis) {
      return axis.label == name || axis.symbol == name;
    });
    if (known) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model.id().name, "' has no axis '", name, "', only ",
                     absl::StrJoin(model.axes(), ", ", [](std::string* out, const ModelAxis& axis) {
                       absl::StrAppend(out, "'", axis.label, "'");
                     })));
  }
  return absl::OkStatus();
}

// Returns the values of shape inputs, as a request would bring them.
absl::StatusOr<RequestShape> ShapeOf(const Model& model, const SessionOptions& options) {
  RequestShape shape;
  for (const int position : model.signature().shape_inputs) {
    const ModelIo& input = model.inputs()[static_cast<size_t>(position)];
    const auto value = options.shape_inputs.find(input.name);
    if (value == options.shape_inputs.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "' of model '", model.id().name,
                       "' decides shapes: give its value in SessionOptions::shape_inputs"));
    }
    if (value->second.dtype() != input.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' is ",
                                                     DTypeName(input.dtype), ", its value ",
                                                     DTypeName(value->second.dtype())));
    }
    shape.shape_inputs[input.name] = value->second;
  }
  return shape;
}

}  // namespace

absl::StatusOr<CaptureTarget> Session::TargetOf(const Model& model, const AxisSizes& sizes,
                                                const SessionOptions& options) {
  if (model.tail() != nullptr) {
    const std::vector<Cut>& cuts = model.tail()->cuts();
    return absl::FailedPreconditionError(
        absl::StrCat("model '", model.id().name, "' cannot be bound: it is cut at ", cuts[0].op,
                     " '", cuts[0].node, "' (", cuts[0].why,
                     "), and values after a cut have no fixed place; Engine::RunOne runs it"));
  }
  RETURN_IF_ERROR(CheckNames(model, sizes));
  ASSIGN_OR_RETURN(RequestShape shape, ShapeOf(model, options));
  BatchTarget target = {.bucket = "exact", .exact = true};
  AxisSizes by_label;
  for (const ModelAxis& axis : model.axes()) {
    const int64_t* size = SizeOf(sizes, axis);
    if (size == nullptr || *size < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "axis '", axis.label, "' of model '", model.id().name, "' has ",
          size == nullptr ? std::string("no size") : absl::StrCat("the size ", *size)));
    }
    target.sizes.push_back(*size);
    by_label[axis.label] = *size;
  }
  // The recipe of a bucket serves requests as well.
  if (model.packing() == nullptr && model.buckets()->IsBucket(by_label, model.certified())) {
    AxisSizes bucketed = by_label;
    std::erase_if(bucketed,
                  [&](const auto& size) { return !model.certified().contains(size.first); });
    target.bucket = RecipeLabel(bucketed, model.axes().size(), model.buckets()->batch_axis);
    target.exact = bucketed.size() < model.axes().size();
  }
  shape.sizes = target.sizes;
  return CaptureTarget{
      .key = model.KeyAt(target, shape, nullptr), .bucket = target.bucket, .exact = target.exact};
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Model> model,
                                                         std::shared_ptr<const Recipe> recipe,
                                                         HelperPool* cores, const Clock& clock,
                                                         const SessionOptions& options) {
  ASSIGN_OR_RETURN(auto parameters, model->owner()->parameters().TableFor(recipe));
  const int most = cores == nullptr ? 1 : cores->cores();
  const size_t bytes = std::max(recipe->frame_bytes(), kLeastArena);
  ASSIGN_OR_RETURN(
      std::unique_ptr<Stream> stream,
      Stream::Create(
          {.cores = cores,
           .max_threads = options.max_threads > 0 ? std::min(options.max_threads, most) : most,
           .max_arena_bytes = AlignUp(bytes, kLargeArena),
           .huge_pages = bytes >= kLargeArena && !options.release_outputs}));
  RETURN_IF_ERROR(stream->Reserve(*recipe));
  return std::unique_ptr<Session>(new Session(std::move(model), std::move(recipe),
                                              std::move(parameters), std::move(stream), clock,
                                              options.release_outputs));
}

Session::Session(std::shared_ptr<const Model> model, std::shared_ptr<const Recipe> recipe,
                 std::shared_ptr<const ParameterTable> parameters, std::unique_ptr<Stream> stream,
                 const Clock& clock, bool release_outputs)
    : model_(std::move(model)),
      recipe_(std::move(recipe)),
      parameters_(std::move(parameters)),
      stream_(std::move(stream)),
      clock_(clock),
      release_outputs_(release_outputs),
      // Kernels of bytes load whole vectors, after the last byte too.
      own_inputs_(recipe_->input_bytes + kAlignment) {
  std::memset(own_inputs_.data(), 0, own_inputs_.size());
  frame_ = stream_->MakeFrame(*recipe_, parameters_->addresses(), nullptr);
  const int batch = model_->batch_axis();
  if (batch >= 0) {
    frame_.live_rows =
        recipe_->key.binding.axes.at(model_->axes()[static_cast<size_t>(batch)].symbol);
  }
  for (size_t i = 0; i < recipe_->inputs.size(); ++i) {
    const TensorSlot& slot = recipe_->inputs[i];
    std::byte* const place = own_inputs_.data() + slot.offset;
    stream_->PlaceInput(i, place);
    // Inputs after the model's own say which positions are live: nothing is padded here.
    if (i >= model_->signature().recipe_inputs.size()) {
      std::memset(place, 1, slot.bytes);
      continue;
    }
    inputs_.push_back({slot.name, slot.dtype, slot.shape, place, slot.bytes});
  }
  for (size_t i = 0; i < recipe_->outputs.size(); ++i) {
    const TensorSlot& slot = recipe_->outputs[i];
    // Names of outputs are the model's: a recipe may be another model's of the same graph.
    outputs_.push_back(
        {model_->outputs()[i].name, slot.dtype, slot.shape, frame_.outputs[i], slot.bytes});
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].name =
        model_->inputs()[static_cast<size_t>(model_->signature().recipe_inputs[i])].name;
  }
  placed_.assign(outputs_.size(), false);
}

const Session::Place* Session::Find(const std::vector<Place>& places, absl::string_view name) {
  for (const Place& place : places) {
    if (place.name == name) return &place;
  }
  return nullptr;
}

void Session::SetCopy(std::vector<Copy>& copies, const Copy& copy, bool wanted) {
  std::erase_if(copies, [&](const Copy& other) { return other.slot == copy.slot; });
  if (wanted) copies.push_back(copy);
}

absl::Status Session::PlaceInput(absl::string_view name, const void* data, size_t bytes) {
  const Place* found = Find(inputs_, name);
  if (found == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no input '", name, "', only ", NamesOf(inputs_)));
  }
  if (found->bytes != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", name, "' has ", found->bytes, " bytes, the place given ", bytes));
  }
  const size_t slot = static_cast<size_t>(found - inputs_.data());
  const auto* const from = static_cast<const std::byte*>(data);
  std::byte* const own = own_inputs_.data() + recipe_->inputs[slot].offset;
  const bool in_place = IsUsedInPlace(*found, data);
  stream_->PlaceInput(slot, in_place ? from : own);
  SetCopy(before_, {.slot = slot, .from = from, .to = own, .bytes = bytes}, !in_place);
  // Read, never written: `input` returns the caller's own memory.
  inputs_[slot].data = const_cast<std::byte*>(from);
  return absl::OkStatus();
}

absl::Status Session::PlaceOutput(absl::string_view name, void* data, size_t bytes) {
  const Place* found = Find(outputs_, name);
  if (found == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no output '", name, "', only ", NamesOf(outputs_)));
  }
  if (found->bytes != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("output '", name, "' has ", found->bytes, " bytes, the place given ", bytes));
  }
  const size_t slot = static_cast<size_t>(found - outputs_.data());
  auto* const to = static_cast<std::byte*>(data);
  std::byte* const own = stream_->inputs() + recipe_->input_bytes + recipe_->outputs[slot].offset;
  const bool in_place = IsUsedInPlace(*found, data);
  stream_->PlaceOutput(slot, in_place ? to : own);
  SetCopy(behind_, {.slot = slot, .from = own, .to = to, .bytes = bytes}, !in_place);
  outputs_[slot].data = to;
  placed_[slot] = true;
  return absl::OkStatus();
}

absl::Status Session::CheckPlaced() const {
  for (size_t i = 0; i < placed_.size(); ++i) {
    if (placed_[i] || outputs_[i].bytes == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("output '", outputs_[i].name,
                     "' has no place of the caller's, and release_outputs gives the session's own "
                     "memory back after each replay: see PlaceOutput"));
  }
  return absl::OkStatus();
}

absl::Status Session::ErrorOf(FirstDataError& errors) const {
  const DataError* error = errors.get();
  const bool of_input = error->input >= 0 && static_cast<size_t>(error->input) < inputs_.size();
  return reprise::ErrorOf(
      *error, of_input ? absl::StrCat("input '", inputs_[error->input].name, "'") : error->place);
}

absl::Status Session::ReplayWithin() {
  FirstDataError errors(*recipe_);
  frame_.errors = &errors;
  for (const Copy& copy : before_) {
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
  }
  stream_->Replay(*recipe_, frame_);
  frame_.errors = nullptr;
  if (errors.any()) return ErrorOf(errors);
  for (const Copy& copy : behind_) {
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
  }
  ++replays_;
  return model_->owner()->parameters().FilesIntact(clock_.NowNs());
}

absl::Status Session::Replay() {
  if (release_outputs_) {
    RETURN_IF_ERROR(CheckPlaced());
    RETURN_IF_ERROR(stream_->Reserve(*recipe_));
  }
  absl::Status status =
      WithinMemory([&] { return absl::StrCat("a replay of model '", model_->id().name, "'"); },
                   [&] { return ReplayWithin(); });
  if (release_outputs_) stream_->Release();
  return status;
}

}  // namespace reprise
