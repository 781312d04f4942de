#include "runtime/lazy/capture.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/lazy/trace.h"

namespace reprise::lazy {

// Shared with the tensors that read the graph's outputs.
struct CapturedState {
  absl::Status status = absl::FailedPreconditionError("nothing was captured");
  std::shared_ptr<StreamState> stream;
  std::unique_ptr<Session> session;
  std::vector<TracedValuePtr> inputs;  // the session reads their memory
  // The tensors that read outputs, by index: they read an output that is placed elsewhere there.
  std::vector<std::weak_ptr<TracedValue>> outputs;
};

namespace {

// Returns the outputs of the graph: the named ones, then all others that the program still has.
std::vector<TracedValuePtr> WantedOf(const std::vector<TracedValuePtr>& recorded,
                                     const std::vector<TracedValuePtr>& named) {
  std::vector<TracedValuePtr> wanted = named;
  for (const TracedValuePtr& value : recorded) {
    if (value->handle.expired()) continue;
    if (std::find(named.begin(), named.end(), value) == named.end()) wanted.push_back(value);
  }
  return wanted;
}

// Returns the names of the outputs, each once.
std::vector<std::string> NamesOf(const std::vector<TracedValuePtr>& wanted,
                                 const std::vector<std::string>& given) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string name = i < given.size() ? given[i] : wanted[i]->name;
    if (name.empty() || !taken.insert(name).second) name = absl::StrCat("output_", i);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

CapturedGraph::CapturedGraph() : state_(std::make_shared<CapturedState>()) {}
CapturedGraph::~CapturedGraph() = default;
CapturedGraph::CapturedGraph(CapturedGraph&&) noexcept = default;
CapturedGraph& CapturedGraph::operator=(CapturedGraph&&) noexcept = default;

absl::Status CapturedGraph::status() const {
  return state_ == nullptr ? absl::FailedPreconditionError("the graph was moved away")
                           : state_->status;
}
const Session* CapturedGraph::session() const {
  return state_ == nullptr ? nullptr : state_->session.get();
}

absl::Status CapturedGraph::Replay() {
  RETURN_IF_ERROR(status());
  // Pending ops may read outputs, and mean the values before the replay.
  RETURN_IF_ERROR(state_->stream->ComputePending());
  RETURN_IF_ERROR(state_->session->Replay());
  ++state_->stream->programs().replays;
  return absl::OkStatus();
}

std::vector<std::string> CapturedGraph::input_names() const {
  std::vector<std::string> names;
  if (session() == nullptr) return names;
  for (const Session::Place& place : session()->inputs()) names.push_back(place.name);
  return names;
}

std::vector<std::string> CapturedGraph::output_names() const {
  std::vector<std::string> names;
  if (session() == nullptr) return names;
  for (const Session::Place& place : session()->outputs()) names.push_back(place.name);
  return names;
}

absl::Status CapturedGraph::PlaceOutput(absl::string_view name, void* data, size_t bytes) {
  RETURN_IF_ERROR(status());
  RETURN_IF_ERROR(state_->session->PlaceOutput(name, data, bytes));
  for (size_t i = 0; i < state_->outputs.size(); ++i) {
    const TracedValuePtr value = state_->outputs[i].lock();
    if (value == nullptr || state_->session->outputs()[i].name != name) continue;
    value->bytes = std::shared_ptr<std::byte>(state_, static_cast<std::byte*>(data));
  }
  return absl::OkStatus();
}

Capture::Capture(OpStream& stream, CapturedGraph& graph, const CaptureOptions& options,
                 SourceLocation at)
    : stream_(stream), graph_(graph), options_(options) {
  graph_.state_ = std::make_shared<CapturedState>();
  graph_.state_->stream = stream.state();
  StreamState& state = *stream.state();
  if (state.capturing()) {
    graph_.state_->status = state.Report(absl::FailedPreconditionError(
        absl::StrCat("a capture within a capture is not supported during capture, ", PlaceText(at),
                     ": end the one that lasts first")));
    state.FailCapture(graph_.state_->status);
    return;
  }
  if (const absl::Status pending = state.Compute(); !pending.ok()) {
    graph_.state_->status = state.Report(pending);
    return;
  }
  state.BeginCapture();
  graph_.state_->status = absl::FailedPreconditionError("the capture has not ended");
  begun_ = true;
}

Capture::~Capture() { (void)End(); }

void Capture::Output(absl::string_view name, const Tensor& tensor) {
  if (!begun_) return;
  if (const absl::Status status = tensor.status(); !status.ok()) {
    return stream_.state()->FailCapture(status);
  }
  outputs_.emplace_back(std::string(name), tensor);
}

absl::Status Capture::End() {
  if (!begun_) return graph_.status();
  begun_ = false;
  StreamState& stream = *stream_.state();
  const std::shared_ptr<CapturedState>& state = graph_.state_;
  const auto end = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<TracedValuePtr> recorded, stream.EndCapture());
    std::vector<TracedValuePtr> named;
    std::vector<std::string> given;
    for (const auto& [name, tensor] : outputs_) {
      named.push_back(TensorHandle::Of(tensor));
      given.push_back(name);
    }
    const std::vector<TracedValuePtr> wanted = WantedOf(recorded, named);
    if (wanted.empty()) {
      return absl::FailedPreconditionError(
          "the capture has no output: keep a tensor that it makes, or name one with Output");
    }
    TracedGraph traced = GraphOf(wanted, {.names = true});
    traced.output_names = NamesOf(wanted, given);
    state->inputs = traced.inputs;
    ASSIGN_OR_RETURN(state->session,
                     stream.programs().Bind(traced, {.release_outputs = options_.release_outputs}));
    for (size_t i = 0; i < state->inputs.size(); ++i) {
      RETURN_IF_ERROR(state->session->PlaceInput(state->session->inputs()[i].name,
                                                 state->inputs[i]->bytes.get(),
                                                 state->inputs[i]->size()));
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      state->outputs.push_back(wanted[i]);
      if (!wanted[i]->is_result || wanted[i]->has_bytes()) continue;
      // The session lives as long as any reader of its outputs.
      wanted[i]->bytes = std::shared_ptr<std::byte>(state, state->session->outputs()[i].data);
      wanted[i]->made_by = nullptr;
    }
    return absl::OkStatus();
  };
  state->status = WithinMemory([] { return "a capture"; }, end);
  outputs_.clear();
  if (stream.capturing()) (void)stream.EndCapture();
  return stream.Report(state->status);
}

}  // namespace reprise::lazy
