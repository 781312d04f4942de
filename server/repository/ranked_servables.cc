#include "server/repository/ranked_servables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"

namespace reprise {

std::string RanksText(const InputRanks& ranks) {
  return absl::StrJoin(ranks, " and ", [](std::string* out, const auto& one) {
    absl::StrAppend(out, "rank ", one.second, " of input \"", one.first, "\"");
  });
}

RankedServables::RankedServables(std::vector<std::string> inputs, Load load)
    : inputs_(std::move(inputs)), load_(std::move(load)) {}

RankedServables::~RankedServables() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) {
    // A request that had waited may be the last one to use the model.
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void RankedServables::Add(const InputRanks& ranks, std::shared_ptr<const Servable> servable) {
  MutexLock lock(mutex_);
  Entry& entry = entries_[ranks];
  entry.loading = false;
  entry.servable = std::move(servable);
}

absl::Status RankedServables::CheckRoom(const InputRanks& ranks) const {
  for (const auto& [name, rank] : ranks) {
    if (rank <= kHighestRank) continue;
    return absl::InvalidArgumentError(absl::StrCat("input \"", name, "\" has rank ", rank,
                                                   ", the server takes at most ", kHighestRank));
  }
  std::vector<std::string> served;
  size_t refused = 0;
  for (const auto& [known, entry] : entries_) {
    if (!entry.loading && !entry.servable.ok()) {
      ++refused;
    } else if (entry.asked) {
      served.push_back(RanksText(known));
    }
  }
  if (served.size() >= kMost) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the request has ", RanksText(ranks), "; the model is served at ", kMost,
        " choices of ranks already, which is the limit: ", absl::StrJoin(served, "; ")));
  }
  if (refused >= kMostRefused) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request has ", RanksText(ranks), "; the model has refused ", refused,
                     " other choices of ranks, and no more are tried"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Servable>> RankedServables::Find(
    const InputRanks& ranks, absl::FunctionRef<std::function<void()>()> wait) {
  MutexLock lock(mutex_);
  const auto known = entries_.find(ranks);
  if (known != entries_.end()) {
    Entry& entry = known->second;
    if (!entry.asked && entry.servable.ok()) RETURN_IF_ERROR(CheckRoom(ranks));
    entry.asked = true;
    if (!entry.loading) return entry.servable;
    entry.waiting.push_back(wait());
    return nullptr;
  }
  RETURN_IF_ERROR(CheckRoom(ranks));
  Entry& entry = entries_[ranks];
  entry.asked = true;
  entry.waiting.push_back(wait());
  const bool started =
      WhereMemoryAllows([&] { threads_.emplace_back([this, ranks] { LoadOne(ranks); }); });
  if (started) return nullptr;
  entries_.erase(ranks);
  return absl::ResourceExhaustedError(
      absl::StrCat("the system has no thread to load the model at ", RanksText(ranks)));
}

void RankedServables::LoadOne(const InputRanks& ranks) {
  auto loaded = WithinMemory([&] { return absl::StrCat("loading at ", RanksText(ranks)); },
                             [&] { return load_(ranks); });
  if (!loaded.ok()) {
    loaded = absl::Status(loaded.status().code(),
                          absl::StrCat("the model does not take ", RanksText(ranks), ": ",
                                       loaded.status().message()));
  }
  std::vector<std::function<void()>> waiting;
  {
    MutexLock lock(mutex_);
    Entry& entry = entries_.at(ranks);
    entry.loading = false;
    entry.servable = std::move(loaded);
    waiting.swap(entry.waiting);
  }
  for (const std::function<void()>& ready : waiting) ready();
}

std::vector<std::shared_ptr<const Servable>> RankedServables::Loaded() const {
  std::vector<std::shared_ptr<const Servable>> loaded;
  MutexLock lock(mutex_);
  for (const auto& [ranks, entry] : entries_) {
    if (!entry.loading && entry.servable.ok()) loaded.push_back(*entry.servable);
  }
  return loaded;
}

}  // namespace reprise
