// Convolutions, pools and recurrent layers.
#include "tests/fuzz/random_models/op_templates.h"

namespace reprise::fuzz {
namespace {

// Returns a value [batch, channels, dims...] with a fixed number of channels.
ValueId PickWindowPlanes(ModelDraft& d) {
  return d.Pick([&](ValueId id) {
    const int64_t rank = d.RankOf(id);
    if (d.TypeOf(id) != DType::kFloat32 || (rank != 3 && rank != 4)) return false;
    const int64_t channels = d.FixedSize(id, 1);
    return channels > 0 && channels <= 16;
  });
}

Attributes Window(ModelDraft& d, int64_t dims, bool strided = true) {
  Chance& chance = d.chance();
  std::vector<int64_t> kernel, pads(2 * dims), strides, dilations;
  for (int64_t i = 0; i < dims; ++i) {
    kernel.push_back(chance.Of({1, 2, 3, 3}));
    strides.push_back(strided && chance.OneIn(3) ? chance.Of({2, 2, 3}) : 1);
    dilations.push_back(chance.OneIn(6) ? 2 : 1);
    pads[i] = chance.OneIn(2) ? (kernel[i] - 1) / 2 : 0;
    pads[i + dims] = chance.OneIn(4) ? kernel[i] - 1 : pads[i];
    if (chance.OneIn(12)) (chance.OneIn(2) ? pads[i] : pads[i + dims]) += 1;
  }
  Attributes attributes = {
      {"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}};
  if (chance.OneIn(4)) {
    attributes.Set("auto_pad", std::string(chance.Of({"SAME_UPPER", "SAME_LOWER", "VALID"})));
  } else {
    attributes.Set("pads", pads);
  }
  return attributes;
}

bool Conv(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = PickWindowPlanes(d);
  if (x == kNone) return false;
  const int64_t dims = d.RankOf(x) - 2, channels = d.FixedSize(x, 1);
  Attributes attributes = Window(d, dims);
  const bool depthwise = chance.OneIn(3);
  const int64_t group = depthwise ? channels : 1;
  attributes.Set("group", group);
  const int64_t out = depthwise ? channels : chance.Of({2, 4, 8});
  const bool transposed = op == "ConvTranspose";
  Shape shape = transposed ? Shape{channels, out / group} : Shape{out, channels / group};
  const std::vector<int64_t> kernel = attributes.Ints("kernel_shape");
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return d.Add(
             op,
             {x, d.Weight(shape, 4 * channels / group), chance.OneIn(2) ? d.Weight({out}) : kNone},
             attributes) != kNone;
}

bool Pool(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = PickWindowPlanes(d);
  if (x == kNone) return false;
  Attributes attributes = Window(d, d.RankOf(x) - 2);
  attributes.Set("ceil_mode", chance.OneIn(3) ? int64_t{1} : 0);
  if (op == "AveragePool") attributes.Set("count_include_pad", chance.Below(2));
  if (op == "LpPool") attributes.Set("p", int64_t{2});
  return d.Add(op, {x}, attributes, op == "MaxPool" && chance.OneIn(4) ? 2 : 1) != kNone;
}

bool GlobalPool(ModelDraft& d, absl::string_view op) {
  const ValueId x = d.PickFloat(3, 4);
  return x != kNone && d.Add(op, {x}) != kNone;
}

// (x, W, R, B?, sequence_lens?), layout 0 or 1.
bool Recurrent(ModelDraft& d, absl::string_view op) {
  Chance& chance = d.chance();
  const ValueId x = d.PickFloat(3, 3);
  if (x == kNone) return false;
  const int64_t size = d.FixedSize(x, 2);
  if (size < 1 || size > 16) return false;
  const int64_t hidden = chance.Of({2, 4});
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const std::string direction = chance.Of({"forward", "forward", "reverse", "bidirectional"});
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t layout = chance.Below(2);
  ValueId lengths = kNone;
  if (chance.OneIn(2)) {
    const ValueId sizes = d.Add("Shape", {x});
    const ValueId rows = d.Add("Gather", {sizes, d.Ints({layout == 0 ? 1 : 0})});
    const ValueId length = d.Add("Gather", {sizes, d.Ints({layout == 0 ? 0 : 1})});
    lengths = d.Add("Cast", {d.Add("Expand", {length, rows})}, {{"to", int64_t{6}}});
  }
  const size_t outputs = op == "LSTM" ? chance.Between(1, 3) : chance.Between(1, 2);
  Attributes attributes = {{"hidden_size", hidden}, {"direction", direction}, {"layout", layout}};
  if (op == "GRU") attributes.Set("linear_before_reset", chance.Below(2));
  return !d.AddNode(op,
                    {x, d.Weight({directions, gates * hidden, size}, size),
                     d.Weight({directions, gates * hidden, hidden}, hidden),
                     chance.OneIn(2) ? d.Weight({directions, 2 * gates * hidden}) : kNone, lengths},
                    attributes, outputs)
              .empty();
}

constexpr OpTemplate kWindowTemplates[] = {
    {"Conv", Conv},
    {"Conv", Conv},
    {"Conv", Conv},
    {"ConvTranspose", Conv},
    {"AveragePool", Pool},
    {"MaxPool", Pool},
    {"LpPool", Pool},
    {"GlobalAveragePool", GlobalPool},
    {"GlobalMaxPool", GlobalPool},
    {"GlobalLpPool", GlobalPool},
    {"LSTM", Recurrent},
    {"GRU", Recurrent},
    {"RNN", Recurrent},
};

}  // namespace

absl::Span<const OpTemplate> WindowTemplates() { return kWindowTemplates; }

}  // namespace reprise::fuzz
