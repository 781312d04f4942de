#include "server/http/form.h"

#include <boost/beast/http/rfc7230.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

constexpr size_t kMostParts = 256;
constexpr size_t kMostHeadBytes = size_t{8} << 10;
constexpr size_t kMostBoundaryBytes = 70;  // RFC 2046, section 5.1.1
constexpr char kLineEnd[] = "\r\n";

// Returns the parameter `name` of a header's value, "form-data; name=\"a\"", without its quotes.
std::optional<std::string> ParameterOf(absl::string_view value, absl::string_view name) {
  const size_t from = value.find(';');
  if (from == absl::string_view::npos) return std::nullopt;
  value.remove_prefix(from);
  for (const auto& [key, text] : boost::beast::http::param_list({value.data(), value.size()})) {
    if (absl::EqualsIgnoreCase({key.data(), key.size()}, name)) {
      return std::string(text.data(), text.size());
    }
  }
  return std::nullopt;
}

// Takes the text in front of `mark` from `rest`, and the mark; nullopt where there is none.
std::optional<absl::string_view> TakeTo(absl::string_view mark, absl::string_view& rest) {
  const size_t end = rest.find(mark);
  if (end == absl::string_view::npos) return std::nullopt;
  const absl::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end + mark.size());
  return taken;
}

// Reads the headers of a part.
absl::StatusOr<FormPart> ReadHead(absl::string_view head) {
  FormPart part;
  bool is_named = false;
  for (const absl::string_view line : absl::StrSplit(head, kLineEnd)) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (!absl::EqualsIgnoreCase(field.first, "content-disposition")) continue;
    const std::optional<std::string> name = ParameterOf(field.second, "name");
    is_named = name.has_value();
    part.name = name.value_or("");
    part.file_name = ParameterOf(field.second, "filename").value_or("");
  }
  if (is_named) return part;
  return absl::InvalidArgumentError("a part of the form has no Content-Disposition with a name");
}

}  // namespace

absl::StatusOr<std::vector<FormPart>> ReadForm(absl::string_view content_type,
                                               absl::string_view body) {
  if (!absl::StartsWithIgnoreCase(content_type, "multipart/form-data")) {
    return absl::InvalidArgumentError(absl::StrCat("the body is \"", content_type.substr(0, 80),
                                                   "\", it must be multipart/form-data"));
  }
  const std::string boundary = ParameterOf(content_type, "boundary").value_or("");
  if (boundary.empty() || boundary.size() > kMostBoundaryBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the boundary of the form has ", boundary.size(),
                                                   " letters, it must have 1 to ",
                                                   kMostBoundaryBytes));
  }
  const std::string mark = absl::StrCat("--", boundary);
  const std::string next = absl::StrCat(kLineEnd, mark);
  if (!TakeTo(mark, body).has_value()) {
    return absl::InvalidArgumentError("the form has no part: its boundary is not in the body");
  }
  std::vector<FormPart> parts;
  while (true) {
    if (absl::StartsWith(body, "--")) return parts;
    if (parts.size() == kMostParts) {
      return absl::InvalidArgumentError(
          absl::StrCat("the form has more than ", kMostParts, " parts"));
    }
    // Blanks may follow a boundary.
    if (!TakeTo(kLineEnd, body).has_value()) break;
    absl::string_view head_of = body.substr(0, kMostHeadBytes);
    const std::optional<absl::string_view> head = TakeTo("\r\n\r\n", head_of);
    if (!head.has_value()) break;
    ASSIGN_OR_RETURN(FormPart part, ReadHead(*head));
    body.remove_prefix(head->size() + 4);
    const std::optional<absl::string_view> data = TakeTo(next, body);
    if (!data.has_value()) break;
    part.data = *data;
    parts.push_back(std::move(part));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the form ends within part ", parts.size(), ": its last boundary is missing"));
}

}  // namespace reprise
