#include "server/repository/remote_models.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/model_url.h"
#include "server/repository/flat_model.h"

namespace reprise {

RemoteModels::RemoteModels(const std::vector<std::string>& repositories, Bring bring)
    : bring_(std::move(bring)) {
  for (const std::string& repository : repositories) {
    const std::optional<NamedModel> model = ParseNamedModel(repository);
    if (model.has_value() && ModelUrl::IsUrl(model->path)) {
      urls_.emplace(model->name, model->path);
    } else {
      local_.push_back(repository);
    }
  }
}

std::vector<std::string> RemoteModels::names() const {
  std::vector<std::string> names;
  for (const auto& [name, url] : urls_) names.push_back(name);
  return names;
}

absl::StatusOr<std::string> RemoteModels::Fetch(const std::string& name,
                                                const std::function<bool()>& cancelled) const {
  ASSIGN_OR_RETURN(const std::string path, bring_(urls_.at(name), cancelled));
  return absl::StrCat(name, "=", path);
}

}  // namespace reprise
