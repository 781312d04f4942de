#include "server/requests/inference.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/requests/execute.h"
#include "server/requests/queue.h"
#include "server/requests/regions.h"
#include "server/requests/sequence_table.h"
#include "server/requests/waiting_call.h"

namespace reprise {
namespace {

absl::string_view KeyName(const InferRequest& request) {
  return request.key == nullptr ? "" : absl::string_view(request.key->name());
}

int64_t BytesOf(const InferRequest& request) {
  int64_t bytes = 0;
  for (const InputView& input : request.inputs) bytes += static_cast<int64_t>(input.bytes.size());
  return bytes;
}

}  // namespace

// Holds views of memory that the transport keeps until the request is answered.
class Inference::Anew final : public Resumer {
 public:
  Anew(Inference& inference, const InferRequest& request, const Done& done, int64_t start_ns)
      : inference_(inference), request_(request), done_(done), start_ns_(start_ns) {}
  std::function<void()> Resume(const RequestState& state) const override {
    waiting_ = std::make_shared<WaitingCall>();
    InferRequest request = request_;
    request.counted = state.ticket;
    request.on_text_threads = state.to_text_threads;
    request.left = std::shared_ptr<const StopFlag>(waiting_, &waiting_->left());
    Done done = [waiting = waiting_, answer = done_](InferResult result) {
      answer(std::move(result));
    };
    // Called once: a copy of `done` might find no memory.
    return [&inference = inference_, request = std::move(request), done = std::move(done),
            start_ns = start_ns_, waiting = waiting_]() mutable {
      const std::shared_ptr<Call> call = inference.StartAt(request, std::move(done), start_ns);
      if (call != nullptr) waiting->SetBegun(call);
    };
  }
  // Returns the request while it waits to begin again.
  std::shared_ptr<Call> waiting() const { return waiting_; }

 private:
  Inference& inference_;
  const InferRequest& request_;
  const Done& done_;
  const int64_t start_ns_;
  mutable std::shared_ptr<WaitingCall> waiting_;
};

Inference::Inference(std::vector<Stage> stages, Repository& repository, RequestScheduler& scheduler,
                     Engine& engine, const Clock& clock, ServerEvents& events,
                     const SharedRegions* regions)
    : stages_(std::move(stages)),
      repository_(repository),
      scheduler_(scheduler),
      engine_(engine),
      clock_(clock),
      events_(events),
      regions_(regions) {}

std::shared_ptr<Call> Inference::Start(const InferRequest& request, Done done) {
  return StartAt(request, std::move(done), clock_.NowNs());
}

std::shared_ptr<Call> Inference::StartAt(const InferRequest& request, Done done, int64_t start_ns) {
  auto call =
      WithinMemory([&] { return absl::StrCat("a request for model ", QuotedText(request.model)); },
                   [&] { return Walk(request, done, start_ns); });
  if (call.ok()) return *std::move(call);
  WhereMemoryAllows([&] { CountRefused(request, call.status(), start_ns); });
  done(InferResult{.status = call.status()});
  return nullptr;
}

absl::StatusOr<std::shared_ptr<Call>> Inference::Walk(const InferRequest& request, Done& done,
                                                      int64_t start_ns) {
  const Anew anew(*this, request, done, start_ns);
  RequestState state{.resumer = &anew,
                     .start_ns = start_ns,
                     .id = request.id,
                     .key = request.key,
                     .trace = request.trace,
                     .early_tokenizer_ns = request.tokenizer_ns};
  RETURN_IF_ERROR(CheckStays(request));
  InferRequest placed;
  if (UsesRegions(request)) {
    placed = request;
    RETURN_IF_ERROR(PlaceInRegions(regions_, placed, state));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Call> call,
                   WalkFrom(UsesRegions(request) ? placed : request, std::move(state), done));
  return call != nullptr ? std::move(call) : anew.waiting();
}

absl::StatusOr<std::shared_ptr<Call>> Inference::WalkFrom(const InferRequest& request,
                                                          RequestState state, const Done& done) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    const absl::Status status = stages_[i](request, state);
    if (state.waits) return nullptr;
    RETURN_IF_ERROR(status);
    // Its model is found by now, or by a later stage.
    if (state.model.servable != nullptr && state.model.servable->sequences != nullptr) {
      return EnterSequence(request, std::move(state), i + 1, done);
    }
  }
  return Enqueue(state, scheduler_, clock_, done);
}

absl::StatusOr<std::shared_ptr<Call>> Inference::EnterSequence(const InferRequest& request,
                                                               RequestState state, size_t next,
                                                               const Done& done) {
  const std::shared_ptr<SequenceTable> sequences = state.model.servable->sequences;
  state.resumer = nullptr;  // it does not outlive the walk that ends here
  return sequences->Enter(
      request, std::move(state),
      [this, next](const InferRequest& asked, RequestState& walked, const Done& answered) {
        const int64_t start_ns = walked.start_ns;
        auto call = WithinMemory(
            [&] { return absl::StrCat("a request for model ", QuotedText(asked.model)); },
            [&] { return WalkOn(asked, walked, next, answered); });
        if (!call.ok()) {
          WhereMemoryAllows([&] { CountRefused(asked, call.status(), start_ns); });
        }
        return call;
      },
      done);
}

absl::StatusOr<std::shared_ptr<Call>> Inference::WalkOn(const InferRequest& request,
                                                        RequestState& state, size_t next,
                                                        const Done& done) {
  for (size_t i = next; i < stages_.size(); ++i) RETURN_IF_ERROR(stages_[i](request, state));
  return Enqueue(state, scheduler_, clock_, done);
}

void Inference::CountRefused(const InferRequest& request, const absl::Status& status,
                             int64_t start_ns) {
  const std::string trace_id = request.trace == nullptr ? "" : request.trace->id_text();
  const RequestRecord record = {.code = status.code(),
                                .queue_full = status.code() == absl::StatusCode::kResourceExhausted,
                                .total_ns = clock_.NowNs() - start_ns,
                                .id = request.id,
                                .model = request.model,
                                .version = request.version,
                                .key = KeyName(request),
                                .trace_id = trace_id,
                                .bytes_in = BytesOf(request),
                                .why = {status.message().data(), status.message().size()}};
  const auto version = repository_.FindListed(request.model, request.version);
  if (version != nullptr && version->events != nullptr) {
    version->statistics.RecordFailure(record.total_ns);
    version->events->OnRequest(record);
  } else {
    events_.OnUnknownModel(record);
  }
}

void Inference::Cancel(Call& call) { call.Cancel(); }

void Inference::Execute(RequestScheduler::Batch& batch, Stream& stream) {
  ExecuteBatch(batch, engine_, clock_, stream);
}

}  // namespace reprise
