#include "server/pictures/picture_files.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "server/hub/json_file.h"

namespace reprise {
namespace {

using nlohmann::json;

constexpr char kPreprocessor[] = "preprocessor_config.json";
constexpr int64_t kMostLabelBytes = 4 << 20;
constexpr size_t kMostLabels = 1 << 20;
constexpr int kFoldersAbove = 2;

absl::Status Refused(absl::string_view member, const json& value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      kPreprocessor, ": \"", member, "\" is ",
      value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 200), ", ", why));
}

// The sides that a member asks for.
struct Sides {
  int64_t height = 0, width = 0;      // both, or
  int64_t shortest = 0, longest = 0;  // the shorter side, and the most of the longer one
};

// `square`: the meaning of a single number.
absl::StatusOr<Sides> SidesOf(const char* member, const json& value, bool square) {
  Sides sides;
  if (value.is_number_integer()) {
    const auto side = value.get<int64_t>();
    sides = square ? Sides{.height = side, .width = side} : Sides{.shortest = side};
  } else if (value.is_object()) {
    sides = {.height = IntMember(value, "height", 0),
             .width = IntMember(value, "width", 0),
             .shortest = IntMember(value, "shortest_edge", 0),
             .longest = IntMember(value, "longest_edge", 0)};
  }
  const bool fits = (sides.height > 0 && sides.width > 0) || sides.shortest > 0;
  if (fits) return sides;
  return Refused(member, value, "it must be a number, height and width, or shortest_edge");
}

std::string ResizeText(const Sides& sides, const char* filter) {
  if (sides.shortest == 0) {
    return absl::StrCat("Resize([", sides.height, ", ", sides.width, "], ", filter, ")");
  }
  return absl::StrCat("Resize(", sides.shortest, ", ", filter,
                      sides.longest > 0 ? absl::StrCat(", max_size=", sides.longest) : "", ")");
}

// Pillow's numbers of filters.
absl::StatusOr<const char*> FilterOf(const json& root, const char* usual) {
  const auto it = root.find("resample");
  if (it == root.end() || it->is_null()) return usual;
  if (*it == 0) return "nearest";
  if (*it == 2) return "bilinear";
  if (*it == 3) return "bicubic";
  return Refused("resample", *it, "it must be 0 (nearest), 2 (bilinear) or 3 (bicubic)");
}

