#include "client/images/transform.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"

namespace reprise::images {
namespace {

constexpr double kLargestSize = 16384;

// The forms of a parameter; `least` and `most` bound each of its numbers.
enum class Form { kSize, kNumber, kRange, kFactor, kHue, kChannels, kFilter };

struct ParameterRow {
  absl::string_view name;
  Form form;
  absl::string_view fallback;  // empty: it must be given
  double least, most;
  std::vector<double> Transform::*numbers;  // null: it is one number, or a filter
  double Transform::*number = nullptr;
};

struct TransformRow {
  TransformKind kind;
  absl::string_view name;
  std::vector<ParameterRow> parameters;  // ordered like values without a name
};

// THE table of transforms.
const std::vector<TransformRow>& Rows() {
  static const auto& rows = *new std::vector<TransformRow>{
      {TransformKind::kResize,
       "Resize",
       {{"size", Form::kSize, "", 1, kLargestSize, &Transform::size},
        {"interpolation", Form::kFilter, "bilinear", 0, 0, nullptr},
        {"max_size", Form::kNumber, "0", 0, kLargestSize, nullptr, &Transform::max_size}}},
      {TransformKind::kLetterbox,
       "Letterbox",
       {{"size", Form::kSize, "", 1, kLargestSize, &Transform::size},
        {"fill", Form::kNumber, "114", 0, 255, nullptr, &Transform::fill}}},
      {TransformKind::kCenterCrop,
       "CenterCrop",
       {{"size", Form::kSize, "", 1, kLargestSize, &Transform::size}}},
      {TransformKind::kRandomResizedCrop,
       "RandomResizedCrop",
       {{"size", Form::kSize, "", 1, kLargestSize, &Transform::size},
        {"scale", Form::kRange, "[0.08, 1]", 1e-6, 1, &Transform::scale},
        {"ratio", Form::kRange, "[0.75, 1.3333333333333333]", 1e-3, 1e3, &Transform::ratio},
        {"interpolation", Form::kFilter, "bilinear", 0, 0, nullptr}}},
      {TransformKind::kRandomHorizontalFlip,
       "RandomHorizontalFlip",
       {{"p", Form::kNumber, "0.5", 0, 1, nullptr, &Transform::probability}}},
      {TransformKind::kColorJitter,
       "ColorJitter",
       {{"brightness", Form::kFactor, "0", 0, 100, &Transform::brightness},
        {"contrast", Form::kFactor, "0", 0, 100, &Transform::contrast},
        {"saturation", Form::kFactor, "0", 0, 100, &Transform::saturation},
        {"hue", Form::kHue, "0", -0.5, 0.5, &Transform::hue}}},
      {TransformKind::kRandomIoUCrop,
       "RandomIoUCrop",
       {{"scale", Form::kRange, "[0.3, 1]", 1e-6, 1, &Transform::scale},
        {"ratio", Form::kRange, "[0.5, 2]", 1e-3, 1e3, &Transform::ratio}}},
      {TransformKind::kToTensor, "ToTensor", {}},
      {TransformKind::kNormalize,
       "Normalize",
       {{"mean", Form::kChannels, "", -1e6, 1e6, &Transform::mean},
        {"std", Form::kChannels, "", 1e-12, 1e6, &Transform::std}}},
  };
  return rows;
}

template <typename Row>
std::string NamesOf(const std::vector<Row>& rows) {
  if (rows.empty()) return "none";
  return absl::StrJoin(rows, ", ",
                       [](std::string* out, const Row& row) { absl::StrAppend(out, row.name); });
}

absl::Status Refused(absl::string_view transform, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("transform ", transform, ": ", why));
}

// "[1, 2]" or "(1, 2)" or "1" as numbers.
std::optional<std::vector<double>> NumbersOf(absl::string_view text) {
  if (text.size() >= 2 && (text.front() == '[' || text.front() == '(')) {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<double> numbers;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    double number = 0;
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(part), &number) || !std::isfinite(number)) {
      return std::nullopt;
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::string_view MeaningOf(Form form) {
  switch (form) {
    case Form::kSize:
      return "a number of pixels, or [height, width]";
    case Form::kNumber:
      return "a number";
    case Form::kRange:
      return "[least, most]";
    case Form::kFactor:
    case Form::kHue:
      return "a number, or [least, most]";
    case Form::kChannels:
      return "a number, or one for each of 3 channels";
    case Form::kFilter:
      return "nearest, bilinear or bicubic";
  }
  return "";
}

bool Fits(Form form, const std::vector<double>& numbers) {
  const size_t count = numbers.size();
  switch (form) {
    case Form::kSize:
      return (count == 1 || count == 2) && std::all_of(numbers.begin(), numbers.end(),
                                                       [](double n) { return n == std::floor(n); });
    case Form::kNumber:
      return count == 1;
    case Form::kRange:
      return count == 2 && numbers[0] <= numbers[1];
    case Form::kFactor:
    case Form::kHue:
      return count == 1 || (count == 2 && numbers[0] <= numbers[1]);
    case Form::kChannels:
      return count == 1 || count == kChannels;
    case Form::kFilter:
      return false;
  }
  return false;
}

// Spreads one number of ColorJitter to a range around the neutral value.
void Spread(Form form, std::vector<double>& numbers) {
  if (numbers.size() != 1) return;
  const double by = numbers[0];
  if (form == Form::kFactor) numbers = {std::max(0.0, 1 - by), 1 + by};
  if (form == Form::kHue) numbers = {-by, by};
}

absl::Status Set(const ParameterRow& row, absl::string_view value, Transform& transform) {
  const auto wrong = [&] {
    return Refused(
        transform.text,
        absl::StrCat(
            row.name, " is ", value, ", expected ", MeaningOf(row.form),
            row.most > row.least ? absl::StrCat(" of ", row.least, " to ", row.most) : ""));
  };
  if (row.form == Form::kFilter) {
    const std::pair<absl::string_view, Filter> filters[] = {{"nearest", Filter::kNearest},
                                                            {"bilinear", Filter::kBilinear},
                                                            {"bicubic", Filter::kBicubic}};
    for (const auto& [name, filter] : filters) {
      if (absl::AsciiStrToLower(value) != name) continue;
      transform.filter = filter;
      return absl::OkStatus();
    }
    return wrong();
  }
  std::optional<std::vector<double>> numbers = NumbersOf(value);
  if (!numbers.has_value() || !Fits(row.form, *numbers)) return wrong();
  for (const double number : *numbers) {
    if (number < row.least || number > row.most) return wrong();
  }
  Spread(row.form, *numbers);
  if (row.numbers == nullptr) {
    transform.*row.number = numbers->front();
  } else {
    transform.*row.numbers = *std::move(numbers);
  }
  return absl::OkStatus();
}

// Cuts `text` at `separators` that are outside of brackets and comments; empty parts are left out.
absl::StatusOr<std::vector<std::string>> Cut(absl::string_view text, absl::string_view separators) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
      continue;
    }
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth < 0) break;
    if (depth == 0 && separators.find(c) != absl::string_view::npos) {
      parts.emplace_back();
    } else {
      parts.back() += c == '\n' ? ' ' : c;
    }
  }
  if (depth != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the brackets of the transforms do not match: ", text));
  }
  std::vector<std::string> kept;
  for (const std::string& part : parts) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(part);
    if (!stripped.empty()) kept.emplace_back(stripped);
  }
  return kept;
}

