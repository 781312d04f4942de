#include "server/vision/picture_text.h"

#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

const char* PictureTaskName(PictureTask task) {
  switch (task) {
    case PictureTask::kDetect:
      return "detection of objects";
    case PictureTask::kEmbed:
      return "embeddings of pictures";
    case PictureTask::kClassify:
    case PictureTask::kNone:
      break;
  }
  return "classification of pictures";
}

}  // namespace

absl::StatusOr<std::string> PictureFileOf(absl::string_view base64, absl::string_view name) {
  if (absl::StartsWith(base64, "http://") || absl::StartsWith(base64, "https://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" is an address: the server fetches no pictures, send its bytes"));
  }
  if (absl::StartsWith(base64, "data:")) {
    const size_t comma = base64.find(',');
    if (comma == absl::string_view::npos || !absl::EndsWith(base64.substr(0, comma), ";base64")) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name, "\" is a data: address without base64"));
    }
    base64.remove_prefix(comma + 1);
  }
  std::string file;
  if (absl::Base64Unescape(base64, &file)) return file;
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is not base64"));
}

absl::Status ChoosePictureModel(const Repository& repository, PictureTask task,
                                std::string& model) {
  if (!model.empty()) {
    ASSIGN_OR_RETURN(const Repository::Found found, repository.Find(model, ""));
    const std::shared_ptr<const PictureModel> pictures = found.servable->pictures;
    if (pictures == nullptr) {
      return absl::FailedPreconditionError(found.servable->pictures_refusal);
    }
    if (pictures->task() == task) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "model ", QuotedText(model), " offers no ", PictureTaskName(task), ": ",
        pictures->task() == PictureTask::kNone ? pictures->no_task() : pictures->Describe()));
  }
  std::vector<std::string> names;
  for (const Repository::Listed& listed : repository.List()) {
    if (listed.state != ModelState::kReady || listed.servable == nullptr) continue;
    const auto& pictures = listed.servable->pictures;
    if (pictures == nullptr || pictures->task() != task) continue;
    if (names.empty() || names.back() != listed.version->name)
      names.push_back(listed.version->name);
  }
  if (names.size() == 1) {
    model = names[0];
    return absl::OkStatus();
  }
  if (names.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no model that is ready offers ", PictureTaskName(task)));
  }
  return absl::InvalidArgumentError(absl::StrCat("\"model\" is missing, and ", names.size(),
                                                 " models offer ", PictureTaskName(task), ": ",
                                                 absl::StrJoin(names, ", ")));
}

}  // namespace reprise
