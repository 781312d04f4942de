#include "runtime/onnx/gguf/gguf_file.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/gguf/gguf_reader.h"
#include "runtime/ops/weights/block_formats.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

// More files than any model has.
constexpr int64_t kMostParts = 1000;

// Returns the name of part `part` of `parts`, in the folder of the first one.
absl::StatusOr<std::string> NameOfPart(const std::string& first, int64_t part, int64_t parts) {
  const std::string ending = absl::StrFormat("-%05d-of-%05d.gguf", 1, parts);
  if (!absl::EndsWith(first, ending)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it is the first of ", parts, " files, and its name does not end with '", ending, "'"));
  }
  return absl::StrCat(first.substr(0, first.size() - ending.size()),
                      absl::StrFormat("-%05d-of-%05d.gguf", part + 1, parts));
}

absl::Status Named(const std::string& name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("GGUF file '", name, "': ", status.message()));
}

absl::Status WrongType(absl::string_view key, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("member '", key, "' is not ", wanted));
}

template <typename T>
absl::StatusOr<std::optional<T>> ValueOf(const GgufValue* value, absl::string_view key,
                                         absl::string_view wanted) {
  if (value == nullptr) return std::optional<T>();
  const T* const found = std::get_if<T>(value);
  if (found == nullptr) return WrongType(key, wanted);
  return std::optional<T>(*found);
}

}  // namespace

std::optional<GgufType> FindGgufType(int64_t type) {
  if (type == 0) return GgufType{.name = "F32", .bytes = 4};
  if (type == 1) return GgufType{.name = "F16", .bytes = 2};
  if (type == 30) return GgufType{.name = "BF16", .bytes = 2};
  const ops::BlockFormat* const format = ops::FindBlockFormat(type);
  if (format == nullptr) return std::nullopt;
  return GgufType{.name = format->name, .numbers = format->numbers, .bytes = format->bytes};
}

std::string GgufTypeName(int64_t type) {
  static constexpr const char* kNames[] = {
      "F32",     "F16",    "Q4_0",    "Q4_1",  "",       "",      "Q5_0",  "Q5_1",
      "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
      "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
      "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16",  "",
      "",        "",       "TQ1_0",   "TQ2_0", "",       "",      "",      "MXFP4"};
  constexpr auto kCount = static_cast<int64_t>(std::size(kNames));
  if (type < 0 || type >= kCount || *kNames[type] == 0) return "";
  return absl::StrCat(" (", kNames[type], ")");
}

bool GgufFile::Begins(absl::string_view bytes) { return absl::StartsWith(bytes, "GGUF"); }

bool GgufFile::IsOne(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  return Begins(absl::string_view(magic, sizeof(magic)));
}

absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(FileBytes file, MapFile(path));
  return Read(path, std::move(file));
}

absl::StatusOr<GgufFile> GgufFile::Read(const std::string& path, FileBytes file) {
  GgufFile model;
  const std::string name = fs::path(path).filename().string();
  const auto add = [&](const std::string& part, FileBytes bytes) -> absl::Status {
    GgufReader reader(bytes.bytes, model.files_.size());
    RETURN_IF_ERROR(Named(part, reader.ReadInto(model)));
    model.files_.push_back({.name = part, .bytes = std::move(bytes)});
    return absl::OkStatus();
  };
  const auto number = [&](const char* key, int64_t fallback) -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(const std::optional<int64_t> value, model.Int(key));
    return value.value_or(fallback);
  };
  RETURN_IF_ERROR(add(name, std::move(file)));
  const auto read_others = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t parts, number("split.count", 1));
    ASSIGN_OR_RETURN(const int64_t part, number("split.no", 0));
    if (parts < 0 || parts > kMostParts) {
      return absl::InvalidArgumentError(absl::StrCat("split.count is ", parts));
    }
    if (part != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is file ", part + 1, " of ", parts, ": the first one names the model"));
    }
    for (int64_t i = 1; i < parts; ++i) {
      ASSIGN_OR_RETURN(const std::string other, NameOfPart(name, i, parts));
      ASSIGN_OR_RETURN(FileBytes bytes, MapFile((fs::path(path).parent_path() / other).string()));
      RETURN_IF_ERROR(add(other, std::move(bytes)));
      ASSIGN_OR_RETURN(const int64_t here, number("split.no", -1));
      ASSIGN_OR_RETURN(const int64_t count, number("split.count", -1));
      if (here != i || count != parts) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", other, "' says that it is file ", here + 1, " of ", count));
      }
    }
    const auto have = static_cast<int64_t>(model.tensors_.size());
    ASSIGN_OR_RETURN(const int64_t tensors, number("split.tensors.count", have));
    if (parts > 1 && tensors != have) {
      return absl::InvalidArgumentError(
          absl::StrCat("split.tensors.count is ", tensors, ", its files have ", have, " tensors"));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(Named(name, read_others()));
  return model;
}

const GgufTensor* GgufFile::Tensor(absl::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

const GgufValue* GgufFile::Find(absl::string_view key) const {
  const auto it = members_.find(key);
  return it == members_.end() ? nullptr : &it->second;
}

absl::StatusOr<std::optional<int64_t>> GgufFile::Int(absl::string_view key) const {
  return ValueOf<int64_t>(Find(key), key, "a whole number");
}

absl::StatusOr<std::optional<double>> GgufFile::Number(absl::string_view key) const {
  const GgufValue* const value = Find(key);
  if (value != nullptr && std::holds_alternative<int64_t>(*value)) {
    return std::optional<double>(static_cast<double>(std::get<int64_t>(*value)));
  }
  return ValueOf<double>(value, key, "a number");
}

absl::StatusOr<std::optional<bool>> GgufFile::Bool(absl::string_view key) const {
  return ValueOf<bool>(Find(key), key, "true or false");
}

absl::StatusOr<std::optional<std::string>> GgufFile::Text(absl::string_view key) const {
  ASSIGN_OR_RETURN(const auto text, ValueOf<absl::string_view>(Find(key), key, "a text"));
  if (!text.has_value()) return std::optional<std::string>();
  return std::optional<std::string>(std::string(*text));
}

absl::StatusOr<std::vector<absl::string_view>> GgufFile::Texts(absl::string_view key) const {
  ASSIGN_OR_RETURN(auto list,
                   ValueOf<std::vector<absl::string_view>>(Find(key), key, "a list of texts"));
  return std::move(list).value_or(std::vector<absl::string_view>());
}

absl::StatusOr<std::vector<int64_t>> GgufFile::Ints(absl::string_view key) const {
  ASSIGN_OR_RETURN(auto list,
                   ValueOf<std::vector<int64_t>>(Find(key), key, "a list of whole numbers"));
  return std::move(list).value_or(std::vector<int64_t>());
}

}  // namespace reprise
