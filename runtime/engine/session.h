// Session: one recipe bound to memory, so that a replay takes no argument.
//
//   ASSIGN_OR_RETURN(auto model, engine.Load({.id = {"encoder"}, .path = "model.onnx"}));
//   ASSIGN_OR_RETURN(auto session, engine.Bind(model, {{"batch", 1}, {"sequence", 128}}));
//   absl::Span<int64_t> ids = session->input<int64_t>("input_ids");
//   absl::Span<const float> hidden = session->output<float>("last_hidden_state");
//   for (...) {
//     std::copy(..., ids.begin());
//     RETURN_IF_ERROR(session->Replay());   // allocates nothing, takes no argument
//     use(hidden);                          // at the same address each time
//   }
//
// The addresses of inputs and outputs are fixed once: in the session's memory, or where PlaceInput
// and PlaceOutput say. Sizes are those that the session was bound at, by axis label (Model::axes())
// or symbol; nothing is padded, so every element of an input is read.
//
// Ownership: a session keeps its model and recipe; the engine outlives it. Placed memory belongs to
//            the caller, and outlives the replays that use it.
// Threads:   a session belongs to one caller at a time. Different sessions replay at once; one that
//            needs another's result is kept apart by an Event (runtime/launch/event.h) or a join.
// Errors:    of Replay: INVALID_ARGUMENT naming input and value where a kernel cannot use a datum,
//            RESOURCE_EXHAUSTED where the system has no memory. Outputs mean nothing then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/bucket/policy.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/parameters/parameter_store.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/session_options.h"
#include "runtime/engine/types/capture_target.h"
#include "runtime/graph/element_type.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

class Session {
 public:
  // An input or output: its name, dtype and shape, and where it lies now.
  struct Place {
    std::string name;
    DType dtype = DType::kUndefined;
    Shape shape;
    std::byte* data = nullptr;
    size_t bytes = 0;
  };

  // Computes the outputs from the present contents of the inputs.
  absl::Status Replay();

  // Returns the elements of an input, to be written, or of an output, to be read after a replay.
  // Empty where there is none of that name, or its elements are no T: inputs() and outputs() have
  // all of them.
  template <typename T>
  absl::Span<T> input(absl::string_view name) const {
    return Elements<T>(Find(inputs_, name));
  }
  template <typename T>
  absl::Span<const T> output(absl::string_view name) const {
    return Elements<T>(Find(outputs_, name));
  }
  // Returns the same as bytes, for any dtype.
  absl::Span<std::byte> input(absl::string_view name) const { return Bytes(Find(inputs_, name)); }
  absl::Span<const std::byte> output(absl::string_view name) const {
    return Bytes(Find(outputs_, name));
  }
  // Return the recipe's places, in the model's order: an input that decides shapes is not among
  // them.
  const std::vector<Place>& inputs() const { return inputs_; }
  const std::vector<Place>& outputs() const { return outputs_; }

  // Makes the input be read from, or the output written to, `data` from now on. It holds `bytes`
  // bytes, as many as the tensor has. Floats at an address that is a multiple of their size are
  // read and written there; other elements are copied at the beginning, or the end, of each replay.
  // INVALID_ARGUMENT with both numbers where the sizes differ; NOT_FOUND for another name.
  absl::Status PlaceInput(absl::string_view name, const void* data, size_t bytes);
  absl::Status PlaceOutput(absl::string_view name, void* data, size_t bytes);

  const Model& model() const { return *model_; }
  const Recipe& recipe() const { return *recipe_; }
  int64_t replays() const { return replays_; }
  // Returns the bytes of the session's own memory that replays may have made real.
  size_t held_bytes() const { return own_inputs_.size() + stream_->held_bytes(); }

  // --- For Engine::Bind. --- Returns the recipe of `model` at `sizes`. INVALID_ARGUMENT naming an
  // axis that has no size, a size that has no axis, or an input that decides shapes and has no
  // value; FAILED_PRECONDITION for a model that is cut, since values after a cut have no fixed
  // place.
  static absl::StatusOr<CaptureTarget> TargetOf(const Model& model, const AxisSizes& sizes,
                                                const SessionOptions& options);
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<const Model> model,
                                                         std::shared_ptr<const Recipe> recipe,
                                                         HelperPool* cores, const Clock& clock,
                                                         const SessionOptions& options);

 private:
  Session(std::shared_ptr<const Model> model, std::shared_ptr<const Recipe> recipe,
          std::shared_ptr<const ParameterTable> parameters, std::unique_ptr<Stream> stream,
          const Clock& clock, bool release_outputs);

  static const Place* Find(const std::vector<Place>& places, absl::string_view name);
  template <typename T>
  static absl::Span<T> Elements(const Place* place) {
    if (place == nullptr || !IsSeenAs<std::remove_const_t<T>>(place->dtype)) return {};
    return {reinterpret_cast<T*>(place->data), place->bytes / sizeof(T)};
  }
  static absl::Span<std::byte> Bytes(const Place* place) {
    if (place == nullptr) return {};
    return {place->data, place->bytes};
  }
  // Bytes of the caller that are copied into a slot before each replay, or out of it after.
  struct Copy {
    size_t slot = 0;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    size_t bytes = 0;
  };
  static void SetCopy(std::vector<Copy>& copies, const Copy& copy, bool wanted);
  absl::Status ReplayWithin();
  absl::Status CheckPlaced() const;
  absl::Status ErrorOf(FirstDataError& errors) const;

  // Constant after construction.
  const std::shared_ptr<const Model> model_;
  const std::shared_ptr<const Recipe> recipe_;
  const std::shared_ptr<const ParameterTable> parameters_;
  const std::unique_ptr<Stream> stream_;
  const Clock& clock_;
  const bool release_outputs_;
  const AlignedBuffer own_inputs_;
  // Changed by the one caller.
  Frame frame_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
  std::vector<bool> placed_;  // indexed by output: it lies in the caller's memory
  std::vector<Copy> before_;
  std::vector<Copy> behind_;
  int64_t replays_ = 0;
};

}  // namespace reprise