absl::Status SetParameters(const TransformRow& row, absl::string_view arguments,
                           Transform& transform) {
  ASSIGN_OR_RETURN(const std::vector<std::string> values, Cut(arguments, ","));
  std::vector<bool> given(row.parameters.size());
  for (size_t i = 0; i < values.size(); ++i) {
    absl::string_view value = values[i];
    size_t place = i;
    if (const size_t equals = value.find('='); equals != absl::string_view::npos) {
      const absl::string_view name = absl::StripAsciiWhitespace(value.substr(0, equals));
      value = absl::StripAsciiWhitespace(value.substr(equals + 1));
      place = static_cast<size_t>(
          std::find_if(row.parameters.begin(), row.parameters.end(),
                       [&](const ParameterRow& one) { return one.name == name; }) -
          row.parameters.begin());
    }
    if (place >= row.parameters.size() || given[place]) {
      return Refused(transform.text, absl::StrCat(values[i],
                                                  " is given twice or is not a parameter; "
                                                  "there are: ",
                                                  NamesOf(row.parameters)));
    }
    given[place] = true;
    RETURN_IF_ERROR(Set(row.parameters[place], value, transform));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    if (row.parameters[i].fallback.empty()) {
      return Refused(transform.text,
                     absl::StrCat("the parameter ", row.parameters[i].name, " is missing"));
    }
    RETURN_IF_ERROR(Set(row.parameters[i], row.parameters[i].fallback, transform));
  }
  return absl::OkStatus();
}

