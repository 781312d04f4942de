#include "server/rpc/infer_call.h"

#include <chrono>
#include <utility>

#include "proto/grpc_service.pb.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "server/generate/token_answers.h"
#include "server/http2/unary_method.h"
#include "server/rpc/codec.h"
#include "server/rpc/token_parameters.h"

namespace reprise {
namespace {

// The call and the core's callback share it. It outlives whichever goes first.
class InferCall final : public RpcHandler, public std::enable_shared_from_this<InferCall> {
 public:
  InferCall(std::shared_ptr<RpcCall> call, Inference& inference, const TokenCalls& tokens,
            const Clock& clock, OpenAnswers& open)
      : call_(std::move(call)),
        inference_(inference),
        token_calls_(tokens),
        clock_(clock),
        open_(open) {}

  void OnMessage(RpcMessage message) override {
    absl::Status decoded = ParseMessage(message.bytes, request_);
    if (!decoded.ok()) return Finish(decoded);
    held_ = std::move(message.held);
    InferRequest& view = decoded_.view;
    Inference::Done done;
    decoded = WithinMemory([] { return "the request"; },
                           [&] {
                             done = [self = shared_from_this()](InferResult result) {
                               self->Answer(std::move(result));
                             };
                             return Decode(request_, decoded_);
                           });
    view.deadline_ns = DeadlineNs(call_->head(), clock_);
    view.key = call_->head().key;
    view.trace = call_->head().trace;
    if (!decoded.ok()) {
      WhereMemoryAllows([&] { inference_.Refuse(view, decoded); });
      return Finish(decoded);
    }
    if (token_calls_.Takes(view)) return StartTokens();
    SetUnderWay(inference_.Start(view, std::move(done)));
  }

  void OnCancel() override {
    std::shared_ptr<Call> call;
    std::shared_ptr<TokenCall> tokens;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      call = under_way_;
      tokens = tokens_;
    }
    if (call != nullptr) inference_.Cancel(*call);
    if (tokens != nullptr) tokens->Cancel();
  }

  void OnDone() override {
    MutexLock lock(mutex_);
    done_ = true;
    if (std::exchange(is_open_, false)) open_.End();
  }

 private:
  // Notes that the core has the call; it may be finished already, or the client disconnected.
  void SetUnderWay(std::shared_ptr<Call> call) {
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      under_way_ = call;
      if (!cancelled_) return;
    }
    if (call != nullptr) inference_.Cancel(*call);
  }

  // Answers with all tokens at once.
  void StartTokens() {
    const auto start = [&]() -> absl::StatusOr<std::shared_ptr<TokenCall>> {
      SamplingParameters parameters;
      RETURN_IF_ERROR(TakeTokenParameters(request_, parameters));
      auto whole = std::make_shared<WholeTokenAnswer>();
      return token_calls_.Start(
          decoded_.view, std::move(parameters), /*counts_unread=*/false,
          [self = shared_from_this(), whole](const TokenCallInfo& info,
                                             const GenerationEvent& event, const TokenText& text) {
            if (whole->Add(event, text)) self->AnswerTokens(info, *whole);
          });
    };
    absl::StatusOr<std::shared_ptr<TokenCall>> call =
        WithinMemory([] { return "the request"; }, start);
    if (!call.ok()) {
      WhereMemoryAllows([&] { inference_.Refuse(decoded_.view, call.status()); });
      return Finish(call.status());
    }
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      tokens_ = *call;
      if (!cancelled_) return;
    }
    (*call)->Cancel();
  }

  void AnswerTokens(const TokenCallInfo& info, const WholeTokenAnswer& whole) {
    absl::Status status = whole.status();
    std::shared_ptr<inference::ModelInferResponse> response;
    if (status.ok()) {
      status = WithinMemory([] { return "the answer"; },
                            [&] {
                              response = std::make_shared<inference::ModelInferResponse>();
                              whole.Fill(info, *response);
                              return absl::OkStatus();
                            });
    }
    Reply(status, std::move(response));
  }

  void Answer(InferResult result) {
    absl::Status status = result.status;
    std::shared_ptr<inference::ModelInferResponse> response;
    if (status.ok()) {
      status = WithinMemory([] { return "the answer"; },
                            [&] {
                              response = std::make_shared<inference::ModelInferResponse>();
                              return Encode(std::move(result), request_.id(), *response);
                            });
    }
    Reply(status, std::move(response));
  }

  void Reply(const absl::Status& status, std::shared_ptr<inference::ModelInferResponse> response) {
    std::shared_ptr<Call> call;  // holds this by its callback: let go of here
    std::shared_ptr<TokenCall> tokens;
    {
      MutexLock lock(mutex_);
      finished_ = true;
      call.swap(under_way_);
      tokens.swap(tokens_);
    }
    if (!status.ok()) return Finish(status);
    {
      MutexLock lock(mutex_);
      if (done_) return;  // the client has disconnected
      is_open_ = true;
      open_.Begin();
    }
    call_->Reply(std::move(response));
  }

  // Refusals are not waited for: the server that refuses is shutting down, and they are small.
  void Finish(const absl::Status& status) {
    open_.Note();
    call_->Finish(status);
  }

  const std::shared_ptr<RpcCall> call_;
  Inference& inference_;
  const TokenCalls& token_calls_;
  const Clock& clock_;
  OpenAnswers& open_;
  HeldBytes held_;
  inference::ModelInferRequest request_;
  DecodedRequest decoded_;  // points into it
  // Guarded.
  Mutex mutex_;
  std::shared_ptr<Call> under_way_ GUARDED_BY(mutex_);
  std::shared_ptr<TokenCall> tokens_ GUARDED_BY(mutex_);  // a request for tokens has this instead
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  bool done_ GUARDED_BY(mutex_) = false;
  bool is_open_ GUARDED_BY(mutex_) = false;  // an answer is under way to the client
};

}  // namespace

int64_t DeadlineNs(const CallHead& head, const Clock& clock) {
  if (!head.deadline.has_value()) return kNoDeadline;
  const auto left = *head.deadline - std::chrono::steady_clock::now();
  const int64_t left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  int64_t deadline_ns = 0;
  if (__builtin_add_overflow(clock.NowNs(), left_ns, &deadline_ns)) return kNoDeadline;
  return deadline_ns;
}

RpcMethod InferMethod(Inference& inference, const TokenCalls& tokens, const Clock& clock,
                      OpenAnswers& open) {
  return {.start = [&](std::shared_ptr<RpcCall> call) {
    return std::make_shared<InferCall>(std::move(call), inference, tokens, clock, open);
  }};
}

}  // namespace reprise
