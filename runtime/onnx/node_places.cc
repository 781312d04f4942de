#include "runtime/onnx/node_places.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/onnx/file/file_bytes.h"
#include "runtime/onnx/file/node_metadata.h"
#include "runtime/onnx/file/onnx_proto.h"
#include "runtime/onnx/file/slim_model.h"

namespace reprise {
namespace {

constexpr char kNoScope[] = "(model)";

// "['', 'encoder', 'encoder.layer', 'linear_1']": the last but one is the innermost module's.
std::string InnermostOfList(absl::string_view list) {
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

// ": __main__.Net/conv1: torch.nn.Conv2d/conv2d: aten.conv2d.default": names and classes of the
// modules from the outermost on, and the operator's. Sets the innermost module's.
void ReadNamespace(absl::string_view text, std::string& module, std::string& type) {
  std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  parts.pop_back();
  for (const absl::string_view part : parts) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits(':', 1));
    if (sides.size() > 1) type = std::string(absl::StripAsciiWhitespace(sides[1]));
    // Each name holds the outer ones, joined by dots.
    const absl::string_view name = absl::StripAsciiWhitespace(sides[0]);
    if (!name.empty()) module = std::string(name);
  }
}

struct StackFrame {
  absl::string_view path;
  absl::string_view line;
};

absl::string_view DigitsOf(absl::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

// Returns the frames that a text names, in its order: `File "model.py", line 25, in forward`,
// `model.py(25): forward` or `model.py:25`.
std::vector<StackFrame> FramesOf(absl::string_view text) {
  std::vector<StackFrame> frames;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    size_t path_ends = absl::string_view::npos;
    size_t number = absl::string_view::npos;
    if (absl::ConsumePrefix(&line, "File \"")) {
      path_ends = line.find('"');
      number = line.find(", line ");
      if (number != absl::string_view::npos) number += 7;
    } else if (const size_t python = line.rfind(".py"); python != absl::string_view::npos) {
      absl::ConsumePrefix(&line, "# ");
      path_ends = line.rfind(".py") + 3;
      number = path_ends + 1;
    }
    if (path_ends == absl::string_view::npos || number >= line.size()) continue;
    const absl::string_view digits = DigitsOf(line.substr(number));
    if (!digits.empty()) frames.push_back({.path = line.substr(0, path_ends), .line = digits});
  }
  return frames;
}

std::string TextOf(const StackFrame& frame) {
  const size_t slash = frame.path.rfind('/');
  return absl::StrCat(slash == absl::string_view::npos ? frame.path : frame.path.substr(slash + 1),
                      ":", frame.line);
}

// "torch.nn.modules.linear" for a frame in a file of torch's modules; else empty.
std::string LibraryModuleOf(const StackFrame& frame) {
  const size_t begin = frame.path.rfind("/torch/nn/modules/");
  if (begin == absl::string_view::npos) return "";
  return absl::StrReplaceAll(absl::StripSuffix(frame.path.substr(begin + 1), ".py"), {{"/", "."}});
}

NodePlace PlaceOf(const onnx::NodeProto& node) {
  NodePlace place = {.module = ScopeOf(node.name())};
  std::string scope, space;
  for (const auto& [key, value] : MetadataOf(node)) {
    if (absl::EndsWith(key, "name_scopes")) scope = InnermostOfList(value);
    if (absl::EndsWith(key, "class_hierarchy")) place.type = InnermostOfList(value);
    if (absl::EndsWith(key, "namespace")) {
      std::string type;
      ReadNamespace(value, space, type);
      if (place.type.empty()) place.type = std::move(type);
    }
    if (!absl::EndsWith(key, "stack_trace")) continue;
    if (const auto frames = FramesOf(value); !frames.empty())
      place.location = TextOf(frames.back());
  }
  if (place.location.empty() && !node.doc_string().empty()) {
    // The innermost comes first.
    const std::vector<StackFrame> frames = FramesOf(node.doc_string());
    if (!frames.empty()) {
      place.location = TextOf(frames.front());
      if (place.type.empty()) place.type = LibraryModuleOf(frames.front());
    }
  }
  if (place.module != kNoScope) return place;
  if (!scope.empty()) {
    place.module = scope;
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
  ASSIGN_OR_RETURN(const FileBytes file, MapFile(path));
  const absl::StatusOr<SlimModel> slim = SlimDown(file.bytes);
  onnx::ModelProto model;
  if (!slim.ok() || !model.ParseFromString(slim->bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not an ONNX model"));
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

}  // namespace reprise
