#include "server/rpc/stream_call.h"

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/grpc_service.pb.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "server/generate/token_answers.h"
#include "server/http2/unary_method.h"
#include "server/rpc/codec.h"
#include "server/rpc/infer_call.h"
#include "server/rpc/token_parameters.h"
#include "server/rpc/token_stream.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

// Requests of one stream that are read and not answered yet.
constexpr size_t kMostUnderWay = 64;

constexpr char kWantsFinal[] = "triton_enable_empty_final_response";
constexpr char kIsFinal[] = "triton_final_response";

bool WantsFinal(const inference::ModelInferRequest& request) {
  const auto it = request.parameters().find(kWantsFinal);
  return it != request.parameters().end() && it->second.bool_param();
}

class InferStream final : public RpcHandler, public std::enable_shared_from_this<InferStream> {
 public:
  InferStream(std::shared_ptr<RpcCall> call, Inference& inference, const TokenCalls& tokens,
              const Clock& clock, OpenAnswers& open)
      : call_(std::move(call)),
        inference_(inference),
        tokens_(tokens),
        open_(open),
        deadline_ns_(DeadlineNs(call_->head(), clock)) {}

  void OnMessage(RpcMessage message) override {
    std::shared_ptr<Request> request;
    bool wait = false;
    const bool kept = WhereMemoryAllows([&] {
      request = std::make_shared<Request>();
      request->answer = std::make_shared<inference::ModelStreamInferResponse>();
      MutexLock lock(mutex_);
      requests_.push_back(request);
      wait = paused_ = requests_.size() + token_streams_.size() >= kMostUnderWay;
    });
    if (!kept) return EndWithoutMemory();
    open_.Begin();
    Start(request, std::move(message));
    // Otherwise it is read on once an answer has been sent.
    if (!wait) call_->Read();
  }

  void OnHalfClose() override {
    {
      MutexLock lock(mutex_);
      all_read_ = true;
    }
    FinishWhereDone();
  }

  void OnSent() override {
    bool read = false, ended = true;
    std::shared_ptr<Request> sent;
    std::shared_ptr<TokenStream> took;
    RpcCall::Message next;
    {
      MutexLock lock(mutex_);
      if (!writing_) return;
      if (writing_tokens_) {
        took = std::move(events_.front()->of);
        ended = events_.front()->last;
        events_.pop_front();
        if (ended) token_streams_.erase(took);
      } else {
        sent = std::move(requests_.front());
        requests_.pop_front();
      }
      writing_ = writing_tokens_ = false;
      if (ended) read = std::exchange(paused_, false);
      next = NextAnswer();
    }
    if (ended) open_.End();
    if (took != nullptr) took->Took();
    if (next != nullptr) call_->Send(std::move(next));
    if (read) call_->Read();
    FinishWhereDone();
  }

