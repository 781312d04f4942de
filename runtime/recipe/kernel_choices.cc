#include "runtime/recipe/kernel_choices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/hash64.h"
#include "runtime/recipe/key.h"

namespace reprise {

std::optional<std::string> KernelChoices::Find(const std::string& question) const {
  MutexLock lock(mutex_);
  const auto it = answers_.find(question);
  if (it == answers_.end()) return std::nullopt;
  return it->second.kernel;
}

void KernelChoices::Set(KernelChoice choice) {
  MutexLock lock(mutex_);
  Answer answer = {std::move(choice.kernel), choice.ns, choice.first_ns};
  const auto [it, added] = answers_.insert_or_assign(choice.question, std::move(answer));
  if (!added) return;
  order_.push_back(std::move(choice.question));
  if (order_.size() <= kMost) return;
  answers_.erase(order_.front());
  order_.pop_front();
}

std::vector<KernelChoice> KernelChoices::All() const {
  MutexLock lock(mutex_);
  std::vector<KernelChoice> all;
  for (const std::string& question : order_) {
    const Answer& answer = answers_.at(question);
    all.push_back({question, answer.kernel, answer.ns, answer.first_ns});
  }
  return all;
}

RecordName ChoicesNameOf(const std::string& device) {
  return {.kind = RecordKind::kChoices,
          .key = Hash64(absl::StrCat(device, "\n", CompilerId())),
          .device = Hash64(device),
          .compiler = Hash64(CompilerId())};
}

std::string EncodeChoices(const std::string& device, const std::vector<KernelChoice>& choices) {
  recipe::v1::StoredChoices stored;
  stored.set_device(device);
  stored.set_compiler(CompilerId());
  stored.set_updated_unix_s(time(nullptr));
  for (const KernelChoice& choice : choices) {
    auto* to = stored.add_choices();
    to->set_question(choice.question);
    to->set_kernel(choice.kernel);
    to->set_ns(choice.ns);
    to->set_first_ns(choice.first_ns);
  }
  return stored.SerializeAsString();
}

absl::StatusOr<std::vector<KernelChoice>> DecodeChoices(absl::string_view bytes,
                                                        const std::string& device) {
  recipe::v1::StoredChoices stored;
  if (!stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("it is not a valid message");
  }
  if (stored.device() != device || stored.compiler() != CompilerId()) {
    return absl::FailedPreconditionError("it is of another device or build");
  }
  std::vector<KernelChoice> choices;
  for (const auto& one : stored.choices()) {
    if (one.question().empty() || one.kernel().empty() || one.ns() < 0 || one.first_ns() < 0) {
      return absl::DataLossError("it has an invalid choice");
    }
    choices.push_back({one.question(), one.kernel(), one.ns(), one.first_ns()});
  }
  return choices;
}

}  // namespace reprise
