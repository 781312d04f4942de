#include "server/requests/admit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/repository/ranked_servables.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

// Returns the names that clients see.
std::string Names(absl::Span<const ModelIo> ios, const std::vector<bool>& hidden) {
  std::string names;
  for (size_t i = 0; i < ios.size(); ++i) {
    if (!hidden.empty() && hidden[i]) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", ShownText(ios[i].name));
  }
  return names.empty() ? "none" : names;
}

// Returns the index of `name`, or INVALID_ARGUMENT listing the existing ones.
absl::StatusOr<int> Find(absl::Span<const ModelIo> ios, absl::string_view name, const char* kind,
                         const std::vector<bool>& hidden) {
  for (size_t i = 0; i < ios.size(); ++i) {
    if (name != absl::string_view(ios[i].name)) continue;
    if (hidden.empty() || !hidden[i]) return static_cast<int>(i);
    return absl::InvalidArgumentError(absl::StrCat(kind, " ", QuotedText(name),
                                                   " belongs to the sequence's state, which the "
                                                   "server keeps; requests have ",
                                                   Names(ios, hidden)));
  }
  return absl::InvalidArgumentError(absl::StrCat("the model has no ", kind, " ", QuotedText(name),
                                                 "; it has ", Names(ios, hidden)));
}

absl::Status CheckShape(const ModelIo& io, const InputView& view) {
  auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("input ", QuotedText(io.name), " has shape ",
                                                   ShapeToString(view.shape), parts...));
  };
  if (view.shape.size() != io.dims.size()) {
    return error(" of rank ", view.shape.size(), ", the model expects rank ", io.dims.size());
  }
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] < 0) return error(": dim ", i, " is negative");
    if (io.dims[i].is_constant() && view.shape[i] != io.dims[i].size) {
      return error(": dim ", i, " is ", view.shape[i], ", the model expects ", io.dims[i].size);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInput(const ModelIo& io, const InputView& view) {
  if (view.datatype != ProtocolName(io)) {
    return absl::InvalidArgumentError(absl::StrCat("input ", QuotedText(io.name), " has datatype ",
                                                   ShownText(view.datatype), ", the model expects ",
                                                   ProtocolName(io)));
  }
  RETURN_IF_ERROR(CheckShape(io, view));
  auto elements = CheckedNumElements(view.shape);
  if (!elements.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", QuotedText(io.name), ": ", elements.status().message()));
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(*elements, static_cast<int64_t>(DTypeSize(io.dtype)), &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("input ", QuotedText(io.name), " has shape ",
                                                   ShapeToString(view.shape),
                                                   ": more bytes than can be counted"));
  }
  // Bytes of a text say themselves how many they are.
  if (!io.text && bytes != static_cast<int64_t>(view.bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", QuotedText(io.name), " of shape ", ShapeToString(view.shape), " and datatype ",
        view.datatype, " takes ", bytes, " bytes, the request has ", view.bytes.size()));
  }
  return absl::OkStatus();
}

// Takes the model at the ranks of the request, where requests decide them.
absl::Status ChooseRanks(const InferRequest& asked, RequestState& state) {
  RankedServables& ranked = *state.model.servable->ranked;
  InputRanks ranks;
  for (const InputView& view : asked.inputs) {
    if (!absl::c_linear_search(ranked.inputs(), view.name)) continue;
    ranks[std::string(view.name)] = static_cast<int64_t>(view.shape.size());
  }
  // One that is missing is told by name.
  if (ranks.size() < ranked.inputs().size()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::shared_ptr<const Servable> servable, ranked.Find(ranks, [&] {
    return state.resumer == nullptr ? std::function<void()>([] {}) : state.resumer->Resume(state);
  }));
  if (servable == nullptr) {
    state.waits = state.resumer != nullptr;
    return absl::UnavailableError(absl::StrCat("the model is being loaded at ", RanksText(ranks)));
  }
  state.model.servable = std::move(servable);
  return absl::OkStatus();
}

// Takes the side of pictures for a request with an input of it, where the model's file has two
// sides.
void ChooseSide(const InferRequest& asked, RequestState& state) {
  const std::shared_ptr<const Servable>& side = state.model.servable->picture_side;
  if (side == nullptr) return;
  const std::vector<ModelIo>& inputs = side->signature.inputs;
  const bool is_asked = absl::c_any_of(asked.inputs, [&](const InputView& view) {
    return absl::c_any_of(inputs, [&](const ModelIo& io) { return io.name == view.name; });
  });
  if (is_asked) state.model.servable = side;
}

// Returns whether it has one; a timeout of 0 asks for none of its own.
bool HasOwnTimeout(const ModelSettings& settings, const InferRequest& request) {
  return request.timeout_us.value_or(0) > 0 && settings.allow_timeout_override;
}