absl::StatusOr<Transform> ParseOne(const std::string& text) {
  Transform transform = {.text = text};
  const size_t bracket = std::min(text.find('('), text.size());
  const absl::string_view name =
      absl::StripAsciiWhitespace(absl::string_view(text).substr(0, bracket));
  absl::string_view arguments = absl::string_view(text).substr(bracket);
  if (!arguments.empty()) {
    if (arguments.back() != ')') return Refused(text, "nothing may follow its brackets");
    arguments = arguments.substr(1, arguments.size() - 2);
  }
  const auto& rows = Rows();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const TransformRow& one) { return one.name == name; });
  if (row == rows.end()) {
    return Refused(text, absl::StrCat("there is none of this name; known are: ", NamesOf(rows)));
  }
  transform.kind = row->kind;
  RETURN_IF_ERROR(SetParameters(*row, arguments, transform));
  return transform;
}

}  // namespace

absl::StatusOr<TransformList> TransformList::Parse(absl::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, Cut(text, ",;\n"));
  TransformList list;
  bool is_normalized = false;
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(Transform transform, ParseOne(part));
    const bool is_tensor = std::exchange(
        list.makes_tensor_, list.makes_tensor_ || transform.kind == TransformKind::kToTensor);
    if (transform.kind == TransformKind::kNormalize) {
      if (!is_tensor)
        return Refused(part, "it takes the result of ToTensor, which must be in front");
      if (std::exchange(is_normalized, true)) return Refused(part, "it may occur once");
    } else if (is_tensor && transform.kind == TransformKind::kRandomHorizontalFlip) {
      // Each pixel becomes a number by itself: turned before that or after, the bits are the same.
      const auto to_tensor =
          std::find_if(list.transforms_.begin(), list.transforms_.end(),
                       [](const Transform& one) { return one.kind == TransformKind::kToTensor; });
      list.transforms_.insert(to_tensor, std::move(transform));
      continue;
    } else if (is_tensor) {
      return Refused(part, "it takes an image, and must be in front of ToTensor");
    }
    list.transforms_.push_back(std::move(transform));
  }
  return list;
}

TransformList TransformList::With(std::vector<Transform> transforms, int height, int width) const {
  TransformList list;
  list.transforms_ = std::move(transforms);
  list.makes_tensor_ = makes_tensor_;
  list.size_ = {height, width};
  return list;
}

absl::StatusOr<std::pair<int, int>> TransformList::ResultSize() const {
  if (size_.has_value()) return *size_;
  for (auto it = transforms_.rbegin(); it != transforms_.rend(); ++it) {
    const bool sets_size = it->kind == TransformKind::kCenterCrop ||
                           it->kind == TransformKind::kLetterbox ||
                           it->kind == TransformKind::kRandomResizedCrop ||
                           (it->kind == TransformKind::kResize && it->size.size() == 2);
    if (sets_size) {
      return std::pair(static_cast<int>(it->size.front()), static_cast<int>(it->size.back()));
    }
    if (it->kind == TransformKind::kResize || it->kind == TransformKind::kRandomIoUCrop) {
      return absl::InvalidArgumentError(absl::StrCat(
          "transform ", it->text,
          " is the last that decides a size, and images keep sizes of their own after it: images "
          "of a batch are all of one size (CenterCrop, or Resize([height, width]))"));
    }
  }
  return absl::InvalidArgumentError(
      "no transform gives the images one size (CenterCrop, RandomResizedCrop, or Resize([height, "
      "width]))");
}

}  // namespace reprise::images
