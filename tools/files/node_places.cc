#include "tools/files/node_places.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/file/node_metadata.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/recipe/record_file.h"
#include "tools/files/file_bytes.h"

namespace reprise::cli {
namespace {

constexpr char kNoScope[] = "(model)";

// "['', 'encoder', 'encoder.layer', 'linear_1']": the last but one is the innermost module.
std::string ModuleOfScopes(absl::string_view list) {
  std::vector<std::string> names;
  for (absl::string_view part : absl::StrSplit(absl::StripAsciiWhitespace(list), ',')) {
    part = absl::StripAsciiWhitespace(part);
    absl::ConsumePrefix(&part, "[");
    absl::ConsumeSuffix(&part, "]");
    part = absl::StripAsciiWhitespace(part);
    if (part.size() >= 2) part = part.substr(1, part.size() - 2);  // quotes
    names.emplace_back(part);
  }
  return names.size() < 2 ? "" : names[names.size() - 2];
}

// ": __main__.Net/conv1: torch.nn.Conv2d/conv2d: aten.conv2d.default": the names before the colons,
// without that of the operator.
std::string ModuleOfNamespace(absl::string_view text) {
  std::vector<std::string> names;
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits(':', 1));
    names.emplace_back(absl::StripAsciiWhitespace(sides[0]));
  }
  if (!names.empty()) names.pop_back();
  std::vector<std::string> scopes;
  for (std::string& name : names) {
    if (!name.empty()) scopes.push_back(std::move(name));
  }
  // Each name holds those around it, joined by dots.
  return scopes.empty() ? "" : scopes.back();
}

// The innermost frame of a Python stack trace: "model.py:25".
std::string LastFrame(absl::string_view trace) {
  std::string frame;
  for (absl::string_view line : absl::StrSplit(trace, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "File \"")) continue;
    const size_t quote = line.find('"');
    const size_t number = line.find(", line ");
    if (quote == absl::string_view::npos || number == absl::string_view::npos) continue;
    const absl::string_view path = line.substr(0, quote);
    const size_t slash = path.rfind('/');
    absl::string_view digits = line.substr(number + 7);
    digits = digits.substr(0, digits.find_first_not_of("0123456789"));
    frame =
        absl::StrCat(slash == absl::string_view::npos ? path : path.substr(slash + 1), ":", digits);
  }
  return frame;
}

NodePlace PlaceOf(const onnx::NodeProto& node) {
  NodePlace place = {.module = ScopeOf(node.name())};
  std::string scopes, space;
  for (const auto& [key, value] : MetadataOf(node)) {
    if (absl::EndsWith(key, "name_scopes")) scopes = ModuleOfScopes(value);
    if (absl::EndsWith(key, "namespace")) space = ModuleOfNamespace(value);
    if (absl::EndsWith(key, "stack_trace")) place.location = LastFrame(value);
  }
  if (place.module != kNoScope) return place;
  if (!scopes.empty()) {
    place.module = scopes;
  } else if (!space.empty()) {
    place.module = space;
  }
  return place;
}

}  // namespace

std::string ScopeOf(const std::string& node) {
  const absl::string_view name = absl::StripPrefix(node, "/");
  const size_t slash = name.rfind('/');
  return slash == absl::string_view::npos ? kNoScope : std::string(name.substr(0, slash));
}

absl::StatusOr<NodePlaces> NodePlaces::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostFileBytes));
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no ONNX model"));
  }
  NodePlaces places;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (!node.name().empty()) places.by_node_[node.name()] = PlaceOf(node);
  }
  return places;
}

NodePlace NodePlaces::Of(const std::string& node) const {
  const auto it = by_node_.find(node);
  return it == by_node_.end() ? NodePlace{.module = ScopeOf(node)} : it->second;
}

}  // namespace reprise::cli
