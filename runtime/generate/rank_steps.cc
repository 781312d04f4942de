#include "runtime/generate/rank_steps.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// A message is numbers of 64 bits, the first of which says its kind.
constexpr int64_t kCopy = 1, kStep = 2;

class NumberWriter {
 public:
  void Add(int64_t number) { text_.append(reinterpret_cast<const char*>(&number), sizeof(number)); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

class NumberReader {
 public:
  explicit NumberReader(absl::string_view text) : text_(text) {}

  // Returns the next number, in [least, most]; after one that is not, or past the end, `least`.
  int64_t Next(int64_t least, int64_t most) {
    int64_t number = 0;
    is_good_ = is_good_ && text_.size() >= sizeof(number);
    if (!is_good_) return least;
    std::memcpy(&number, text_.data(), sizeof(number));
    text_.remove_prefix(sizeof(number));
    is_good_ = number >= least && number <= most;
    return is_good_ ? number : least;
  }
  bool is_good() const { return is_good_; }
  bool is_read() const { return is_good_ && text_.empty(); }

 private:
  absl::string_view text_;
  bool is_good_ = true;
};

}  // namespace

std::string CopyMessage(PageId from, PageId to) {
  NumberWriter writer;
  for (const int64_t number : {kCopy, int64_t{from}, int64_t{to}}) writer.Add(number);
  return writer.Take();
}

std::string StepMessage(const PlannedStep& step) {
  NumberWriter writer;
  writer.Add(kStep);
  writer.Add(static_cast<int64_t>(step.items.size()));
  for (const StepItem& item : step.items) {
    const Sequence& sequence = *item.sequence;
    for (const int64_t number :
         {sequence.computed, item.count, item.picks, static_cast<int64_t>(sequence.pages.size())}) {
      writer.Add(number);
    }
    for (const PageId page : sequence.pages) writer.Add(page);
    for (int64_t i = 0; i < item.count; ++i) writer.Add(sequence.IdToCompute(i));
  }
  return writer.Take();
}

absl::StatusOr<RankMessage> ParseRankMessage(absl::string_view message, PagePool& pool) {
  NumberReader reader(message);
  RankMessage result;
  const int64_t last_page = pool.options().max_pages - 1;
  const int64_t most = last_page * pool.options().positions + pool.options().positions;
  if (reader.Next(kCopy, kStep) == kCopy) {
    result.from = static_cast<PageId>(reader.Next(0, last_page));
    result.to = static_cast<PageId>(reader.Next(0, last_page));
    RETURN_IF_ERROR(pool.Follow(std::max(result.from, result.to)));
  } else {
    for (int64_t items = reader.Next(1, most); items > 0 && reader.is_good(); --items) {
      auto sequence = std::make_unique<Sequence>();
      sequence->computed = reader.Next(0, most);
      StepItem item = {.sequence = sequence.get()};
      item.count = reader.Next(1, most);
      item.picks = reader.Next(0, item.count);
      const int64_t pages = reader.Next(1, last_page + 1);
      for (int64_t i = 0; i < pages && reader.is_good(); ++i) {
        const auto page = static_cast<PageId>(reader.Next(0, last_page));
        RETURN_IF_ERROR(pool.Follow(page));
        sequence->Keep(page, pool);
      }
      if (!reader.is_good() || sequence->computed + item.count > pages * pool.options().positions) {
        return absl::InvalidArgumentError("a message of rank 0 has tokens without pages");
      }
      sequence->tokens.resize(static_cast<size_t>(sequence->computed));
      for (int64_t i = 0; i < item.count; ++i) {
        sequence->tokens.push_back(reader.Next(0, INT64_MAX));
      }
      result.step.tokens += item.count;
      result.step.items.push_back(item);
      result.sequences.push_back(std::move(sequence));
    }
  }
  if (!reader.is_read()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank 0 has sent ", message.size(), " bytes that are no message"));
  }
  return result;
}

bool RankSteps::HaveChanged() {
  const int64_t sessions = group_->sessions();
  const bool changed = sessions != sessions_ || !group_->state().ok();
  sessions_ = sessions;
  return changed;
}

absl::StatusOr<std::shared_ptr<RankSession>> RankSteps::Begin(const PlannedStep& step) {
  std::shared_ptr<RankSession> session = group_->session();
  if (session == nullptr) return group_->WhyBroken();
  // Pages that others have computed over other links are lost.
  if (group_->sessions() != sessions_) return Parted();
  RETURN_IF_ERROR(group_->Send(*session, StepMessage(step)));
  return session;
}

void RankSteps::Copy(PageId from, PageId to) {
  const std::shared_ptr<RankSession> session = group_->session();
  if (session != nullptr) group_->Send(*session, CopyMessage(from, to)).IgnoreError();
}

absl::StatusOr<std::pair<std::string, std::shared_ptr<RankSession>>> RankSteps::Receive() {
  std::shared_ptr<RankSession> session = group_->session();
  if (session == nullptr) return group_->state();
  ASSIGN_OR_RETURN(std::string message, group_->Receive(*session));
  return std::pair(std::move(message), std::move(session));
}

absl::Status RankSteps::Check(const RankSession& session) const {
  return session.is_broken() ? group_->WhyBroken() : absl::OkStatus();
}

absl::Status RankSteps::Parted() {
  return absl::UnavailableError("a rank of the model has gone and come back meanwhile");
}

absl::Status RankSteps::TakesNone() const {
  return absl::FailedPreconditionError(absl::StrCat("this server is rank ", group_->rank(), " of ",
                                                    group_->ranks(),
                                                    " of the model; rank 0 takes requests"));
}

}  // namespace reprise
