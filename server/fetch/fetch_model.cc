#include "server/fetch/fetch_model.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/format_text.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/fetch/archive.h"
#include "server/fetch/credentials.h"
#include "server/fetch/digest.h"
#include "server/fetch/download.h"
#include "server/fetch/external_files.h"
#include "server/fetch/inner_path.h"
#include "server/fetch/model_url.h"
#include "server/fetch/remote_model.h"
#include "server/fetch/wanted_files.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMostKey = 80;

absl::Status FolderError(const fs::path& path, const std::error_code& error) {
  const std::string words = absl::StrCat("the model cache: ", path.string(), ": ", error.message());
  if (error == std::errc::no_space_on_device) return absl::ResourceExhaustedError(words);
  return absl::FailedPreconditionError(words);
}

// Returns a folder's name: letters and digits of the model's, and a digest that tells models apart.
std::string KeyOf(const ModelUrl& url) {
  const size_t colon = url.shown.find("://");
  const std::string scheme = url.shown.substr(0, colon);
  std::string key = url.scheme == ModelUrl::Scheme::kWeb
                        ? absl::StrCat(scheme, "-", url.shown.substr(colon + 3))
                        : absl::StrCat(scheme, "-", url.place, "-", url.path);
  for (char& c : key) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-' && c != '_') c = '-';
  }
  return absl::StrCat(key.substr(0, kMostKey), "-",
                      Sha256Hex(absl::StrCat(url.place, "\n", url.path)).substr(0, 8));
}

// The work of one call.
class Fetch {
 public:
  Fetch(const ModelUrl& url, const std::string& text, const FetchOptions& options)
      : url_(url),
        options_(options),
        cache_(options.cache),
        ref_(cache_ / "refs" /
             absl::StrCat(Sha256Hex(absl::StrCat(text, "\n", options.variant)).substr(0, 32),
                          ".json")) {
    limits_.most_bytes = limits_.left = options.most_bytes;
    limits_.cancelled = options.cancelled;
    limits_.on_bytes = [this](int64_t bytes) {
      progress_.done += bytes;
      options_.on_progress(progress_);
    };
    progress_.model = url.shown;
  }

  absl::StatusOr<FetchedModel> Run() {
    // These bytes can be no others than they were.
    const bool pinned = url_.revision.size() == 40 || !url_.sha256.empty();
    if (pinned) {
      if (absl::StatusOr<FetchedModel> kept = Kept(); kept.ok()) return kept;
    }
    absl::StatusOr<FetchedModel> fetched = Ask();
    if (fetched.ok()) {
      RETURN_IF_ERROR(Keep(*fetched));
      return fetched;
    }
    absl::Status why = fetched.status();
    if (absl::IsUnavailable(why)) {
      if (absl::StatusOr<FetchedModel> kept = Kept(); kept.ok()) {
        options_.on_warning(absl::StrCat(url_.shown, " does not answer, version ", kept->version,
                                         " of the cache is served: ", why.message()));
        kept->is_stale = true;
        return kept;
      }
    }
    return absl::Status(why.code(), absl::StrCat("fetching ", url_.shown, ": ", why.message()));
  }

 private:
  absl::StatusOr<FetchedModel> Ask() {
    ASSIGN_OR_RETURN(remote_, ListRemote(url_, options_.cancelled));
    ASSIGN_OR_RETURN(const WantedFiles wanted, Choose());
    for (const std::string& path : wanted.files) {
      if (!IsInnerPath(path)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the list of files has ", QuotedText(path, 200), ", which leaves its folder"));
      }
    }
    const std::string selection = Sha256Hex(absl::StrJoin(wanted.files, "\n")).substr(0, 8);
    FetchedModel model = {.shown = url_.shown, .version = remote_.version};
    const fs::path home = cache_ / "models" / KeyOf(url_);
    fs::path folder = home / absl::StrCat(model.version, "-", selection);
    std::error_code error;
    if (model.version.empty() || !fs::exists(folder, error)) {
      RETURN_IF_ERROR(DownloadAll(wanted));
      if (model.version.empty()) {
        ASSIGN_OR_RETURN(model.version, VersionOfBytes());
        folder = home / absl::StrCat(model.version, "-", selection);
      }
      RETURN_IF_ERROR(Place(folder));
    }
    ASSIGN_OR_RETURN(model.path, PathIn(folder, wanted));
    return model;
  }