// `timeout_us` from now on, where there is one, or `deadline_ns` where that is earlier.
int64_t Earlier(const std::optional<int64_t>& timeout_us, int64_t deadline_ns, int64_t now_ns) {
  int64_t end_ns = 0;
  if (!timeout_us.has_value() || __builtin_mul_overflow(*timeout_us, int64_t{1000}, &end_ns) ||
      __builtin_add_overflow(end_ns, now_ns, &end_ns)) {
    return deadline_ns;
  }
  return std::min(end_ns, deadline_ns);
}

}  // namespace

absl::Status CheckId(absl::string_view id) {
  // Ids are echoed whole, and kept until then.
  constexpr size_t kMostBytes = 4096;
  if (id.size() <= kMostBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request's id has ", id.size(), " bytes, the most is ", kMostBytes));
}

absl::Status Admit(const Repository& repository, const InferRequest& asked, RequestState& state) {
  RETURN_IF_ERROR(CheckId(asked.id));
  ASSIGN_OR_RETURN(state.model, repository.Find(asked.model, asked.version));
  if (state.model.servable->ranked != nullptr) RETURN_IF_ERROR(ChooseRanks(asked, state));
  ChooseSide(asked, state);
  const Servable& servable = *state.model.servable;
  ASSIGN_OR_RETURN(Admitted admitted,
                   FitSignature(servable.signature.inputs, servable.signature.outputs, asked,
                                servable.signature.hidden));
  state.request = std::move(admitted.request);
  state.outputs = std::move(admitted.wanted_outputs);
  ASSIGN_OR_RETURN(state.deadline_ns, StartDeadline(servable.settings, asked, state.start_ns));
  state.end_ns = EndDeadline(servable.settings, asked, state.start_ns);
  ASSIGN_OR_RETURN(state.priority, Priority(servable.settings, asked));
  return absl::OkStatus();
}

absl::StatusOr<Admitted> FitSignature(absl::Span<const ModelIo> inputs,
                                      absl::Span<const ModelIo> outputs,
                                      const InferRequest& request, const HiddenTensors& hidden) {
  Admitted admitted;
  admitted.request.inputs.resize(inputs.size());
  std::vector<bool> seen(inputs.size());
  for (const InputView& view : request.inputs) {
    ASSIGN_OR_RETURN(const int position, Find(inputs, view.name, "input", hidden.inputs));
    if (seen[position]) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", QuotedText(view.name), " is given twice"));
    }
    seen[position] = true;
    RETURN_IF_ERROR(CheckInput(inputs[position], view));
    // An input without elements has no bytes, and null means that it was left out.
    static constexpr char kNothing = 0;
    InputTensor& tensor = admitted.request.inputs[position];
    tensor = {.shape = Shape(view.shape.begin(), view.shape.end()),
              .data = view.bytes.empty() ? &kNothing : view.bytes.data()};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!seen[i] && !inputs[i].optional && !hidden.input(i)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", QuotedText(inputs[i].name),
                                                     " is missing; the model expects ",
                                                     Names(inputs, hidden.inputs)));
    }
  }

  admitted.request.wanted_outputs.assign(outputs.size(), false);
  for (absl::string_view name : request.outputs) {
    ASSIGN_OR_RETURN(const int position, Find(outputs, name, "output", hidden.outputs));
    if (admitted.request.wanted_outputs[position]) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", QuotedText(name), " is asked for twice"));
    }
    admitted.request.wanted_outputs[position] = true;
    admitted.wanted_outputs.push_back(position);
  }
  if (request.outputs.empty()) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (hidden.output(i)) continue;
      admitted.request.wanted_outputs[i] = true;
      admitted.wanted_outputs.push_back(static_cast<int>(i));
    }
  }
  return admitted;
}

absl::StatusOr<int64_t> StartDeadline(const ModelSettings& settings, const InferRequest& request,
                                      int64_t now_ns) {
  if (request.timeout_us.has_value() && *request.timeout_us < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter timeout is ", *request.timeout_us, " microseconds"));
  }
  if (HasOwnTimeout(settings, request)) return EndDeadline(settings, request, now_ns);
  return Earlier(settings.default_timeout_us, request.deadline_ns, now_ns);
}

int64_t EndDeadline(const ModelSettings& settings, const InferRequest& request, int64_t now_ns) {
  if (!HasOwnTimeout(settings, request)) return request.deadline_ns;
  return Earlier(request.timeout_us, request.deadline_ns, now_ns);
}

absl::StatusOr<uint64_t> Priority(const ModelSettings& settings, const InferRequest& request) {
  if (settings.priority_levels == 0) return 0;
  if (request.priority == 0) return settings.default_priority;
  if (request.priority > settings.priority_levels) {
    return absl::InvalidArgumentError(absl::StrCat("parameter priority is ", request.priority,
                                                   ", the model has ", settings.priority_levels,
                                                   " levels"));
  }
  return request.priority;
}

}  // namespace reprise
