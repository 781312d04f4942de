#include "server/fetch/wanted_files.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/nearest_name.h"
#include "runtime/base/status_macros.h"
#include "server/hub/model_file.h"

namespace reprise {
namespace {

bool IsModel(absl::string_view path) {
  return absl::EndsWith(path, ".onnx") || absl::EndsWith(path, ".gguf");
}

std::string FolderPart(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// Texts, vocabularies and numbers that server/hub may read, by their endings.
bool SaysSomething(absl::string_view name) {
  for (const char* end : {".json", ".txt", ".model", ".jinja", ".pbtxt"}) {
    if (absl::EndsWith(name, end)) return true;
  }
  return false;
}

// Returns whether it is the folder of a module of sentence-transformers: "1_Pooling/", "2_Dense/".
bool IsModule(absl::string_view folder) {
  const size_t digits = folder.find_first_not_of("0123456789");
  return digits != 0 && digits != absl::string_view::npos && folder[digits] == '_' &&
         folder.find('/') + 1 == folder.size();
}

// Adds the other files of a decoder, or of an encoder and its decoder: they have the same ending.
void AddPartners(const std::vector<std::string>& files, WantedFiles& wanted) {
  const std::string folder = FolderPart(wanted.model);
  absl::string_view name = absl::string_view(wanted.model).substr(folder.size());
  if (!absl::ConsumePrefix(&name, "encoder_model")) return;
  for (const char* part : {"decoder_model_merged", "decoder_model", "decoder_with_past_model"}) {
    const std::string partner = absl::StrCat(folder, part, name);
    if (absl::c_linear_search(files, partner)) wanted.files.push_back(partner);
  }
}

absl::Status NoModel(const std::vector<std::string>& files, const std::string& repository) {
  const bool weights = absl::c_any_of(files, [](const std::string& path) {
    return absl::EndsWith(path, ".safetensors") || absl::EndsWith(path, ".bin") ||
           absl::EndsWith(path, ".pt");
  });
  return absl::NotFoundError(
      absl::StrCat(repository, " has no file .onnx",
                   weights ? absl::StrCat("; ", ExportAdvice(repository)) : ""));
}

// Returns the file that `wish` names: its path, the end of it, or its name without ".onnx".
absl::StatusOr<std::string> FindWish(const std::vector<std::string>& files, const std::string& wish,
                                     const std::string& repository) {
  std::vector<std::string> models, fits;
  for (const std::string& path : files) {
    if (path == wish) return path;
    if (IsModel(path)) models.push_back(path);
    if (absl::EndsWith(path, absl::StrCat("/", wish))) fits.push_back(path);
  }
  if (fits.size() == 1) return fits[0];
  for (const std::string& name : ModelFileNames(wish)) {  // ":int8"
    if (absl::c_linear_search(models, name)) return name;
  }
  return absl::NotFoundError(
      absl::StrCat(repository, " has no file ", wish, DidYouMean(wish, models),
                   models.empty() ? "" : "; it has ", absl::StrJoin(models, ", ")));
}

absl::StatusOr<std::string> FindDefault(const std::vector<std::string>& files,
                                        const std::string& variant, const std::string& repository) {
  const std::vector<std::string> names = ModelFileNames(variant);
  for (const std::string& name : names) {
    if (absl::c_linear_search(files, name)) return name;
  }
  std::vector<std::string> models;
  absl::c_copy_if(files, std::back_inserter(models), IsModel);
  if (models.size() == 1 && variant.empty()) return models[0];
  if (models.empty()) return NoModel(files, repository);
  return absl::NotFoundError(absl::StrCat(
      repository, " has neither ", absl::StrJoin(names, " nor "), "; it has ",
      absl::StrJoin(models, ", "), ", and :", models[0], " after its name takes the first"));
}

}  // namespace

absl::StatusOr<WantedFiles> ChooseFiles(const std::vector<std::string>& files,
                                        const std::string& file, const std::string& variant,
                                        const std::string& repository) {
  WantedFiles wanted;
  if (file.empty()) {
    ASSIGN_OR_RETURN(wanted.model, FindDefault(files, variant, repository));
  } else {
    ASSIGN_OR_RETURN(wanted.model, FindWish(files, file, repository));
  }
  wanted.files.push_back(wanted.model);
  AddPartners(files, wanted);
  const std::string own = FolderPart(wanted.model);
  for (const std::string& path : files) {
    const std::string folder = FolderPart(path);
    const bool near = folder.empty() || folder == own;
    const bool module = IsModule(folder);
    const bool dense = module && absl::EndsWith(path, "/model.safetensors");
    if ((near || module) && (SaysSomething(path) || dense)) wanted.files.push_back(path);
  }
  std::sort(wanted.files.begin(), wanted.files.end());
  wanted.files.erase(std::unique(wanted.files.begin(), wanted.files.end()), wanted.files.end());
  return wanted;
}

}  // namespace reprise
