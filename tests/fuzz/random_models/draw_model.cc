#include "tests/fuzz/random_models/draw_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/op_templates.h"
#include "tests/fuzz/random_models/signature.h"

namespace reprise::fuzz {
namespace {

struct Family {
  absl::Span<const OpTemplate> (*templates)();
  int64_t ModelStyle::*weight;
};

constexpr Family kFamilies[] = {
    {ElementwiseTemplates, &ModelStyle::elementwise},
    {MovementTemplates, &ModelStyle::movement},
    {GatherTemplates, &ModelStyle::gather},
    {ReduceTemplates, &ModelStyle::reduce},
    {ProductTemplates, &ModelStyle::products},
    {WindowTemplates, &ModelStyle::windows},
    {QuantizedTemplates, &ModelStyle::quantized},
    {AttentionTemplates, &ModelStyle::attention},
    {PatternTemplates, &ModelStyle::patterns},
    {RareTemplates, &ModelStyle::rare},
    {DataTemplates, &ModelStyle::data},
    {SizeTemplates, &ModelStyle::sizes},
};

// Some models do without whole families: most that are proved have neither windows nor sizes.
ModelStyle DrawStyle(Chance& chance) {
  ModelStyle style;
  if (chance.OneIn(3)) {  // rows and positions are their own, except where sizes decide
    style = {.elementwise = 8,
             .movement = 0,
             .gather = 0,
             .reduce = 0,
             .products = 2,
             .windows = 0,
             .quantized = 0,
             .attention = 0,
             .patterns = 0,
             .rare = 0,
             .data = 0,
             .sizes = 8};
    return style;
  }
  if (chance.OneIn(2)) style.sizes = chance.Of({0, 0, 12});
  if (chance.OneIn(3)) style.windows = 0;
  if (chance.OneIn(3)) style.movement = 1;
  if (chance.OneIn(4)) style.reduce = 0;
  if (chance.OneIn(3)) style.attention = 8;
  if (chance.OneIn(4)) style.patterns = 16;
  if (chance.OneIn(8)) style.quantized = 12;
  if (chance.OneIn(16)) style.data = 4;
  return style;
}

// Ids alone are no numbers to begin with.
void Embed(ModelDraft& draft) {
  const ValueId ids =
      draft.Pick([&](ValueId id) { return draft.graph().value(id).name.starts_with("ids"); });
  if (ids != kNone) draft.Add("Gather", {draft.Weight({kIds, 8}), ids});
  const ValueId other = draft.Pick([&](ValueId id) {
    return draft.TypeOf(id) != DType::kFloat32 && draft.TypeOf(id) != DType::kInt64;
  });
  if (ids == kNone && other != kNone) draft.Add("Cast", {other}, {{"to", int64_t{1}}});
}

void ChooseOutputs(ModelDraft& draft) {
  std::vector<ValueId> loose = draft.Loose();
  std::reverse(loose.begin(), loose.end());
  Graph& graph = draft.graph();
  const size_t wanted = draft.chance().OneIn(2) ? 1 : draft.chance().Between(2, 4);
  for (const ValueId id : loose) {
    if (graph.outputs().size() < wanted && draft.DependsOnData(id)) graph.AddOutput(id);
  }
  if (graph.outputs().empty() && !loose.empty()) graph.AddOutput(loose[0]);
}

// A symbol that an input has three times over: its largest buckets are gigabytes.
bool HasCube(const Signature& signature) {
  return std::ranges::any_of(signature.inputs, [](const DrawnInput& input) {
    return std::ranges::any_of(input.dims, [&](const Dim& dim) {
      return !dim.is_constant() && std::ranges::count(input.dims, dim) > 2;
    });
  });
}

// Sizes at which something may begin to be otherwise.
std::vector<int64_t> Thresholds(const Graph& graph) {
  std::set<int64_t> numbers;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != Value::Kind::kConstant || value.constant.num_elements() > 4) continue;
    const auto integers = value.constant.ToInt64s();
    if (!integers.ok()) continue;
    for (const int64_t number : *integers) {
      if (number >= 1 && number <= 700) numbers.insert(number);
    }
  }
  return {numbers.begin(), numbers.end()};
}

