#include "server/chat/grammar_constraint.h"

#include <limits>
#include <utility>

#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"

namespace reprise {

// Shared with the thread that computes a mask.
struct GrammarConstraint::Work {
  // Computes the mask unless that has been done. The first caller computes it.
  void MakeMask() {
    MutexLock lock(mutex);
    if (is_made || !status.ok()) return;
    status = WithinMemory([] { return "the mask of a grammar"; },
                          [&]() -> absl::Status {
                            if (own == nullptr) {
                              ASSIGN_OR_RETURN(own, grammar->Copy());
                            }
                            return own->Mask(absl::MakeSpan(bits));
                          });
    is_made = status.ok();
  }

  std::shared_ptr<const Grammar> grammar;
  Mutex mutex;
  std::unique_ptr<Grammar> own GUARDED_BY(mutex);
  std::vector<uint32_t> bits GUARDED_BY(mutex);
  bool is_made GUARDED_BY(mutex) = false;
  absl::Status status GUARDED_BY(mutex);
};

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar, int64_t vocabulary,
                                     TextThreads& threads)
    : work_(std::make_shared<Work>()), threads_(threads) {
  constexpr int64_t kBits = 32;
  work_->grammar = std::move(grammar);
  MutexLock lock(work_->mutex);
  work_->bits.resize(static_cast<size_t>((vocabulary + kBits - 1) / kBits));
}

GrammarConstraint::~GrammarConstraint() = default;

absl::Status GrammarConstraint::Restrict(absl::Span<float> scores) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  work_->MakeMask();
  MutexLock lock(work_->mutex);
  RETURN_IF_ERROR(work_->status);
  size_t i = 0;
  for (const uint32_t word : work_->bits) {
    for (uint32_t bit = 0; bit < 32 && i < scores.size(); ++bit, ++i) {
      scores[i] = (word >> bit & 1) != 0 ? scores[i] : kNever;
    }
  }
  for (; i < scores.size(); ++i) scores[i] = kNever;
  return absl::OkStatus();
}

absl::StatusOr<bool> GrammarConstraint::Take(int64_t id) {
  bool complete = false;
  {
    MutexLock lock(work_->mutex);
    RETURN_IF_ERROR(work_->status);
    if (work_->own == nullptr) return absl::InternalError("a token was drawn without a mask");
    ASSIGN_OR_RETURN(complete, work_->own->Take(static_cast<uint32_t>(id)));
    work_->is_made = false;
  }
  if (!complete) threads_.Run([work = work_] { work->MakeMask(); });
  return complete;
}

}  // namespace reprise
