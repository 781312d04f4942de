#include "runtime/graph/node_match.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/hash64.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"

namespace reprise {
namespace {

// The most pairs of nodes of a stretch that are compared one with another.
constexpr size_t kMostCompared = size_t{1} << 18;

// Returns everything that makes a node but its names and the names of its results.
uint64_t FormOf(const Graph& graph, const Node& node) {
  std::string form = absl::StrCat(node.op, "\n", PrintAttributes(node.attributes));
  for (const ValueId id : node.inputs) {
    if (id == kNone) {
      absl::StrAppend(&form, "\n_");
      continue;
    }
    const Value& value = graph.value(id);
    absl::StrAppend(&form, "\n", static_cast<int>(value.kind));
    if (value.kind == Value::Kind::kConstant) {
      absl::StrAppend(&form, PrintTensor(value.constant));
    } else if (value.kind == Value::Kind::kParameter) {
      absl::StrAppend(&form, DTypeName(value.dtype), ShapeToString(*value.shape));
    } else if (value.kind == Value::Kind::kInput) {
      const auto at = std::find(graph.inputs().begin(), graph.inputs().end(), id);
      absl::StrAppend(&form, at - graph.inputs().begin());
    }
  }
  return Hash64(form);
}

struct Side {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;
  std::vector<uint64_t> forms;  // indexed like `nodes`

  explicit Side(const Graph& of) : graph(&of), nodes(of.NodeIds()) {
    for (const NodeId id : nodes) forms.push_back(FormOf(of, of.node(id)));
  }
};

// A run of nodes of each side: positions.
struct Stretch {
  size_t was = 0, was_end = 0;
  size_t now = 0, now_end = 0;
};

class Matcher {
 public:
  Matcher(const Graph& was, const Graph& now) : was_(was), now_(now) {}

  std::vector<NodePair> Run() {
    Match({0, was_.nodes.size(), 0, now_.nodes.size()});
    return std::move(pairs_);
  }

 private:
  void Add(size_t was, size_t now) { pairs_.push_back({was_.nodes[was], now_.nodes[now]}); }

  void Match(Stretch at) {
    while (at.was < at.was_end && at.now < at.now_end && was_.forms[at.was] == now_.forms[at.now]) {
      Add(at.was++, at.now++);
    }
    size_t same_ends = 0;
    while (at.was < at.was_end && at.now < at.now_end &&
           was_.forms[at.was_end - 1] == now_.forms[at.now_end - 1]) {
      --at.was_end;
      --at.now_end;
      ++same_ends;
    }
    if (at.was < at.was_end || at.now < at.now_end) MatchBetween(at);
    for (size_t i = 0; i < same_ends; ++i) Add(at.was_end + i, at.now_end + i);
  }

  // Matches a stretch both ends of which differ.
  void MatchBetween(const Stretch& at) {
    const std::vector<std::pair<size_t, size_t>> anchors = Anchors(at);
    if (anchors.empty()) return PairUp(at);
    Stretch part = at;
    for (const auto& [was, now] : anchors) {
      part.was_end = was;
      part.now_end = now;
      Match(part);
      Add(was, now);
      part.was = was + 1;
      part.now = now + 1;
    }
    part.was_end = at.was_end;
    part.now_end = at.now_end;
    Match(part);
  }

  // Returns the indices of nodes whose form is there once on either side, as many as keep their
  // order.
  std::vector<std::pair<size_t, size_t>> Anchors(const Stretch& at) const {
    struct Places {
      int was = 0, now = 0;
      size_t last_was = 0, last_now = 0;
    };
    absl::flat_hash_map<uint64_t, Places> places;
    for (size_t i = at.was; i < at.was_end; ++i) {
      Places& of = places[was_.forms[i]];
      ++of.was;
      of.last_was = i;
    }
    for (size_t i = at.now; i < at.now_end; ++i) {
      Places& of = places[now_.forms[i]];
      ++of.now;
      of.last_now = i;
    }
    std::vector<std::pair<size_t, size_t>> candidates;
    for (const auto& [form, of] : places) {
      if (of.was == 1 && of.now == 1) candidates.emplace_back(of.last_was, of.last_now);
    }
    std::sort(candidates.begin(), candidates.end());
    // The longest run that ascends on the other side too.
    std::vector<size_t> tails, before(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      const auto it =
          std::lower_bound(tails.begin(), tails.end(), candidates[i].second,
                           [&](size_t tail, size_t now) { return candidates[tail].second < now; });
      before[i] = it == tails.begin() ? candidates.size() : *(it - 1);
      if (it == tails.end()) {
        tails.push_back(i);
      } else {
        *it = i;
      }
    }
    std::vector<std::pair<size_t, size_t>> anchors;
    for (size_t i = tails.empty() ? candidates.size() : tails.back(); i < candidates.size();
         i = before[i]) {
      anchors.push_back(candidates[i]);
    }
    std::reverse(anchors.begin(), anchors.end());
    return anchors;
  }

  // Returns how alike two nodes are; 0: neither stands for the other.
  int Likeness(size_t was, size_t now) const {
    if (was_.forms[was] == now_.forms[now]) return 4;
    const Node& a = was_.graph->node(was_.nodes[was]);
    const Node& b = now_.graph->node(now_.nodes[now]);
    const bool same_name = !a.name.empty() && a.name == b.name;
    if (a.op == b.op) return same_name ? 3 : 2;
    return same_name ? 1 : 0;
  }

  // Pairs nodes that no form tells apart: the pairing that is the most alike in all.
  void PairUp(const Stretch& at) {
    const size_t rows = at.was_end - at.was, columns = at.now_end - at.now;
    if (rows * columns > kMostCompared) return PairInTurn(at);
    std::vector<int> best((rows + 1) * (columns + 1), 0);
    const auto cell = [&](size_t i, size_t j) -> int& { return best[i * (columns + 1) + j]; };
    for (size_t i = rows; i-- > 0;) {
      for (size_t j = columns; j-- > 0;) {
        const int like = Likeness(at.was + i, at.now + j);
        cell(i, j) =
            std::max({cell(i + 1, j), cell(i, j + 1), like > 0 ? like + cell(i + 1, j + 1) : 0});
      }
    }
    size_t i = 0, j = 0;
    while (i < rows || j < columns) {
      const int like = i < rows && j < columns ? Likeness(at.was + i, at.now + j) : 0;
      if (like > 0 && cell(i, j) == like + cell(i + 1, j + 1)) {
        Add(at.was + i++, at.now + j++);
      } else if (j == columns || (i < rows && cell(i, j) == cell(i + 1, j))) {
        pairs_.push_back({.was = was_.nodes[at.was + i++]});
      } else {
        pairs_.push_back({.now = now_.nodes[at.now + j++]});
      }
    }
  }

  // Pairs a stretch too long to compare: node by node, where they are alike.
  void PairInTurn(const Stretch& at) {
    size_t i = at.was, j = at.now;
    while (i < at.was_end || j < at.now_end) {
      if (i < at.was_end && j < at.now_end && Likeness(i, j) > 0) {
        Add(i++, j++);
        continue;
      }
      if (i < at.was_end) pairs_.push_back({.was = was_.nodes[i++]});
      if (j < at.now_end) pairs_.push_back({.now = now_.nodes[j++]});
    }
  }

  const Side was_, now_;
  std::vector<NodePair> pairs_;
};

}  // namespace

std::vector<NodePair> MatchNodes(const Graph& was, const Graph& now) {
  return Matcher(was, now).Run();
}

}  // namespace reprise
