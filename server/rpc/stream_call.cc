#include "server/rpc/stream_call.h"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "server/core/error_table.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/codec.h"
#include "server/rpc/status.h"

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

class InferStream final : public StreamReactor {
 public:
  InferStream(Inference& inference, const Clock& clock, OpenAnswers& open,
              grpc::CallbackServerContext& context)
      : inference_(inference), open_(open), deadline_ns_(DeadlineNs(context, clock)) {
    ReadNext();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        MutexLock lock(mutex_);
        all_read_ = true;
      }
      FinishWhereDone();
      return;
    }
    const std::shared_ptr<Request> request = std::move(reading_);
    open_.Begin();
    bool kept = false, wait = false;
    {
      MutexLock lock(mutex_);
      kept = WhereMemoryAllows([&] { requests_.push_back(request); });
      wait = paused_ = requests_.size() >= kMostUnderWay;
    }
    if (!kept) {
      open_.End();
      return EndWithoutMemory();
    }
    Start(request);
    // Otherwise it is read on once an answer has been sent.
    if (!wait) ReadNext();
  }

  void OnWriteDone(bool) override {
    // Also where the client is gone: then those that follow fail as well.
    open_.End();
    bool read = false;
    std::shared_ptr<Request> sent;
    const inference::ModelStreamInferResponse* next = nullptr;
    {
      MutexLock lock(mutex_);
      sent = std::move(requests_.front());
      requests_.pop_front();
      writing_ = false;
      read = std::exchange(paused_, false);
      next = NextAnswer();
    }
    if (next != nullptr) StartWrite(next);
    if (read) ReadNext();
    FinishWhereDone();
  }

  void OnCancel() override {
    std::vector<std::shared_ptr<Call>> calls;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      WhereMemoryAllows([&] {
        for (const auto& request : requests_) {
          if (request->call != nullptr) calls.push_back(request->call);
        }
      });
    }
    for (const auto& call : calls) inference_.Cancel(*call);
  }

  void OnDone() override { delete this; }

 private:
  struct Request {
    inference::ModelInferRequest message;
    DecodedRequest decoded;
    std::shared_ptr<Call> call;  // while it is under way; holds this through its callback
    bool answered = false;
    inference::ModelStreamInferResponse answer;
  };

  void ReadNext() {
    if (WhereMemoryAllows([&] { reading_ = std::make_shared<Request>(); })) {
      StartRead(&reading_->message);
      return;
    }
    EndWithoutMemory();
  }

  // Those that were read are answered.
  void EndWithoutMemory() {
    {
      MutexLock lock(mutex_);
      all_read_ = true;
      status_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "");
    }
    FinishWhereDone();
  }

  void Start(const std::shared_ptr<Request>& request) {
    InferRequest& view = request->decoded.view;
    Inference::Done done;
    const absl::Status decoded =
        WithinMemory([] { return "the request"; },
                     [&] {
                       done = [this, request](InferResult result) { Answer(request, result); };
                       return Decode(request->message, request->decoded);
                     });
    if (!decoded.ok()) {
      WhereMemoryAllows([&] { inference_.Refuse(view, decoded); });
      InferResult refused;
      refused.status = decoded;
      return Answer(request, refused);
    }
    view.deadline_ns = deadline_ns_;
    const std::shared_ptr<Call> call = inference_.Start(view, std::move(done));
    bool cancel = false;
    {
      MutexLock lock(mutex_);
      if (!request->answered) request->call = call;
      cancel = cancelled_;
    }
    if (cancel && call != nullptr) inference_.Cancel(*call);
  }

  // Keeps the answer until it is its turn; the call stays open until it is sent.
  void Answer(const std::shared_ptr<Request>& request, InferResult& result) {
    inference::ModelStreamInferResponse* const answer = &request->answer;
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
    const inference::ModelStreamInferResponse* next = nullptr;
    std::shared_ptr<Call> call;
    {
      MutexLock lock(mutex_);
      request->answered = true;
      call.swap(request->call);
      next = NextAnswer();
    }
    // Outside of the lock: its reaction may come on this thread.
    if (next != nullptr) StartWrite(next);
  }

  // The answer to send now: that of the oldest request, unless it is being sent. Clients may tell
  // answers apart by their order alone.
  const inference::ModelStreamInferResponse* NextAnswer() REQUIRES(mutex_) {
    if (writing_ || requests_.empty() || !requests_.front()->answered) return nullptr;
    writing_ = true;
    return &requests_.front()->answer;
  }

  void FinishWhereDone() {
    grpc::Status status;
    {
      MutexLock lock(mutex_);
      if (!all_read_ || !requests_.empty() || std::exchange(finished_, true)) return;
      status = status_;
    }
    Finish(status);
  }

  Inference& inference_;
  OpenAnswers& open_;
  const int64_t deadline_ns_;
  std::shared_ptr<Request> reading_;  // one read at a time fills it
  // Guarded.
  Mutex mutex_;
  // Read and not answered yet, in the order in which they came.
  std::deque<std::shared_ptr<Request>> requests_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;  // the answer of the first one
  bool paused_ GUARDED_BY(mutex_) = false;   // no read is under way
  bool all_read_ GUARDED_BY(mutex_) = false;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  grpc::Status status_ GUARDED_BY(mutex_);
};

}  // namespace

StreamReactor* StartStream(Inference& inference, const Clock& clock, OpenAnswers& open,
                           grpc::CallbackServerContext& context) {
  return new InferStream(inference, clock, open, context);
}

}  // namespace reprise
