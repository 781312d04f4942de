// VisionCall: a request of pictures, from their files to the model's answer for each. Each is an
// inference of its own.
//
// Ownership: the call keeps itself alive until `done`; the objects in the context outlive it.
// Threads:   all methods from any thread. `done` is called once, on the calling thread or on one
//            that finishes an inference; it must not block.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "server/pictures/picture_model.h"
#include "server/requests/inference.h"

namespace reprise {

struct VisionContext {
  const Repository* repository = nullptr;
  Inference* inference = nullptr;
  const Clock* clock = nullptr;
};

struct VisionRequest {
  std::string model;
  std::vector<std::string> files;
  std::shared_ptr<KeyUse> key;          // the client's: all pictures together are one request of it
  std::shared_ptr<RequestTrace> trace;  // null: it is not traced
};

// The model's answer to one picture.
struct PictureAnswer {
  std::vector<std::vector<float>> values;    // one for each output that the task reads
  std::vector<std::vector<int64_t>> shapes;  // their shapes without the row
};

struct VisionResult {
  absl::Status status;  // the others are valid only if OK
  std::shared_ptr<const PictureModel> model;
  std::string name;
  std::vector<PictureAnswer> answers;  // ordered like the files
};

class VisionCall : public std::enable_shared_from_this<VisionCall> {
 public:
  using Done = std::function<void(VisionResult)>;

  // Calls `done` exactly once, whatever happens. Errors as of Repository::Find and Inference,
  // with the number of the picture where there are several. Null: `done` was called.
  static std::shared_ptr<VisionCall> Start(const VisionContext& context, VisionRequest request,
                                           Done done);
  // Drops waiting and running requests.
  void Cancel();

 private:
  VisionCall(const VisionContext& context, VisionRequest request, Done done)
      : context_(context), request_(std::move(request)), done_(std::move(done)) {}
  absl::Status Begin();
  void Send(size_t index);
  void OnAnswer(size_t index, InferResult result);
  void Fail(const absl::Status& why, size_t index);
  void End();

  // Constant once begun.
  const VisionContext context_;
  const VisionRequest request_;
  const Done done_;
  KeyUse::Ticket ticket_;
  VisionResult result_;  // each answer is written by its own picture alone
  std::vector<std::string> tensors_;
  std::vector<absl::string_view> outputs_;
  // Self-synchronised.
  std::atomic<size_t> left_{0};
  std::atomic<bool> cancelled_{false};
  // Guarded.
  Mutex mutex_;
  absl::Status failed_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Call>> calls_ GUARDED_BY(mutex_);
};

}  // namespace reprise
