#include "server/repository/readiness.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/shown_text.h"

namespace reprise {
namespace {

// The findings on one model; its versions follow each other in the list.
struct ModelFindings {
  bool served = false;  // one version at least is
  std::vector<std::string> missing;
};

ModelFindings LookAt(absl::Span<const Repository::Listed> versions) {
  ModelFindings model;
  bool complete = false;
  for (const Repository::Listed& listed : versions) {
    complete = complete || listed.model_was_complete;
    const bool can_answer = listed.servable == nullptr || CanAnswer(*listed.servable);
    const absl::Status ranks =
        listed.servable == nullptr ? absl::OkStatus() : RanksOf(*listed.servable);
    const bool answers = can_answer && ranks.ok();
    if (listed.state == ModelState::kReady && answers) model.served = true;
    if ((listed.state == ModelState::kReady && answers) || listed.state == ModelState::kUnloaded) {
      continue;
    }
    std::string who = QuotedText(listed.version->name);
    if (listed.version->number > 0) absl::StrAppend(&who, " version ", listed.version->version);
    model.missing.push_back(
        listed.state == ModelState::kLoading ? absl::StrCat(who, " is loading")
        : !ranks.ok()                        ? absl::StrCat(who, ": ", ranks.message())
        : listed.state == ModelState::kReady
            ? absl::StrCat(who, " is frozen and has no recipe")
            : absl::StrCat(who, " was not loaded: ", ShownText(listed.why.message(), 1024)));
  }
  // A model whose successor cannot be served is served as before.
  if (complete && model.served) model.missing.clear();
  return model;
}

}  // namespace

Readiness Judge(const ReadinessRule& rule, ServerState::State state,
                absl::Span<const Repository::Listed> models) {
  Readiness found;
  bool serves_any = false;
  for (size_t begin = 0; begin < models.size();) {
    size_t end = begin + 1;
    while (end < models.size() && models[end].version->name == models[begin].version->name) ++end;
    ModelFindings model = LookAt(models.subspan(begin, end - begin));
    serves_any = serves_any || model.served;
    for (std::string& one : model.missing) found.missing.push_back(std::move(one));
    begin = end;
  }
  if (state == ServerState::State::kStarting) {
    found.why = "the models of the start are being loaded";
  } else if (state != ServerState::State::kServing) {
    found.why = "the server is stopping";
  } else if (rule.strict && !found.missing.empty()) {
    found.why = absl::StrCat("model ", found.missing.front());
  } else if (rule.control != ModelControl::kExplicit && !rule.allow_empty && !serves_any) {
    found.why = "the repository has no model that can be served (see --allow-empty)";
  } else {
    found.ready = true;
  }
  return found;
}

void ReadinessProbe::Watch(OnChange on_change) {
  MutexLock lock(mutex_);
  on_change_ = std::move(on_change);
}

Readiness ReadinessProbe::Now() {
  // Judged under the lock: of two that come together the later one has the last word.
  MutexLock lock(mutex_);
  Readiness found = Judge(rule_, state_.state(), repository_.List());
  if (found.ready && state_.stuck() > 0) {
    found.ready = false;
    found.why = absl::StrCat(state_.stuck(), " streams were told to stop and have not");
  }
  if (found.ready != was_ready_) {
    was_ready_ = found.ready;
    if (on_change_ != nullptr) on_change_(found);
  }
  return found;
}

}  // namespace reprise
