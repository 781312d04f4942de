#include "runtime/engine/traffic/new_shapes.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/shape.h"

namespace reprise {

void NewShapes::OnRequest(absl::Span<const int64_t> sizes, CaptureOutcome outcome,
                          absl::string_view bucket, absl::string_view request_id) {
  const int64_t step = ++steps_;
  const uint64_t hash = absl::HashOf(sizes);
  MutexLock lock(mutex_);
  if (seen_.size() >= kMaxSeen || !seen_.insert(hash).second) return;
  Keep({.step = step,
        .request_id = std::string(request_id),
        .sizes = {sizes.begin(), sizes.end()},
        .outcome = outcome,
        .bucket = std::string(bucket)});
}

void NewShapes::OnNode(absl::string_view op, absl::string_view node, absl::string_view value,
                       absl::Span<const int64_t> shape, absl::string_view request_id) {
  const uint64_t hash = absl::HashOf(op, node, value, shape);
  MutexLock lock(mutex_);
  if (seen_.size() >= kMaxSeen || !seen_.insert(hash).second) return;
  Keep({.step = steps_ + 1,
        .request_id = std::string(request_id),
        .node = std::string(node),
        .op = std::string(op),
        .made = absl::StrCat(value, ": ", ShapeToString(shape))});
}

void NewShapes::Keep(NewShape shape) {
  if (shape.step > 1 && shape.step != last_step_) ++recompiled_;
  last_step_ = shape.step;
  shape.time = std::chrono::system_clock::now();
  if (kept_.size() < kMaxKept) kept_.push_back(std::move(shape));
}

NewShapes::Report NewShapes::Snapshot() const {
  MutexLock lock(mutex_);
  return {.steps = steps_, .recompiled = recompiled_, .shapes = kept_};
}

}  // namespace reprise
