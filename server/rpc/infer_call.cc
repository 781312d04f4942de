#include "server/rpc/infer_call.h"

#include <memory>
#include <utility>

#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "server/generate/token_answers.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/codec.h"
#include "server/rpc/status.h"
#include "server/rpc/token_parameters.h"

namespace reprise {
namespace {

// The state that the reactor and the core's callback share. It outlives whichever goes first.
class CallState {
 public:
  explicit CallState(Inference& inference) : inference_(inference) {}

  DecodedRequest decoded;

  // The core has the call; it may be finished already, and the client may be gone already.
  void SetCall(std::shared_ptr<Call> call) {
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      call_ = call;
      if (!cancelled_) return;
    }
    if (call != nullptr) inference_.Cancel(*call);
  }
  void Cancel() {
    std::shared_ptr<Call> call;
    std::shared_ptr<TokenCall> tokens;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      call = call_;
      tokens = tokens_;
    }
    if (call != nullptr) inference_.Cancel(*call);
    if (tokens != nullptr) tokens->Cancel();
  }
  // The same for a request for tokens.
  void SetTokens(std::shared_ptr<TokenCall> call) {
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      tokens_ = call;
      if (!cancelled_) return;
    }
    call->Cancel();
  }
  // Lets go of the call, which holds this state.
  void Finish() {
    std::shared_ptr<Call> call;
    std::shared_ptr<TokenCall> tokens;
    MutexLock lock(mutex_);
    finished_ = true;
    call.swap(call_);
    tokens.swap(tokens_);
  }

 private:
  Inference& inference_;
  Mutex mutex_;
  std::shared_ptr<Call> call_ GUARDED_BY(mutex_);
  std::shared_ptr<TokenCall> tokens_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
};

class InferReactor final : public grpc::ServerUnaryReactor {
 public:
  InferReactor(std::shared_ptr<CallState> state, OpenAnswers& open)
      : state_(std::move(state)), open_(open) {}

  // Refusals are not waited for: who refuses is ending, and they are small.
  void FinishCall(const absl::Status& status) {
    is_answer_ = status.ok();
    if (is_answer_) {
      open_.Begin();
    } else {
      open_.Note();
    }
    grpc::Status answer;
    if (!WhereMemoryAllows([&] { answer = ToGrpc(status); })) {
      answer = grpc::Status(static_cast<grpc::StatusCode>(status.code()), "");
    }
    Finish(answer);
  }
  void OnCancel() override { state_->Cancel(); }
  void OnDone() override {
    if (is_answer_) open_.End();
    delete this;
  }

 private:
  const std::shared_ptr<CallState> state_;
  OpenAnswers& open_;
  bool is_answer_ = false;  // written before Finish, read after it
};

// Answers with all tokens at once.
void StartTokens(const TokenCalls& tokens, const std::shared_ptr<CallState>& state,
                 InferReactor& reactor, const inference::ModelInferRequest& request,
                 inference::ModelInferResponse& response) {
  const auto start = [&]() -> absl::StatusOr<std::shared_ptr<TokenCall>> {
    SamplingParameters parameters;
    RETURN_IF_ERROR(TakeTokenParameters(request, parameters));
    auto whole = std::make_shared<WholeTokenAnswer>();
    return tokens.Start(state->decoded.view, std::move(parameters), /*counts_unread=*/false,
                        [whole, state, &reactor, &response](const TokenCallInfo& info,
                                                            const GenerationEvent& event) {
                          if (!whole->Add(event)) return;
                          if (whole->status().ok()) whole->Fill(info, response);
                          state->Finish();
                          reactor.FinishCall(whole->status());
                        });
  };
  absl::StatusOr<std::shared_ptr<TokenCall>> call =
      WithinMemory([] { return "the request"; }, start);
  if (call.ok()) return state->SetTokens(*std::move(call));
  state->Finish();
  reactor.FinishCall(call.status());
}

}  // namespace

grpc::ServerUnaryReactor* StartInfer(Inference& inference, const TokenCalls& tokens,
                                     const Clock& clock, OpenAnswers& open,
                                     grpc::CallbackServerContext& context,
                                     const inference::ModelInferRequest& request,
                                     inference::ModelInferResponse& response) {
  std::shared_ptr<CallState> state;
  InferReactor* reactor = nullptr;
  const bool made = WhereMemoryAllows([&] {
    state = std::make_shared<CallState>(inference);
    reactor = new InferReactor(state, open);
  });
  if (!made) {
    grpc::ServerUnaryReactor* refusal = context.DefaultReactor();
    refusal->Finish(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, ""));
    return refusal;
  }
  const absl::Status decoded =
      WithinMemory([] { return "the request"; }, [&] { return Decode(request, state->decoded); });
  InferRequest& view = state->decoded.view;
  view.deadline_ns = DeadlineNs(context, clock);
  if (!decoded.ok()) {
    WhereMemoryAllows([&] { inference.Refuse(view, decoded); });
    reactor->FinishCall(decoded);
    return reactor;
  }
  if (tokens.Takes(view)) {
    StartTokens(tokens, state, *reactor, request, response);
    return reactor;
  }
  // Once FinishCall is called the reactor and the messages may be gone: only the state is ours.
  const auto answer = [state, reactor, &request, &response](InferResult result) {
    absl::Status status = result.status;
    if (status.ok()) {
      status = WithinMemory([] { return "the answer"; },
                            [&] { return Encode(std::move(result), request.id(), response); });
    }
    state->Finish();
    reactor->FinishCall(status);
  };
  Inference::Done done;
  const absl::Status kept = WithinMemory([] { return "the request"; },
                                         [&] {
                                           done = answer;
                                           return absl::OkStatus();
                                         });
  if (!kept.ok()) {
    reactor->FinishCall(kept);
    return reactor;
  }
  state->SetCall(inference.Start(view, std::move(done)));
  return reactor;
}

}  // namespace reprise
