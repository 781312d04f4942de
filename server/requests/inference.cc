#include "server/requests/inference.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/requests/execute.h"
#include "server/requests/queue.h"

namespace reprise {

Inference::Inference(std::vector<Stage> stages, Repository& repository, RequestScheduler& scheduler,
                     Engine& engine, const Clock& clock, ServerEvents& events)
    : stages_(std::move(stages)),
      repository_(repository),
      scheduler_(scheduler),
      engine_(engine),
      clock_(clock),
      events_(events) {}

// Holds views of what the transport keeps until the request is answered.
class Inference::Anew final : public Resumer {
 public:
  Anew(Inference& inference, const InferRequest& request, const Done& done)
      : inference_(inference), request_(request), done_(done) {}
  std::function<void()> Resume() const override {
    return [&inference = inference_, request = request_, done = done_] {
      inference.Start(request, done);
    };
  }

 private:
  Inference& inference_;
  const InferRequest& request_;
  const Done& done_;
};

std::shared_ptr<Call> Inference::Start(const InferRequest& request, Done done) {
  const int64_t start_ns = clock_.NowNs();
  auto call =
      WithinMemory([&] { return absl::StrCat("a request for model '", request.model, "'"); },
                   [&] { return Walk(request, done, start_ns); });
  if (call.ok()) return *std::move(call);
  WhereMemoryAllows([&] { CountRefused(request, call.status(), start_ns); });
  done(InferResult{.status = call.status()});
  return nullptr;
}

absl::StatusOr<std::shared_ptr<Call>> Inference::Walk(const InferRequest& request, Done& done,
                                                      int64_t start_ns) {
  const Anew anew(*this, request, done);
  RequestState state{.start_ns = start_ns, .resumer = &anew};
  for (const Stage& stage : stages_) {
    const absl::Status status = stage(request, state);
    if (state.waits) return nullptr;
    RETURN_IF_ERROR(status);
  }
  return Enqueue(state, scheduler_, clock_, done);
}

void Inference::CountRefused(const InferRequest& request, const absl::Status& status,
                             int64_t start_ns) {
  const RequestRecord record = {.code = status.code(),
                                .queue_full = status.code() == absl::StatusCode::kResourceExhausted,
                                .total_ns = clock_.NowNs() - start_ns};
  if (auto version = repository_.FindListed(request.model, request.version)) {
    version->statistics.RecordFailure(record.total_ns);
    version->events->OnRequest(record);
  } else {
    events_.OnUnknownModel(record);
  }
}

void Inference::Cancel(Call& call) { call.CancelWaiting(); }

void Inference::Execute(RequestScheduler::Batch& batch, Stream& stream) {
  ExecuteBatch(batch, engine_, clock_, stream);
}

}  // namespace reprise
