//! THE table of tokenizer classes that can be made without tokenizer.json. A class that is not here is
//! refused by its name: read as another it would give other ids, silently.

use crate::load::{Config, SENTENCEPIECE, VOCAB_AND_MERGES, VOCAB_TXT};
use crate::Failure;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    Bert,
    Splinter,
    MpNet,
    Roberta,
    Gpt2,
    Deberta,
    Clip,
    XlmRoberta,
    Camembert,
    T5,
    Llama,
    Albert,
    DebertaV2,
    BigBird,
    /// Pieces of sentencepiece without special tokens, where no file names a class.
    Pieces,
}

/// The classes that read each kind of file, without their suffix `Tokenizer` or `TokenizerFast`.
const CLASSES: &[(i32, &str, Family)] = &[
    (VOCAB_TXT, "Bert", Family::Bert),
    (VOCAB_TXT, "DistilBert", Family::Bert),
    (VOCAB_TXT, "Electra", Family::Bert),
    (VOCAB_TXT, "MobileBert", Family::Bert),
    (VOCAB_TXT, "ConvBert", Family::Bert),
    (VOCAB_TXT, "SqueezeBert", Family::Bert),
    (VOCAB_TXT, "Splinter", Family::Splinter),
    (VOCAB_TXT, "Lxmert", Family::Bert),
    (VOCAB_TXT, "LayoutLM", Family::Bert),
    (VOCAB_TXT, "DPRQuestionEncoder", Family::Bert),
    (VOCAB_TXT, "DPRContextEncoder", Family::Bert),
    (VOCAB_TXT, "MPNet", Family::MpNet),
    (VOCAB_AND_MERGES, "Roberta", Family::Roberta),
    (VOCAB_AND_MERGES, "Longformer", Family::Roberta),
    (VOCAB_AND_MERGES, "Bart", Family::Roberta),
    (VOCAB_AND_MERGES, "LED", Family::Roberta),
    (VOCAB_AND_MERGES, "GPT2", Family::Gpt2),
    (VOCAB_AND_MERGES, "Deberta", Family::Deberta),
    (VOCAB_AND_MERGES, "CLIP", Family::Clip),
    (SENTENCEPIECE, "XLMRoberta", Family::XlmRoberta),
    (SENTENCEPIECE, "Camembert", Family::Camembert),
    (SENTENCEPIECE, "T5", Family::T5),
    (SENTENCEPIECE, "MT5", Family::T5),
    (SENTENCEPIECE, "Llama", Family::Llama),
    (SENTENCEPIECE, "CodeLlama", Family::Llama),
    (SENTENCEPIECE, "Albert", Family::Albert),
    (SENTENCEPIECE, "DebertaV2", Family::DebertaV2),
    (SENTENCEPIECE, "BigBird", Family::BigBird),
];

/// The class of a `model_type` of config.json, which counts where no file names a class.
const MODEL_TYPES: &[(&str, &str)] = &[
    ("bert", "Bert"),
    ("distilbert", "DistilBert"),
    ("electra", "Electra"),
    ("mobilebert", "MobileBert"),
    ("convbert", "ConvBert"),
    ("squeezebert", "SqueezeBert"),
    ("megatron-bert", "Bert"),
    ("nezha", "Bert"),
    ("ernie", "Bert"),
    ("nomic_bert", "Bert"),
    ("splinter", "Splinter"),
    ("lxmert", "Lxmert"),
    ("layoutlm", "LayoutLM"),
    ("mpnet", "MPNet"),
    ("roberta", "Roberta"),
    ("roberta-prelayernorm", "Roberta"),
    ("data2vec-text", "Roberta"),
    ("ibert", "Roberta"),
    ("lilt", "Roberta"),
    ("longformer", "Longformer"),
    ("bart", "Bart"),
    ("led", "LED"),
    ("gpt2", "GPT2"),
    ("gpt_neo", "GPT2"),
    ("gptj", "GPT2"),
    ("deberta", "Deberta"),
    ("clip", "CLIP"),
    ("xlm-roberta", "XLMRoberta"),
    ("camembert", "Camembert"),
    ("t5", "T5"),
    ("mt5", "MT5"),
    ("llama", "Llama"),
    ("albert", "Albert"),
    ("deberta-v2", "DebertaV2"),
    ("big_bird", "BigBird"),
];

fn file_of(kind: i32) -> &'static str {
    match kind {
        VOCAB_TXT => "vocab.txt",
        VOCAB_AND_MERGES => "vocab.json",
        _ => "a sentencepiece model",
    }
}

/// The family of the class that the folder names for a file of `kind`.
pub fn family(kind: i32, config: &Config) -> Result<Family, Failure> {
    let (class, from) = match (config.class(), config.model_type()) {
        (Some((class, file)), _) => (class.to_string(), format!("{} names the class {}", file, class)),
        (None, Some(model_type)) => {
            let known = MODEL_TYPES.iter().find(|(name, _)| *name == model_type);
            let class = known.map_or("", |(_, class)| *class);
            (class.to_string(), format!("config.json: model_type is \"{}\"", model_type))
        }
        (None, None) => {
            return Ok(match kind {
                VOCAB_TXT => Family::Bert,
                VOCAB_AND_MERGES => Family::Gpt2,
                _ => Family::Pieces,
            })
        }
    };
    let short = class.strip_suffix("Fast").unwrap_or(&class);
    let short = short.strip_suffix("Tokenizer").unwrap_or(short);
    CLASSES
        .iter()
        .find(|(of, name, _)| *of == kind && *name == short)
        .map(|(_, _, family)| *family)
        .ok_or_else(|| {
            let names: Vec<&str> =
                CLASSES.iter().filter(|(of, _, _)| *of == kind).map(|(_, name, _)| *name).collect();
            Failure::unimplemented(format!(
                "{}, whose tokenizer is not known without tokenizer.json (of {} these are: {})",
                from,
                file_of(kind),
                names.join(", ")
            ))
        })
}
