#include "tools/files/suppression_form.h"

#include <limits>
#include <vector>

namespace reprise::cli {
namespace {

class Suppression {
 public:
  explicit Suppression(NodeMaker& maker) : maker_(maker) {}

  FoundBoxes MakeForm(const onnx::NodeProto& node, int64_t rounds) {
    const auto has = [&](int i) { return node.input_size() > i && !node.input(i).empty(); };
    const std::string shape = maker_.Add("Shape", {node.input(1)});
    const Corners all = CornersOf(node, shape);
    const std::string zero = maker_.Float(0),
                      gone = maker_.Float(-std::numeric_limits<float>::infinity());
    const std::string limit = has(3) ? node.input(3) : zero;
    const std::string places = maker_.Range(SizeOf(shape, 2));
    std::string left = node.input(1);
    if (has(4)) {
      left = maker_.Add("Where", {maker_.Add("Greater", {left, node.input(4)}), left, gone});
    }
    std::vector<std::string> found, there;
    for (int64_t round = 0; round < rounds; ++round) {
      const std::string best = maker_.Add("ArgMax", {left});
      maker_.SetInt("axis", 2);
      const std::string score = maker_.Reduce("ReduceMax", left, {2}, /*keepdims=*/true);
      found.push_back(best);
      there.push_back(maker_.Add("Greater", {score, gone}));
      if (round + 1 == rounds) break;
      const auto at_best = [&](const std::string& side) {
        std::string one = maker_.Add("GatherElements", {side, best});
        maker_.SetInt("axis", 2);
        return one;
      };
      Corners box = {.top = at_best(all.top),
                     .left = at_best(all.left),
                     .bottom = at_best(all.bottom),
                     .right = at_best(all.right)};
      box.area = AreaOf(box);
      const std::string covered = maker_.Add("Greater", {Overlap(all, box, zero), limit});
      const std::string taken = maker_.Add("Equal", {places, best});
      left = maker_.Add("Where", {maker_.Add("Or", {covered, taken}), gone, left});
    }
    return Join(shape, found, there);
  }

 private:
  // The corners of boxes, each [batch, classes, boxes], and their areas.
  struct Corners {
    std::string top, left, bottom, right, area;
  };

  Corners CornersOf(const onnx::NodeProto& node, const std::string& shape) {
    const std::string turned = maker_.Add("Transpose", {node.input(0)});
    maker_.SetInts("perm", {0, 2, 1});
    std::string column[4];
    for (int64_t i = 0; i < 4; ++i) {
      column[i] = maker_.Add("Gather", {turned, maker_.Ints({i})});
      maker_.SetInt("axis", 1);
    }
    Corners corners;
    if (IntAttribute(node, "center_point_box", 0) != 0) {
      const std::string half = maker_.Float(0.5);
      const std::string width = maker_.Add("Mul", {column[2], half});
      const std::string height = maker_.Add("Mul", {column[3], half});
      corners = {.top = maker_.Add("Sub", {column[1], height}),
                 .left = maker_.Add("Sub", {column[0], width}),
                 .bottom = maker_.Add("Add", {column[1], height}),
                 .right = maker_.Add("Add", {column[0], width})};
    } else {
      corners = {.top = maker_.Add("Min", {column[0], column[2]}),
                 .left = maker_.Add("Min", {column[1], column[3]}),
                 .bottom = maker_.Add("Max", {column[0], column[2]}),
                 .right = maker_.Add("Max", {column[1], column[3]})};
    }
    for (std::string* side : {&corners.top, &corners.left, &corners.bottom, &corners.right}) {
      *side = maker_.Add("Expand", {*side, shape});
    }
    corners.area = AreaOf(corners);
    return corners;
  }

  std::string AreaOf(const Corners& corners) {
    return maker_.Add("Mul", {maker_.Add("Sub", {corners.bottom, corners.top}),
                              maker_.Add("Sub", {corners.right, corners.left})});
  }

  // Returns how much of its union with the boxes of `all` the box of `best` covers.
  std::string Overlap(const Corners& all, const Corners& best, const std::string& zero) {
    const auto side = [&](const std::string& end, const std::string& best_end,
                          const std::string& begin, const std::string& best_begin) {
      const std::string length = maker_.Add(
          "Sub", {maker_.Add("Min", {end, best_end}), maker_.Add("Max", {begin, best_begin})});
      return maker_.Add("Max", {length, zero});
    };
    const std::string both = maker_.Add("Mul", {side(all.bottom, best.bottom, all.top, best.top),
                                                side(all.right, best.right, all.left, best.left)});
    const std::string either = maker_.Add("Sub", {maker_.Add("Add", {all.area, best.area}), both});
    return maker_.Add("Div", {both, either});
  }

  // Joins the rows [batch, class, box] of all rounds.
  FoundBoxes Join(const std::string& shape, const std::vector<std::string>& found,
                  const std::vector<std::string>& there) {
    const std::string boxes = maker_.Add("Concat", found);
    maker_.SetInt("axis", 2);
    const std::string valid = maker_.Add("Concat", there);
    maker_.SetInt("axis", 2);
    const std::string of_rounds = maker_.Add("Shape", {boxes});
    const std::string batch = maker_.Unsqueeze(maker_.Range(SizeOf(shape, 0)), {1, 2});
    const std::string label = maker_.Unsqueeze(maker_.Range(SizeOf(shape, 1)), {1});
    std::vector<std::string> columns;
    for (const std::string& index : {maker_.Add("Expand", {batch, of_rounds}),
                                     maker_.Add("Expand", {label, of_rounds}), boxes}) {
      columns.push_back(maker_.Add("Reshape", {index, maker_.Ints({-1, 1})}));
    }
    const std::string rows = maker_.Add("Concat", columns);
    maker_.SetInt("axis", 1);
    return {.rows = rows, .mask = maker_.Add("Reshape", {valid, maker_.Ints({-1})})};
  }

  std::string SizeOf(const std::string& shape, int64_t dim) {
    return maker_.Add("Gather", {shape, maker_.Int(dim)});
  }

  NodeMaker& maker_;
};

}  // namespace

FoundBoxes MakeSuppression(const onnx::NodeProto& node, int64_t rounds, NodeMaker& maker) {
  return Suppression(maker).MakeForm(node, rounds);
}

}  // namespace reprise::cli
