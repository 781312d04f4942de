#include "server/http/status_page.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/format_text.h"
#include "runtime/base/shown_text.h"
#include "runtime/graph/graph.h"

namespace reprise {
namespace {

constexpr char kHead[] = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Reprise</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
p{margin:.3rem 0;color:#57606a}code{font:13px ui-monospace,monospace}
table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:600;color:#57606a}
th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid #d8dee4;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.READY{color:#1a7f37}.LOADING{color:#9a6700}.UNAVAILABLE{color:#cf222e}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}p,th{color:#8d96a0}
th,td{border-color:#30363d}.READY{color:#3fb950}.LOADING{color:#d29922}.UNAVAILABLE{color:#f85149}a{color:#58a6ff}}
</style></head><body>
)";

// A name or a reason is shown up to here.
constexpr size_t kMostShownBytes = 2048;

std::string Cell(absl::string_view text) { return absl::StrCat("<td>", EscapeHtml(text), "</td>"); }
std::string Number(double value) { return FormatText("<td class=n>%.0f</td>", value); }

double Sum(const SeriesBy<prometheus::Counter>& series) {
  double sum = 0;
  series.ForEach([&sum](const std::string&, const prometheus::Counter& c) { sum += c.Value(); });
  return sum;
}

// Requests, replays, compiles and what is queued of a model; without metrics nobody asked for it.
std::string Counts(const ModelMetrics* metrics) {
  if (metrics == nullptr) return absl::StrCat(Number(0), Number(0), Number(0), Number(0));
  return absl::StrCat(Number(Sum(metrics->requests)), Number(Sum(metrics->replays)),
                      Number(Sum(metrics->compiles)), Number(metrics->queue_depth->Value()));
}

// "batch, sequence (not certified: ...)".
std::string Axes(const Model& model) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < model.axes().size(); ++i) {
    const AxisCertificate certificate = model.CertificateOf(i);
    texts.push_back(model.axes()[i].label);
    if (!certificate.certified) {
      absl::StrAppend(&texts.back(),
                      model.packing() != nullptr ? " (packed, never padded: " : " (exact: ",
                      certificate.reason, ")");
    }
  }
  return absl::StrJoin(texts, ", ");
}

void RenderModels(const PageContext& context, std::string& page) {
  absl::StrAppend(&page,
                  "<h2>Models</h2><table><tr><th>model<th>version<th>state<th>axes<th class=n>"
                  "requests<th class=n>replays<th class=n>compiles<th class=n>queued</tr>\n");
  for (const Repository::Listed& listed : context.repository->List()) {
    const ModelVersion& version = *listed.version;
    const ModelMetrics* metrics = context.catalogue->Find(version.name, version.version);
    const char* state = ModelStateName(listed.state);
    absl::StrAppend(&page, "<tr>", Cell(version.name), Cell(version.version), "<td class=", state,
                    ">", state);
    if (!listed.why.ok()) absl::StrAppend(&page, "<br>", EscapeHtml(listed.why.message()));
    absl::StrAppend(&page, "</td>",
                    Cell(listed.servable != nullptr ? Axes(*listed.servable->model) : ""),
                    Counts(metrics), "</tr>\n");
  }
  absl::StrAppend(&page, "</table>\n");
}

void RenderRecipes(const PageContext& context, std::string& page) {
  std::vector<CachedRecipe> recipes = context.engine->ListRecipes();
  std::sort(recipes.begin(), recipes.end(), [](const CachedRecipe& a, const CachedRecipe& b) {
    const CaptureNote& left = a.recipe->note;
    const CaptureNote& right = b.recipe->note;
    return std::tie(left.model, left.version, a.recipe->key.binding) <
           std::tie(right.model, right.version, b.recipe->key.binding);
  });
  absl::StrAppend(&page, "<h2>Recipes</h2><p>", recipes.size(),
                  " in memory.</p><table><tr><th>model<th>bucket<th>key<th>reason<th class=n>"
                  "launches<th class=n>arena KiB<th class=n>capture ms<th class=n>replays</tr>\n");
  for (const CachedRecipe& cached : recipes) {
    const Recipe& recipe = *cached.recipe;
    absl::StrAppend(&page, "<tr>", Cell(absl::StrCat(recipe.note.model, " ", recipe.note.version)),
                    Cell(recipe.note.bucket), "<td><code>", recipe.key.hex(), "</code></td>",
                    Cell(recipe.note.reason), Number(static_cast<double>(recipe.launches.size())),
                    Number(static_cast<double>(recipe.arena_bytes) / 1024),
                    Number(static_cast<double>(recipe.note.total_ns) / 1e6),
                    Number(static_cast<double>(cached.replays)), "</tr>\n");
  }
  absl::StrAppend(&page, "</table>\n");
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(
      ShownText(text, kMostShownBytes),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string RenderStatusPage(const PageContext& context) {
  std::string page = kHead;
  absl::StrAppend(&page, "<h1>Reprise</h1><p>", EscapeHtml(context.version), " on ",
                  EscapeHtml(context.device), ", ", context.state->name(),
                  ". <a href=\"/metrics\">Metrics</a></p>\n");
  RenderModels(context, page);
  RenderRecipes(context, page);
  absl::StrAppend(&page, "</body></html>\n");
  return page;
}

}  // namespace reprise
