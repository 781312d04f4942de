// TokenStream: a request for tokens that is under way on a stream, whose call may begin later than
// its first answers are sent.
//
// Threads: all methods from any.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/base/mutex.h"
#include "server/generate/token_calls.h"

namespace reprise {

class TokenStream {
 public:
  explicit TokenStream(bool wants_final) : wants_final(wants_final) {}

  // Notes that the call has begun; events may have been told, sent or cancelled by then.
  void Begin(std::shared_ptr<TokenCall> call) {
    int64_t took = 0;
    bool cancel = false;
    {
      MutexLock lock(mutex_);
      call_ = call;
      took = std::exchange(took_, 0);
      cancel = cancelled_;
    }
    if (took > 0) call->Took(took);
    if (cancel) call->Cancel();
  }
  // Notes that the client took an answer.
  void Took() {
    if (const std::shared_ptr<TokenCall> call = CallOr([&] { ++took_; })) call->Took(1);
  }
  void Cancel() {
    if (const std::shared_ptr<TokenCall> call = CallOr([&] { cancelled_ = true; })) {
      call->Cancel();
    }
  }

  const bool wants_final;

 private:
  template <class Note>
  std::shared_ptr<TokenCall> CallOr(Note note) {
    MutexLock lock(mutex_);
    if (call_ == nullptr) note();
    return call_;
  }

  Mutex mutex_;
  std::shared_ptr<TokenCall> call_ GUARDED_BY(mutex_);
  int64_t took_ GUARDED_BY(mutex_) = 0;
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