// Returns the dims that an exporter says of the outputs: a fixed size, the axis, or a name of its
// own.
std::map<std::string, std::vector<Dim>> DeclaredDims(const ModelDraft& draft,
                                                     const Signature& signature) {
  std::map<std::string, std::vector<Dim>> declared;
  const auto symbol_of = [&](const std::vector<int64_t>& sizes) -> std::string {
    for (const std::vector<std::string>& symbols : signature.axes) {
      bool same = sizes.size() == draft.trials().size();
      for (size_t t = 0; same && t < sizes.size(); ++t) {
        same = sizes[t] == draft.trials()[t].at(symbols[0]);
      }
      if (same) return symbols[0];
    }
    return "unk__7";
  };
  for (const ValueId id : draft.graph().outputs()) {
    if (draft.RankOf(id) < 0) continue;
    std::vector<Dim>& dims = declared[draft.graph().value(id).name];
    for (int64_t dim = 0; dim < draft.RankOf(id); ++dim) {
      const int64_t size = draft.FixedSize(id, dim);
      dims.push_back(size >= 0 ? Dim{.size = size}
                               : Dim{.symbol = symbol_of(draft.SizesOf(id, dim))});
    }
  }
  return declared;
}

constexpr int64_t kMostElements = 40000;  // limit for the inputs of one request

int64_t ElementsOf(const Graph& graph, const Sizes& sizes) {
  int64_t all = 0;
  for (const ValueId id : graph.inputs()) {
    int64_t elements = 1;
    for (const Dim& dim : graph.value(id).dims) {
      elements *= dim.is_constant() ? dim.size : sizes.at(dim.symbol);
    }
    all += elements;
  }
  return all;
}

}  // namespace

bool DrawSomething(ModelDraft& draft) {
  int64_t all = 0;
  for (const Family& family : kFamilies) all += draft.style().*family.weight;
  for (int attempt = 0; attempt < 6; ++attempt) {
    int64_t left = draft.chance().Below(all);
    for (const Family& family : kFamilies) {
      left -= draft.style().*family.weight;
      if (left >= 0) continue;
      const absl::Span<const OpTemplate> templates = family.templates();
      const OpTemplate& chosen = templates[draft.chance().Below(templates.size())];
      if (chosen.draw(draft, chosen.op)) return true;
      break;
    }
  }
  return false;
}

std::vector<Sizes> DrawRequests(const Graph& graph,
                                const std::vector<std::vector<std::string>>& axes, Chance& chance) {
  const std::vector<int64_t> thresholds = Thresholds(graph);
  std::vector<Sizes> requests(chance.Between(3, 6));
  for (Sizes& request : requests) {
    bool large = false;  // One long axis a request, that it takes no time.
    for (const std::vector<std::string>& symbols : axes) {
      int64_t size = chance.Below(5) < 2   ? chance.Between(1, 4)
                     : chance.Below(3) < 2 ? chance.Between(2, 20)
                                           : chance.Between(1, 33);
      if (!thresholds.empty() && chance.OneIn(3)) {
        size = std::max<int64_t>(1, chance.Of(thresholds) + chance.Between(-1, 1));
      }
      if (size > 40 && large) size = chance.Between(1, 4);
      large = large || size > 40;
      for (const std::string& symbol : symbols) request[symbol] = size;
    }
    // A request shares some sizes with the one before it, else two never agree along an axis.
    if (&request != &requests.front()) {
      for (const std::vector<std::string>& symbols : axes) {
        if (!chance.OneIn(3)) continue;
        for (const std::string& symbol : symbols) request[symbol] = (&request)[-1].at(symbol);
      }
    }
    while (ElementsOf(graph, request) > kMostElements) {
      for (auto& [symbol, size] : request) size = (size + 1) / 2;
    }
  }
  return requests;
}

TestCase DrawCase(uint64_t seed) {
  Chance chance(seed);
  return DrawCase(chance);
}

TestCase DrawCase(Chance& chance) {
  const Signature signature = DrawSignature(chance);
  ModelDraft draft(chance, DrawTrials(signature, chance), DrawStyle(chance));
  for (const DrawnInput& input : signature.inputs) {
    std::vector<Tensor> contents;
    for (const Sizes& sizes : draft.trials()) {
      contents.push_back(ContentsOf(input.name, input.dtype, input.dims, sizes, chance));
    }
    draft.Input(input.name, input.dtype, input.dims, std::move(contents));
  }
  Embed(draft);
  for (int64_t steps = chance.Between(2, 12); steps > 0; --steps) DrawSomething(draft);
  ChooseOutputs(draft);
  TestCase result;
  result.graph = draft.graph();
  REPRISE_CHECK(result.graph.Compact());
  result.requests = DrawRequests(result.graph, signature.axes, chance);
  result.contents = chance.Seed();
  result.packed = chance.OneIn(2);
  chance.OneIn(4);  // Later draws stay those of earlier seeds.
  result.wild = chance.OneIn(6);
  if (chance.OneIn(3)) result.declared = DeclaredDims(draft, signature);
  return result;
}

}  // namespace reprise::fuzz