  void OnCancel() override {
    std::vector<std::shared_ptr<Call>> calls;
    std::set<std::shared_ptr<TokenStream>> streams;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      WhereMemoryAllows([&] { streams = token_streams_; });
      WhereMemoryAllows([&] {
        for (const auto& request : requests_) {
          if (request->call != nullptr) calls.push_back(request->call);
        }
      });
    }
    for (const auto& call : calls) inference_.Cancel(*call);
    for (const auto& stream : streams) stream->Cancel();
  }

  void OnDone() override {
    size_t open = 0;
    {
      MutexLock lock(mutex_);
      open = requests_.size() + token_streams_.size();
      done_ = true;
      writing_ = false;
      requests_.clear();
      token_streams_.clear();
      events_.clear();
    }
    for (; open > 0; --open) open_.End();
  }

 private:
  struct Request {
    HeldBytes held;
    inference::ModelInferRequest message;
    DecodedRequest decoded;
    std::shared_ptr<Call> call;  // while it is under way; holds this through its callback
    bool answered = false;
    std::shared_ptr<inference::ModelStreamInferResponse> answer;
  };
  // An answer of a request for tokens, until it is sent.
  struct TokenEvent {
    std::shared_ptr<TokenStream> of;
    bool last = false;
    std::shared_ptr<inference::ModelStreamInferResponse> answer;
  };

  // Requests that were read are answered.
  void EndWithoutMemory() {
    {
      MutexLock lock(mutex_);
      all_read_ = true;
      status_ = absl::Status(absl::StatusCode::kResourceExhausted, "");
    }
    FinishWhereDone();
  }

  void Start(const std::shared_ptr<Request>& request, RpcMessage message) {
    InferRequest& view = request->decoded.view;
    Inference::Done done;
    absl::Status decoded = ParseMessage(message.bytes, request->message);
    request->held = std::move(message.held);
    std::string().swap(message.bytes);
    if (decoded.ok()) {
      decoded = WithinMemory([] { return "the request"; },
                             [&] {
                               done = [self = shared_from_this(), request](InferResult result) {
                                 self->Answer(request, result);
                               };
                               return Decode(request->message, request->decoded);
                             });
    }
    if (!decoded.ok()) {
      WhereMemoryAllows([&] { inference_.Refuse(view, decoded); });
      InferResult refused;
      refused.status = decoded;
      return Answer(request, refused);
    }
    view.deadline_ns = deadline_ns_;
    view.key = call_->head().key;
    view.trace = call_->head().trace;
    if (tokens_.Takes(view)) return StartTokens(request);
    const std::shared_ptr<Call> call = inference_.Start(view, std::move(done));
    bool cancel = false;
    {
      MutexLock lock(mutex_);
      if (!request->answered) request->call = call;
      cancel = cancelled_;
    }
    if (cancel && call != nullptr) inference_.Cancel(*call);
  }

  void StartTokens(const std::shared_ptr<Request>& request) {
    std::shared_ptr<TokenStream> stream;
    const auto start = [&]() -> absl::StatusOr<std::shared_ptr<TokenCall>> {
      stream = std::make_shared<TokenStream>(WantsFinal(request->message));
      {
        MutexLock lock(mutex_);
        token_streams_.insert(stream);
        std::erase(requests_, request);
      }
      SamplingParameters parameters;
      RETURN_IF_ERROR(TakeTokenParameters(request->message, parameters));
      return tokens_.Start(request->decoded.view, std::move(parameters), /*counts_unread=*/true,
                           [self = shared_from_this(), stream](
                               const TokenCallInfo& info, const GenerationEvent& event,
                               const TokenText& text) { self->Tell(stream, info, event, text); });
    };
    absl::StatusOr<std::shared_ptr<TokenCall>> call =
        WithinMemory([] { return "the request"; }, start);
    if (call.ok()) return stream->Begin(*std::move(call));
    WhereMemoryAllows([&] { inference_.Refuse(request->decoded.view, call.status()); });
    if (stream == nullptr) return EndWithoutMemory();
    const TokenCallInfo info = {.model = request->message.model_name(),
                                .version = request->message.model_version(),
                                .id = request->message.id()};
    Tell(stream, info, {.finish = Ending::kError, .status = call.status(), .last = true}, {});
  }

  void Tell(const std::shared_ptr<TokenStream>& stream, const TokenCallInfo& info,
            const GenerationEvent& event, const TokenText& text) {
    auto told = std::make_unique<TokenEvent>();
    told->of = stream;
    told->last = event.last;
    told->answer = std::make_shared<inference::ModelStreamInferResponse>();
    inference::ModelInferResponse& response = *told->answer->mutable_infer_response();
    FillTokenAnswer(info, event, text, response);
    if (!event.status.ok()) told->answer->set_error_message(ErrorMessage(event.status));
    if (stream->wants_final) {
      (*response.mutable_parameters())[kIsFinal].set_bool_param(event.last);
    }
    RpcCall::Message next;
    {
      MutexLock lock(mutex_);
      if (done_) return;  // the client has disconnected
      events_.push_back(std::move(told));
      next = NextAnswer();
    }
    if (next != nullptr) call_->Send(std::move(next));
  }

  // Keeps the answer until it is its turn; the call stays open until it is sent.
  void Answer(const std::shared_ptr<Request>& request, InferResult& result) {
    inference::ModelStreamInferResponse* const answer = request->answer.get();
    const std::string& id = request->message.id();
    absl::Status status = result.status;
    if (status.ok()) {
      status = WithinMemory(
          [] { return "the answer"; },
          [&] { return Encode(std::move(result), id, *answer->mutable_infer_response()); });
    }
    inference::ModelInferResponse& response = *answer->mutable_infer_response();
    if (!status.ok()) {
      response.Clear();
      response.set_model_name(request->message.model_name());
      response.set_id(id);
      answer->set_error_message(ErrorMessage(status));
    }
    if (WantsFinal(request->message)) {
      (*response.mutable_parameters())[kIsFinal].set_bool_param(true);
    }
    RpcCall::Message next;
    std::shared_ptr<Call> call;
    {
      MutexLock lock(mutex_);
      request->answered = true;
      call.swap(request->call);
      next = NextAnswer();
    }
    if (next != nullptr) call_->Send(std::move(next));
  }

  // Returns the answer to send now: the oldest request's, unless it is being sent. Clients may
  // tell answers apart by their order alone.
  RpcCall::Message NextAnswer() REQUIRES(mutex_) {
    if (writing_) return nullptr;
    if (!events_.empty()) {
      writing_ = writing_tokens_ = true;
      return events_.front()->answer;
    }
    if (requests_.empty() || !requests_.front()->answered) return nullptr;
    writing_ = true;
    return requests_.front()->answer;
  }

  void FinishWhereDone() {
    absl::Status status;
    {
      MutexLock lock(mutex_);
      const bool done = all_read_ && requests_.empty() && token_streams_.empty();
      if (!done || std::exchange(finished_, true)) return;
      status = status_;
    }
    call_->Finish(status);
  }

  const std::shared_ptr<RpcCall> call_;
  Inference& inference_;
  const TokenCalls& tokens_;
  OpenAnswers& open_;
  const int64_t deadline_ns_;
  // Guarded.
  Mutex mutex_;
  // Read and not answered yet, in the order in which they came.
  std::deque<std::shared_ptr<Request>> requests_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;  // the answer of the first one, or the first event
  bool writing_tokens_ GUARDED_BY(mutex_) = false;  // it is an event
  std::set<std::shared_ptr<TokenStream>> token_streams_ GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<TokenEvent>> events_ GUARDED_BY(mutex_);  // not sent yet
  bool done_ GUARDED_BY(mutex_) = false;                               // the call is over
  bool paused_ GUARDED_BY(mutex_) = false;                             // no read is under way
  bool all_read_ GUARDED_BY(mutex_) = false;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  absl::Status status_ GUARDED_BY(mutex_);
};

}  // namespace

RpcMethod StreamInferMethod(Inference& inference, const TokenCalls& tokens, const Clock& clock,
                            OpenAnswers& open) {
  return {.start =
              [&](std::shared_ptr<RpcCall> call) {
                return std::make_shared<InferStream>(std::move(call), inference, tokens, clock,
                                                     open);
              },
          .is_stream = true};
}

}  // namespace reprise