absl::StatusOr<std::string> ChannelsText(const json& root, const char* member) {
  const auto it = root.find(member);
  if (it == root.end() || !it->is_array() || it->empty()) {
    return Refused(member, it == root.end() ? json() : *it, "it must be one number a channel");
  }
  std::vector<std::string> numbers;
  for (const json& one : *it) {
    if (!one.is_number()) return Refused(member, *it, "it must be one number a channel");
    numbers.push_back(one.dump());
  }
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

// Refuses transforms that are not done here.
absl::Status CheckMembers(const json& root) {
  for (const char* member : {"do_flip_channel_order", "do_reduce_labels", "do_thumbnail",
                             "do_align_long_axis", "do_image_splitting"}) {
    if (BoolMember(root, member, false)) {
      return Refused(member, root[member], "which is not done to pictures here");
    }
  }
  if (!BoolMember(root, "do_rescale", true)) {
    return Refused("do_rescale", root["do_rescale"], "pictures are always divided by 255");
  }
  const auto factor = root.find("rescale_factor");
  constexpr double kUsual = 1.0 / 255, kNear = 1e-7;
  if (factor != root.end() && factor->is_number() &&
      std::abs(factor->get<double>() - kUsual) > kNear) {
    return Refused("rescale_factor", *factor, "pictures are always divided by 255");
  }
  return absl::OkStatus();
}

// ConvNext resizes small pictures to more than is kept of them.
absl::StatusOr<std::vector<std::string>> ConvNextSteps(const json& root, const Sides& sides,
                                                       const char* filter) {
  constexpr int64_t kLarge = 384;
  constexpr double kUsualShare = 224.0 / 256;
  const int64_t side = sides.shortest > 0 ? sides.shortest : sides.height;
  const auto share = root.find("crop_pct");
  const double kept =
      share != root.end() && share->is_number() ? share->get<double>() : kUsualShare;
  if (!(kept > 0 && kept <= 1)) return Refused("crop_pct", *share, "it is from 0 to 1");
  if (side >= kLarge) return std::vector<std::string>{ResizeText({side, side, 0, 0}, filter)};
  const auto resized = static_cast<int64_t>(static_cast<double>(side) / kept);
  return std::vector<std::string>{ResizeText({0, 0, resized, 0}, filter),
                                  absl::StrCat("CenterCrop(", side, ")")};
}

absl::StatusOr<std::vector<std::string>> SizeSteps(const json& root) {
  const std::string type =
      TextMember(root, "image_processor_type", TextMember(root, "feature_extractor_type", ""));
  const bool is_clip = absl::StrContains(type, "CLIP"),
             is_convnext = absl::StrContains(type, "ConvNext");
  ASSIGN_OR_RETURN(const char* const filter,
                   FilterOf(root, is_clip || is_convnext ? "bicubic" : "bilinear"));
  std::vector<std::string> steps;
  if (BoolMember(root, "do_resize", true) && root.contains("size")) {
    const bool square = !is_clip && !is_convnext && !absl::StrContains(type, "Detr");
    ASSIGN_OR_RETURN(const Sides sides, SidesOf("size", root["size"], square));
    if (is_convnext) return ConvNextSteps(root, sides, filter);
    steps.push_back(ResizeText(sides, filter));
  }
  if (BoolMember(root, "do_center_crop", false) && root.contains("crop_size")) {
    ASSIGN_OR_RETURN(const Sides sides, SidesOf("crop_size", root["crop_size"], true));
    if (sides.height == 0)
      return Refused("crop_size", root["crop_size"], "it must have both sides");
    steps.push_back(absl::StrCat("CenterCrop([", sides.height, ", ", sides.width, "])"));
  }
  return steps;
}

std::vector<std::string> LabelsOf(const json& config) {
  std::vector<std::string> labels;
  const auto by_id = config.find("id2label");
  if (by_id == config.end() || !by_id->is_object() || by_id->size() > kMostLabels) return labels;
  labels.resize(by_id->size());
  for (const auto& [id, label] : by_id->items()) {
    size_t place = 0;
    if (!label.is_string() || !absl::SimpleAtoi(id, &place)) return {};
    if (place >= kMostLabels) return {};
    if (place >= labels.size()) labels.resize(place + 1);  // COCO's classes have gaps
    labels[place] = label.get<std::string>();
  }
  return labels;
}

// Returns the first of the folder and those above it that has the file.
template <typename Read>
auto ReadNear(const std::filesystem::path& model_file, const char* name, const Read& read)
    -> decltype(read(model_file)) {
  std::filesystem::path folder = model_file.parent_path();
  for (int above = 0;; ++above) {
    auto found = read(folder / name);
    if (!found.ok() || above == kFoldersAbove) return found;
    std::error_code ignored;
    if (std::filesystem::exists(folder / name, ignored)) return found;
    folder = folder.parent_path();
  }
}

}  // namespace

absl::StatusOr<std::string> TransformsOf(const std::string& preprocessor_json) {
  const json root = json::parse(preprocessor_json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(kPreprocessor, " is not a JSON object"));
  }
  RETURN_IF_ERROR(CheckMembers(root));
  ASSIGN_OR_RETURN(std::vector<std::string> steps, SizeSteps(root));
  steps.emplace_back("ToTensor");
  if (BoolMember(root, "do_normalize", root.contains("image_mean"))) {
    ASSIGN_OR_RETURN(const std::string mean, ChannelsText(root, "image_mean"));
    ASSIGN_OR_RETURN(const std::string std, ChannelsText(root, "image_std"));
    steps.push_back(absl::StrCat("Normalize(", mean, ", ", std, ")"));
  }
  return absl::StrJoin(steps, ", ");
}

absl::StatusOr<PictureFiles> ReadPictureFiles(const std::filesystem::path& model_file) {
  PictureFiles files;
  const auto text = [](const std::filesystem::path& path) {
    return ReadFileIfThere(path, kMostLabelBytes);
  };
  ASSIGN_OR_RETURN(const std::optional<std::string> preprocessor,
                   ReadNear(model_file, kPreprocessor, text));
  if (preprocessor.has_value()) {
    ASSIGN_OR_RETURN(files.transforms, TransformsOf(*preprocessor));
  }
  ASSIGN_OR_RETURN(const json config, ReadNear(model_file, "config.json", ReadJsonIfThere));
  if (config.is_object()) {
    files.labels = LabelsOf(config);
    files.model_type = TextMember(config, "model_type", "");
  }
  if (!files.labels.empty()) return files;
  ASSIGN_OR_RETURN(const std::optional<std::string> lines,
                   ReadNear(model_file, "labels.txt", text));
  if (lines.has_value()) {
    for (const absl::string_view line : absl::StrSplit(*lines, '\n', absl::SkipWhitespace())) {
      files.labels.emplace_back(absl::StripAsciiWhitespace(line));
    }
  }
  return files;
}

}  // namespace reprise
