// A file with a side for texts and a side for pictures, as optimum exports CLIP: each is a model of
// its own, so that a text costs no picture.
#pragma once

namespace reprise {

struct ImportedModel;

enum class Side { kTexts, kPictures };

// Returns whether some outputs of the model need pixels alone and others need ids alone, and a
// vector of each kind is among them (image_embeds, text_embeds).
bool HasTwoSides(const ImportedModel& model);

// Leaves of such a model the outputs of one side, and the inputs that they need.
void KeepSide(Side side, ImportedModel& model);

}  // namespace reprise