  // Returns the files to download, `model` being the one to load; "" where the folder decides that
  // itself.
  absl::StatusOr<WantedFiles> Choose() const {
    std::vector<std::string> paths;
    for (const RemoteFile& file : remote_.files) paths.push_back(file.path);
    if (remote_.is_file) return WantedFiles{.model = paths[0], .files = paths};
    if (url_.scheme == ModelUrl::Scheme::kHub) {
      return ChooseFiles(paths, url_.file, options_.variant, url_.place);
    }
    // A folder of a bucket is the user's own: it is served as it would be from a disk.
    return WantedFiles{.model = "", .files = paths};
  }

  absl::Status DownloadAll(const WantedFiles& wanted) {
    std::vector<const RemoteFile*> files;
    for (const std::string& path : wanted.files) {
      const RemoteFile* file = Find(path);
      if (file->bytes > 0) progress_.total += file->bytes;
      files.push_back(file);
    }
    if (progress_.total > options_.most_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the model has ", progress_.total >> 20,
                                                       " MiB, --max-download-mb is ",
                                                       options_.most_bytes >> 20));
    }
    for (const RemoteFile* file : files) RETURN_IF_ERROR(DownloadOne(*file));
    // The files that the model's name as external data.
    for (const std::string& path : wanted.files) {
      if (absl::EndsWith(path, ".onnx")) RETURN_IF_ERROR(DownloadExternal(path));
    }
    return absl::OkStatus();
  }

  absl::Status DownloadOne(const RemoteFile& file) {
    ASSIGN_OR_RETURN(fs::path blob, Download(file, cache_ / "blobs", limits_));
    blobs_.emplace_back(file.path, std::move(blob));
    return absl::OkStatus();
  }

  bool Has(const std::string& path) const {
    return absl::c_any_of(blobs_, [&](const auto& blob) { return blob.first == path; });
  }

  const RemoteFile* Find(const std::string& path) const {
    const auto it =
        absl::c_find_if(remote_.files, [&](const RemoteFile& file) { return file.path == path; });
    return it == remote_.files.end() ? nullptr : &*it;
  }

  absl::Status DownloadExternal(const std::string& model) {
    const auto blob = absl::c_find_if(blobs_, [&](const auto& one) { return one.first == model; });
    ASSIGN_OR_RETURN(const std::vector<std::string> locations, ExternalFiles(blob->second, model));
    const std::string folder = model.substr(0, model.find_last_of('/') + 1);
    for (const std::string& location : locations) {
      const std::string path = folder + location;
      if (Has(path)) continue;
      if (url_.scheme == ModelUrl::Scheme::kWeb) {
        ASSIGN_OR_RETURN(const RemoteFile file, RemoteFileBeside(url_, path, options_.cancelled));
        RETURN_IF_ERROR(DownloadOne(file));
        continue;
      }
      const RemoteFile* file = Find(path);
      if (file == nullptr) {
        return absl::NotFoundError(
            absl::StrCat(model, " has tensors in ", QuotedText(location), ", which is not there"));
      }
      if (file->bytes > 0) progress_.total += file->bytes;
      RETURN_IF_ERROR(DownloadOne(*file));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> VersionOfBytes() const {
    Digest digest("sha256");
    for (const auto& [path, blob] : blobs_) {
      std::ifstream file(blob, std::ios::binary);
      std::string block(size_t{1} << 20, '\0');
      while (file.read(block.data(), static_cast<std::streamsize>(block.size())) ||
             file.gcount() > 0) {
        digest.Add({block.data(), static_cast<size_t>(file.gcount())});
      }
    }
    return digest.Hex().substr(0, 40);
  }

  // Makes `folder` of the files, whole or not at all.
  absl::Status Place(const fs::path& folder) {
    static std::atomic<int> count{0};
    const fs::path draft = folder.parent_path() / absl::StrCat(".", folder.filename().string(), ".",
                                                               getpid(), ".", ++count);
    std::error_code error;
    fs::create_directories(draft, error);
    if (error) return FolderError(draft, error);
    absl::Status filled = Fill(draft);
    if (filled.ok()) {
      fs::rename(draft, folder, error);
      // Another process may have made the same.
      std::error_code ignored;
      if (error && !fs::exists(folder, ignored)) filled = FolderError(folder, error);
    }
    fs::remove_all(draft, error);
    return filled;
  }

  absl::Status Fill(const fs::path& draft) {
    std::error_code error;
    if (remote_.is_file && IsArchiveName(remote_.files[0].path)) {
      RETURN_IF_ERROR(Unpack(blobs_[0].second, draft, options_.most_bytes, options_.cancelled));
      fs::remove(blobs_[0].second, error);
      return absl::OkStatus();
    }
    for (const auto& [path, blob] : blobs_) {
      const fs::path target = draft / path;
      fs::create_directories(target.parent_path(), error);
      if (!error) fs::create_hard_link(blob, target, error);
      // A system of files without links.
      if (error) fs::rename(blob, target, error);
      if (error) return FolderError(target, error);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> PathIn(const fs::path& folder, const WantedFiles& wanted) const {
    const bool archive = remote_.is_file && IsArchiveName(remote_.files[0].path);
    if (!archive) {
      const bool is_named = remote_.is_file || !url_.file.empty() || !options_.variant.empty();
      return (is_named && !wanted.model.empty() ? folder / wanted.model : folder).string();
    }
    // Most archives hold one folder.
    fs::path inner = folder;
    while (true) {
      std::error_code error;
      std::vector<fs::path> entries;
      for (fs::directory_iterator it(inner, error); !error && it != fs::directory_iterator();
           it.increment(error)) {
        entries.push_back(it->path());
      }
      if (entries.empty()) return absl::NotFoundError("the archive is empty");
      const std::string name = entries[0].filename().string();
      const bool is_version = name.find_first_not_of("0123456789") == std::string::npos;
      if (entries.size() > 1 || is_version || name == "onnx" ||
          !fs::is_directory(entries[0], error)) {
        return inner.string();
      }
      inner = entries[0];
    }
  }

  absl::StatusOr<FetchedModel> Kept() const {
    std::ifstream file(ref_);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("path") || !json["path"].is_string() ||
        !json.contains("version") || !json["version"].is_string()) {
      return absl::NotFoundError("it was not fetched before");
    }
    FetchedModel kept = {.path = (cache_ / json["path"].get<std::string>()).string(),
                         .shown = url_.shown,
                         .version = json["version"].get<std::string>()};
    std::error_code error;
    if (!fs::exists(kept.path, error)) return absl::NotFoundError("it was deleted");
    return kept;
  }

  absl::Status Keep(const FetchedModel& model) const {
    std::error_code error;
    fs::create_directories(ref_.parent_path(), error);
    const Json json = {{"url", url_.shown},
                       {"version", model.version},
                       {"path", fs::path(model.path).lexically_relative(cache_).string()}};
    const fs::path draft = absl::StrCat(ref_.string(), ".", getpid());
    {
      std::ofstream file(draft, std::ios::trunc);
      file << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
      if (!file.flush()) return FolderError(draft, std::make_error_code(std::errc::io_error));
    }
    fs::rename(draft, ref_, error);
    return error ? FolderError(ref_, error) : absl::OkStatus();
  }

  const ModelUrl& url_;
  const FetchOptions& options_;
  const fs::path cache_;
  const fs::path ref_;
  DownloadLimits limits_;
  FetchProgress progress_;
  RemoteModel remote_;
  std::vector<std::pair<std::string, fs::path>>
      blobs_;  // paths in the model's folder, and the files
};

}  // namespace

absl::StatusOr<FetchedModel> FetchModel(const std::string& url, const FetchOptions& options) {
  ASSIGN_OR_RETURN(const ModelUrl parsed, ModelUrl::Parse(url));
  return Fetch(parsed, url, options).Run();
}

std::string ProgressText(const FetchProgress& progress) {
  constexpr double kMiB = 1 << 20;
  const double done = static_cast<double>(progress.done) / kMiB;
  if (progress.total == 0) return FormatText("fetching %s: %.1f MiB", progress.model, done);
  return FormatText("fetching %s: %.1f of %.1f MiB", progress.model, done,
                    static_cast<double>(progress.total) / kMiB);
}

std::string DefaultModelCache() {
  if (const std::string folder = Environment("CACHE_DIRECTORY"); !folder.empty()) {
    return absl::StrCat(folder.substr(0, folder.find(':')), "/models");
  }
  const std::string cache = Environment("XDG_CACHE_HOME");
  return absl::StrCat(cache.empty() ? absl::StrCat(Environment("HOME"), "/.cache") : cache,
                      "/reprise/models");
}

}  // namespace reprise
